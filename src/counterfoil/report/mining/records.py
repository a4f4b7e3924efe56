"""Mining as JSON and CSV."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from counterfoil.report.mining.content import MiningContent
from counterfoil.report.tables import csv_text

MINING_FORMAT = 1  # raised when a key of mining.json changes its meaning or goes
_DIGITS = 6  # significant ones, so that small p values survive
_LISTED = ("models", "yields", "transfers", "families", "curves", "sizes", "biases", "spreads")


def mining_record(content: MiningContent) -> dict[str, object]:
    """What mining.json holds: plain JSON, null where there is no number; shares in percent, differences in points."""
    plain = ("workspace", "rule", "photos", "candidates", "chosen", "kept", "command", "digest")
    return {
        "format": MINING_FORMAT,
        **{name: getattr(content, name) for name in plain},
        "settings": dict(content.settings),
        "notes": list(content.notes),
        **{name: _plain(getattr(content, name)) for name in _LISTED},
        "classes": [{"label": label, "candidates": n, "kept": kept} for label, n, kept in content.classes],
        "wrong_answers": _plain(content.wrong_answers),
        "confusions": _plain(content.failures.confusions),
        "lenders": _plain(content.failures.lenders),
        "kept_ids": [row.variant_id for row in content.pictures if row.kept],
    }


def mining_csv(content: MiningContent) -> str:
    """One line per candidate: whether it was kept, and which model was right (1), wrong (0) or not scored (empty)."""
    names = ("variant_id", "sample_id", "label", "attribute", "edit", "level")
    lines = (
        [*(getattr(row, name) for name in names), int(row.kept)]
        + ["" if math.isnan(value) else int(value) for value in row.right]
        for row in content.pictures
    )
    return csv_text([*names, "kept", *(f"{model.role} {model.name}" for model in content.models)], lines)


def _plain(value: object) -> object:
    """Records and their estimates as JSON knows them."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") + 0.0 if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): _plain(member) for name, member in value.items()}
    if hasattr(value, "_asdict"):
        return {name: _plain(member) for name, member in value._asdict().items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(member) for member in value]
    return value
