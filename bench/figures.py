"""Figures of a benchmark as data: `note_figure` adds one to the file that `suite.py` names, and does nothing alone."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Literal, TypeAlias

VARIABLE = "COUNTERFOIL_BENCH_FIGURES"
Better: TypeAlias = Literal["higher", "lower"]


def note_figure(name: str, value: float, unit: str = "x", better: Better = "higher") -> None:
    """Add one figure, such as a ratio, with the direction that is better."""
    place = os.environ.get(VARIABLE)
    if place:
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"name": name, "value": round(value, 4), "unit": unit, "better": better}) + "\n")
