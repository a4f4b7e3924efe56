"""People's say: questions, hidden controls, assignments, answers, and the web page that asks for them.

The web framework and the database come with the extra `web` and are imported only when a command needs them.
"""

from counterfoil.verify.questions import Questionnaire, load_questionnaire

__all__ = ["Questionnaire", "load_questionnaire"]
