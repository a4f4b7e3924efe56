"""What the endpoints of a run were asked: kept in `usage.json`, and added up where the run is done again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from counterfoil.store import write_atomically
from counterfoil.types import Model, Usage


def keep_usage(folder: Path, classifiers: Iterable[Model]) -> None:
    """Add what this session asked to what earlier ones did."""
    asked = {model.name: usage for model in classifiers if (usage := model.usage) is not None}
    if not asked:
        return
    earlier = usage_of(folder)
    total = {name: usage.plus(earlier[name]) if name in earlier else usage for name, usage in asked.items()}
    records = {name: usage.record() for name, usage in total.items()}
    write_atomically(folder / "usage.json", json.dumps(records, indent=1, allow_nan=False))


def usage_of(folder: Path) -> dict[str, Usage]:
    """What each endpoint was asked for a run, over all its sessions; empty where there was none."""
    path = folder / "usage.json"
    if not path.is_file():
        return {}
    return {name: Usage.of(record) for name, record in json.loads(path.read_text(encoding="utf-8")).items()}
