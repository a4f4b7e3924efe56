"""Numbers and names in words; the page, the headline and the tables use the same ones."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from counterfoil.analyse import Contrast, Estimate
from counterfoil.types import Drop, Preprocessing

ABSENT = "–"  # stands where there is no number
MINUS = "−"

_UNBREAKABLE = re.compile(r"\[[^\[\]]{1,30}\]|\d %|n = \d|\d points")
_NAMES = {"presence": "object presence"}


def number(value: float, decimals: int = 1) -> str:
    """A number with a true minus sign and no negative zero; a dash where there is none."""
    if math.isnan(value):
        return ABSENT
    text = f"{round(value, decimals) + 0.0:.{decimals}f}"
    return text.replace("-", MINUS)


def p_value(p: float) -> str:
    """A p value that stays readable when it is small."""
    if math.isnan(p):
        return ABSENT
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}".replace("e-0", "e-").replace("-", MINUS)


def interval(row: Drop | Contrast | Estimate) -> str:
    """The 95 % interval."""
    return f"[{number(row.ci_low)}, {number(row.ci_high)}]"


def points(row: Drop) -> str:
    """A drop with its interval."""
    return f"{number(row.drop)} points {interval(row)}"


def gain(row: Drop) -> str:
    """A negative drop, told as what it gives."""
    return f"{number(-row.drop)} points [{number(-row.ci_high)}, {number(-row.ci_low)}]"


def attribute_name(attribute: str) -> str:
    """What people call an attribute."""
    return _NAMES.get(attribute, attribute)


def count(number_of: int) -> str:
    """A number of things, readable when it is large."""
    return f"{number_of:,}"


def sentence_start(text: str) -> str:
    """The text with a capital first letter; the rest is left as it is, since it may hold names."""
    return text[:1].upper() + text[1:]


def number_of(things: int, name: str) -> str:
    """So many things, in the singular where there is one."""
    return f"{count(things)} {name}{'' if things == 1 else 's'}"


def whole_sentence(text: str) -> str:
    """A note as a sentence: a capital first letter and a full stop."""
    return sentence_start(text) + ("" if text.endswith((".", "!", "?")) else ".")


def unbroken(text: str) -> str:
    """The text with spaces that no line may break at: within intervals, before %, around =."""
    return _UNBREAKABLE.sub(lambda match: match[0].replace(" ", "\u00a0"), text)


def listed(items: Sequence[str]) -> str:
    """Items joined as in a sentence."""
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)


def preprocessing(applied: Preprocessing | None) -> str:
    """What is done to a picture before the network sees it."""
    if applied is None:
        return "done inside the model, not seen from here"
    height, width = applied.size
    fitted = (
        f"whole picture squeezed to {width} × {height}"
        if applied.resize is None
        else f"shorter side to {applied.resize}, centre crop {width} × {height}"
    )
    mean, std = (", ".join(f"{value:g}" for value in values) for values in (applied.mean, applied.std))
    return f"{fitted} ({applied.interpolation}); {applied.colour_order}, minus ({mean}), divided by ({std})"
