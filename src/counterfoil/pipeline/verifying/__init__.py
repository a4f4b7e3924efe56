"""Verification from the workspace to its decisions: pictures to people, answers to statistics.

workspace -> draw -> page or offline package -> verdicts -> decisions -> verified.json

These modules need the extra `web`; commands import them when they run.
"""

from counterfoil.pipeline.verifying.deciding import decide
from counterfoil.pipeline.verifying.exchanging import export_verdicts, import_file, package
from counterfoil.pipeline.verifying.opening import (
    administrator_link,
    begin_verification,
    open_verification,
    recorded_verification,
    serve_verification,
    summary_of,
)

__all__ = [
    "administrator_link", "begin_verification", "decide", "export_verdicts", "import_file", "open_verification",
    "package", "recorded_verification", "serve_verification", "summary_of",
]  # fmt: skip
