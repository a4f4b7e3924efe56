"""Comparison of prompt templates: how often mining and people keep their pictures, and how diverse these are.

Templates are the `edit` of painted pictures; edits of photos are compared in the same way.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from counterfoil.errors import Unusable, UserError
from counterfoil.generation.embedding import Embedding, diversity
from counterfoil.statistics.intervals import RATE, Estimate, estimate
from counterfoil.store.workspace import Workspace
from counterfoil.types import StoredVariant

_HEAD = ("workspace", "attribute", "template", "pictures", "shared failures %", "verified %", "diversity")


@dataclass(frozen=True, kw_only=True)
class TemplateRow:
    """One template of one workspace; rates in percent, distances as 1 - cosine."""

    workspace: str
    attribute: str
    template: str
    prompt: str  # one of its prompts, where pictures were painted
    pictures: int
    failures: Estimate  # of the pictures, those that mining kept
    verified: Estimate  # of the pictures that people decided on, those that they kept
    diversity: Estimate  # mean distance between two pictures of one class


def render_prompt_table(rows: Sequence[TemplateRow]) -> str:
    """Return the table with aligned columns; a dash where there is no number."""
    cells = [_HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEAD))]
    return "\n".join("  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
                     for line in cells)  # fmt: skip


def render_prompt_json(rows: Sequence[TemplateRow]) -> list[dict[str, Any]]:
    """Return the rows as plain JSON, null where there is no number."""
    return [
        {
            "workspace": row.workspace, "attribute": row.attribute, "template": row.template, "prompt": row.prompt,
            "pictures": row.pictures, "shared_failures_percent": _plain(row.failures),
            "verified_percent": _plain(row.verified), "diversity": _plain(row.diversity),
        }
        for row in rows
    ]  # fmt: skip


def _cells(row: TemplateRow) -> tuple[str, ...]:
    rates = (_format_estimate(row.failures, 1), _format_estimate(row.verified, 1), _format_estimate(row.diversity, 3))
    return (row.workspace, row.attribute, row.template, f"{row.pictures:,}", *rates)


def _format_estimate(value: Estimate, decimals: int) -> str:
    if not value.n:
        return "-"
    low, high = (f"{bound:.{decimals}f}" for bound in (value.ci_low, value.ci_high))
    return f"{value.value:.{decimals}f} [{low}, {high}] n={value.n}"


def _plain(value: Estimate) -> dict[str, float | int | None]:
    return {name: None if math.isnan(number) else number for name, number in value._asdict().items()}


_NONE = Estimate(math.nan, math.nan, math.nan, 0)
_REFERENCES = ("original", "control")


def compare_prompts(folders: Sequence[Path], embedded: int) -> list[TemplateRow]:
    """Return a row per workspace and template; at most `embedded` pictures of each are compared with one another."""
    if embedded < 0:
        raise UserError(f"expected 0 or more pictures to compare, got {embedded}")
    embedding = Embedding()
    rows = [row for folder in folders for row in _rows(Workspace(folder), embedding, embedded)]
    if not rows:
        raise UserError("expected pictures besides the originals, found none")
    return rows


def _rows(workspace: Workspace, embedding: Embedding, embedded: int) -> list[TemplateRow]:
    groups: dict[tuple[str, str], list[StoredVariant]] = {}
    for stored in workspace.pictures:
        if stored.variant.attribute not in _REFERENCES:
            groups.setdefault((stored.variant.attribute, stored.variant.edit), []).append(stored)
    return [
        TemplateRow(
            workspace=workspace.folder.resolve().name,
            attribute=attribute,
            template=template,
            prompt=_prompt(members[0]),
            pictures=len(members),
            failures=_failures(workspace, members),
            verified=_verified(workspace, members),
            diversity=_diversity(workspace, members, embedding, embedded),
        )
        for (attribute, template), members in sorted(groups.items())
    ]


def describe_outdated(folders: Sequence[Path]) -> list[str]:
    """Name results that are of other pictures than the present ones, and the step to repeat."""
    return [line for folder in folders for line in _outdated(Workspace(folder))]


def _outdated(workspace: Workspace) -> list[str]:
    folder = workspace.folder
    steps = (
        (workspace.mined, "it was mined: shared failures are left out", f"counterfoil mine {folder} ..."),
        (workspace.verified, "people decided: verified pictures are left out", f"counterfoil verify decide {folder}"),
    )
    return [
        f"{folder}: its pictures have changed since {lost}; repeat `{step}`"
        for result, lost, step in steps
        if result is not None and result.workspace_digest != workspace.digest
    ]


def _prompt(stored: StoredVariant) -> str:
    return str(json.loads(stored.variant.settings).get("prompt", ""))


def _failures(workspace: Workspace, members: Sequence[StoredVariant]) -> Estimate:
    mined = workspace.mined
    if mined is None or mined.workspace_digest != workspace.digest:
        return _NONE
    kept = set(mined.kept)
    return _share([stored.variant.id in kept for stored in members])


def _verified(workspace: Workspace, members: Sequence[StoredVariant]) -> Estimate:
    verified = workspace.verified
    if verified is None or verified.workspace_digest != workspace.digest:
        return _NONE
    ids = {stored.variant.id for stored in members}
    return _share([decision.kept for decision in verified.decisions if decision.variant_id in ids])


def _share(outcomes: Sequence[bool]) -> Estimate:
    return estimate(np.asarray(outcomes, np.float64), RATE).scaled(100)


def _diversity(workspace: Workspace, members: Sequence[StoredVariant], embedding: Embedding, most: int) -> Estimate:
    """The diversity of the `most` pictures with the lowest ids; ids are hashes, so the sample is random but fixed."""
    chosen = sorted(members, key=lambda stored: stored.variant.id)[:most]
    if not chosen:
        return _NONE
    labels = [stored.variant.label for stored in chosen]
    try:
        return diversity(embedding.embed_all(chosen, workspace.read), labels)
    except Unusable as error:
        raise UserError(
            f"{error}; `counterfoil pictures quality {workspace.folder}` takes such pictures out"
        ) from error
