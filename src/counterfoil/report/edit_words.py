"""What an edit does to a photo, in words; levels that would puzzle a reader are told too."""

from __future__ import annotations

import re

from counterfoil.edit import EDITS, describe_edit
from counterfoil.edit.corruptions.corruption import Corruption
from counterfoil.types import Drop

_CORRUPTION = "corruption-"  # ImageNet-C's archive has corruptions that are no edit of ours
_LAST_BRACKETS = re.compile(r" \((.*)\)$")


def doing(row: Drop) -> str:
    """What was done to the photo, as the subject of a sentence."""
    return doing_to(row.edit, row.level)


def doing_to(edit: str, level: str) -> str:
    """What an edit does to a photo, as the subject of a sentence."""
    if edit.startswith(_CORRUPTION) and edit not in EDITS:
        return Corruption.describe_named(edit.removeprefix(_CORRUPTION), level)
    return describe_edit(edit, level)


def aside(told: str) -> str:
    """What was done, as it stands inside brackets: brackets of its own become a comma."""
    return _LAST_BRACKETS.sub(r", \1", told)
