"""Where the tests find what they need."""

from __future__ import annotations

from pathlib import Path

HELPERS = Path(__file__).parent
DATA = HELPERS.parent / "data"
ROOT = HELPERS.parent.parent
