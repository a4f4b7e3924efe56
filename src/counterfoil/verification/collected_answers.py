"""Answers of people collected in files, imported and decided on: `verify` for Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from counterfoil.errors import UserError, expect_path
from counterfoil.plugins import check_web_extra
from counterfoil.statistics.annotators import DecisionRule, ExclusionRule, RuleName
from counterfoil.store.workspace import Workspace
from counterfoil.types import VerificationResult


def verify(
    workspace: Workspace | str | Path,
    answers: str | Path | Sequence[str | Path] = (),
    *,
    questions: str | Path | None = None,
    rule: RuleName = "majority",
    fewest: int | None = None,
    database: str | None = None,
) -> VerificationResult:
    """Import people's answers about the pictures of a workspace, and decide which pictures they confirm.

    The page for annotators is `counterfoil verify serve`; what it collected is in the workspace already.

    Args:
        workspace: What `build` returned, or its folder.
        answers: Files of answers: CSV, JSON, Label Studio's JSON, or what an offline package saved.
        questions: YAML or JSON of the questions, where the verification has not begun; two questions if not given.
        rule: How answers decide on a picture: "majority", "unanimity" or "dawid-skene".
        fewest: Answers that a picture needs; the annotators per picture if not given.
        database: postgresql://..., where the answers are not in the workspace.

    Returns:
        The decisions, the agreement and how annotators did on hidden controls; `freeze` takes what was confirmed.

    Raises:
        UserError: A file cannot be read, or nobody has answered yet.

    Examples:
        >>> verify("work", "answers.csv").annotators  # doctest: +SKIP
        3
    """
    check_web_extra()
    from counterfoil.verification.decision import decide
    from counterfoil.verification.project import begin_verification
    from counterfoil.verification.verdict_import import import_file

    folder = workspace.folder if isinstance(workspace, Workspace) else expect_path(workspace, "a workspace")
    opened = begin_verification(
        folder, database, None if questions is None else expect_path(questions, "the questions")
    )
    files = [answers] if isinstance(answers, str | Path) else list(answers)
    for file in files:
        import_file(opened, expect_path(file, "a file of answers"))
    annotators = opened.questionnaire.annotators
    if fewest is not None and fewest > annotators:
        raise UserError(f"expected --fewest of at most {annotators}, the annotators per picture, got {fewest}")
    chosen = DecisionRule(rule, annotators if fewest is None else fewest, 0.5)
    return decide(opened, chosen, ExclusionRule())[0]
