"""Prompt templates side by side: how many shared failures they yield, how different their pictures are, how many stand.

Templates are the `edit` of painted pictures; edits of photos are compared in the same way.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from counterfoil.analyse.diversity import diversity
from counterfoil.analyse.interval import RATE, Estimate, estimate
from counterfoil.errors import Unusable, UserError
from counterfoil.pipeline.embedding import Embedding
from counterfoil.report.prompt_table import TemplateRow
from counterfoil.store import Workspace
from counterfoil.types import Exhibit

_NONE = Estimate(math.nan, math.nan, math.nan, 0)
_REFERENCES = ("original", "control")


def prompt_study(folders: Sequence[Path], embedded: int) -> list[TemplateRow]:
    """A row per workspace and template; at most `embedded` pictures of each are compared with one another."""
    if embedded < 0:
        raise UserError(f"expected 0 or more pictures to compare, got {embedded}")
    embedding = Embedding()
    rows = [row for folder in folders for row in _rows(Workspace(folder), embedding, embedded)]
    if not rows:
        raise UserError("expected pictures besides the originals, found none")
    return rows


def _rows(workspace: Workspace, embedding: Embedding, embedded: int) -> list[TemplateRow]:
    groups: dict[tuple[str, str], list[Exhibit]] = {}
    for exhibit in workspace.exhibits:
        if exhibit.variant.attribute not in _REFERENCES:
            groups.setdefault((exhibit.variant.attribute, exhibit.variant.edit), []).append(exhibit)
    return [
        TemplateRow(
            workspace.folder.resolve().name, attribute, template, _prompt(members[0]), len(members),
            _failures(workspace, members), _verified(workspace, members),
            _diversity(workspace, members, embedding, embedded),
        )
        for (attribute, template), members in sorted(groups.items())
    ]  # fmt: skip


def outdated(folders: Sequence[Path]) -> list[str]:
    """What was found of other pictures than those that lie there now, and the step to repeat."""
    return [line for folder in folders for line in _outdated(Workspace(folder))]


def _outdated(workspace: Workspace) -> list[str]:
    folder = workspace.folder
    steps = (
        (workspace.mined, "it was mined: shared failures are left out", f"counterfoil mine {folder} ..."),
        (workspace.verified, "people decided: verified pictures are left out", f"counterfoil verify decide {folder}"),
    )
    return [
        f"{folder}: its pictures have changed since {lost}; repeat `{step}`"
        for found, lost, step in steps
        if found is not None and found.workspace_digest != workspace.digest
    ]


def _prompt(exhibit: Exhibit) -> str:
    return str(json.loads(exhibit.variant.settings).get("prompt", ""))


def _failures(workspace: Workspace, members: Sequence[Exhibit]) -> Estimate:
    mined = workspace.mined
    if mined is None or mined.workspace_digest != workspace.digest:
        return _NONE
    kept = set(mined.kept)
    return _share([exhibit.variant.id in kept for exhibit in members])


def _verified(workspace: Workspace, members: Sequence[Exhibit]) -> Estimate:
    verified = workspace.verified
    if verified is None or verified.workspace_digest != workspace.digest:
        return _NONE
    ids = {exhibit.variant.id for exhibit in members}
    return _share([decision.kept for decision in verified.decisions if decision.variant_id in ids])


def _share(outcomes: Sequence[bool]) -> Estimate:
    return estimate(np.asarray(outcomes, np.float64), RATE).scaled(100)


def _diversity(workspace: Workspace, members: Sequence[Exhibit], embedding: Embedding, most: int) -> Estimate:
    """Ids are hashes, so the lowest are a draw that does not change from run to run."""
    chosen = sorted(members, key=lambda exhibit: exhibit.variant.id)[:most]
    if not chosen:
        return _NONE
    labels = [exhibit.variant.label for exhibit in chosen]
    try:
        return diversity(embedding.of_all(chosen, workspace.read), labels)
    except Unusable as error:
        raise UserError(f"{error}; `counterfoil quality {workspace.folder}` takes such pictures out") from error
