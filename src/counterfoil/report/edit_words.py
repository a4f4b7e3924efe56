"""What an edit does to a photo, in words; levels that would puzzle a reader are told too."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from counterfoil.types import Drop

_DOING = {
    "background-swap": "swapping it",
    "background-plain": "a plain one instead",
    "background-blur": "blurring it",
    "background-grayscale": "taking its colour",
    "position": "moving the object",
    "object-hue": "another hue of the object",
    "object-grayscale": "the object without colour",
    "object-blur": "blurring the object",
    "texture": "another texture on it",
}  # as the subject of "costs"
_UNTOLD_LEVELS = {"", "random", "other", "gray"}  # levels that say no more than the edit's name
_TURNED = {"upside-down": "turning the object upside down", "left-right": "mirroring the object"}
_GROUNDS = {"": "", "white": " on white", "photo": " in its photo"}
_LAST_BRACKETS = re.compile(r" \((.*)\)$")
_KERNEL = re.compile(r"(\d+)/([\d.]+)")
_PART = re.compile(r"(\d+)/(\d+),(\d+)/(\d+)(@[\d.]+)?")
_BOTH_WAYS = re.compile(r"-([\d.]+)\.\.\1")


def doing(row: Drop) -> str:
    """What was done to the photo, as the subject of a sentence."""
    return doing_to(row.edit, row.level)


def doing_to(edit: str, level: str) -> str:
    """What an edit does to a photo, as the subject of a sentence."""
    if edit in _BY_LEVEL:
        return _BY_LEVEL[edit](level)
    if edit.startswith("corruption-"):
        return f"{edit.removeprefix('corruption-').replace('-', ' ')} ({_severity(level)})"
    told = _DOING.get(edit, edit)
    return told if level in _UNTOLD_LEVELS else f"{told} ({_told_level(level)})"


def aside(told: str) -> str:
    """What was done, as it stands inside brackets: brackets of its own become a comma."""
    return _LAST_BRACKETS.sub(r", \1", told)


def _told_level(level: str) -> str:
    """A blur's kernel and sigma are named; other levels speak for themselves."""
    kernel = _KERNEL.fullmatch(level)
    return f"kernel {kernel[1]}, sigma {kernel[2]}" if kernel else level


def _severity(level: str) -> str:
    return f"severity {level}" if level.isdecimal() else level


def _sizing(level: str) -> str:
    if level == "full":
        return "the object at full size"
    share = _percent(level)
    return f"the object at {share} of the picture" if share else f"the object at size {level}"


def _covering(level: str) -> str:
    share = _percent(level)
    return f"covering {share} of the object" if share else f"covering the object ({level})"


def _made_of(level: str) -> str:
    return f"the object made of {level}" if level else "another material"


def _turning(level: str) -> str:
    told = "turning the object"
    if level in _UNTOLD_LEVELS:
        return told
    both_ways = _BOTH_WAYS.fullmatch(level)
    if both_ways:
        return f"{told} by up to {both_ways[1]}°"
    return f"{told} by {level}°" if re.fullmatch(r"-?[\d.]+", level) else f"{told} ({level})"


def _placing(level: str) -> str:
    part = _PART.fullmatch(level)
    if not part:
        return f"moving the object ({level})" if level else "moving the object"
    return f"moving the object to row {part[1]} of {part[2]}, column {part[3]} of {part[4]}"


def _flipping(level: str) -> str:
    return _TURNED.get(level, f"flipping the object ({level})")


def _tilting(level: str) -> str:
    yaw, slash, pitch = level.partition("/")
    return f"tilting the object (yaw {yaw}°, pitch {pitch}°)" if slash else f"tilting the object ({level})"


def _outlined(told: str) -> Callable[[str], str]:
    return lambda level: f"{told}{_GROUNDS.get(level, f' ({level})')}"


def _percent(level: str) -> str:
    """A share in percent; empty where the level is none."""
    try:
        return f"{float(level) * 100:g} %"
    except ValueError:
        return ""


_BY_LEVEL: Mapping[str, Callable[[str], str]] = {
    "size": _sizing,
    "occlusion": _covering,
    "material": _made_of,
    "direction": _turning,
    "flip": _flipping,
    "position-grid": _placing,
    "tilt": _tilting,
    "silhouette": _outlined("a black silhouette"),
    "edges": _outlined("its edges alone"),
}  # edits whose level is part of the words
