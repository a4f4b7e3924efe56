"""What tells models apart, photo by photo."""

from __future__ import annotations

from collections.abc import Sequence

from counterfoil.analyse import FEWEST_PHOTOS, Contrast
from counterfoil.report.edit_words import aside, doing_to
from counterfoil.report.finding import NO_ATTRIBUTE, Finding
from counterfoil.report.wording import attribute_name, interval, number, sentence_start
from counterfoil.types import Drop

_MOST_COMPARISONS = 3
_SIGNIFICANCE = 0.05


def told_apart(row: Contrast) -> bool:
    """Whether two models differ under a condition: the interval leaves out zero and the adjusted p is below 0.05."""
    return row.n >= FEWEST_PHOTOS and (row.ci_low > 0 or row.ci_high < 0) and row.p_holm < _SIGNIFICANCE


def better_model(row: Drop, clear: Sequence[Contrast]) -> str:
    """The model that loses least where this one loses most, if the photos tell the two apart."""
    here = [_seen_from(contrast, row.model) for contrast in clear if _under(contrast, row)]
    better = [contrast for contrast in here if contrast.first == row.model and contrast.difference > 0]
    if not better:
        return ""
    best = max(better, key=lambda contrast: contrast.difference)
    return f"{best.second} is {_gap(best)} better {interval(best)}"


def _under(contrast: Contrast, row: Drop) -> bool:
    return (contrast.condition.edit, contrast.condition.level) == (row.edit, row.level)


def _seen_from(contrast: Contrast, model: str) -> Contrast:
    """The contrast with this model first, where it takes part."""
    return turned(contrast) if contrast.second == model else contrast


def turned(contrast: Contrast) -> Contrast:
    """The same contrast with the models exchanged."""
    return contrast._replace(
        first=contrast.second,
        second=contrast.first,
        value_first=contrast.value_second,
        value_second=contrast.value_first,
        difference=-contrast.difference,
        ci_low=-contrast.ci_high,
        ci_high=-contrast.ci_low,
    )


def _gap(contrast: Contrast) -> str:
    return f"{number(contrast.difference)} points"


def paired_models(clear: Sequence[Contrast]) -> list[Finding]:
    """What tells models apart photo by photo: of each attribute the widest gap."""
    ordered = sorted(
        (row if row.difference > 0 else turned(row) for row in clear if row.condition.attribute not in NO_ATTRIBUTE),
        key=lambda row: -row.difference,
    )
    widest: dict[str, Contrast] = {}
    for row in ordered:
        widest.setdefault(row.condition.attribute, row)
    if not widest:
        told = "Photo by photo, no single edit tells the models apart: a ranking of them by these drops would be noise."
        return [Finding("", "models", told)]
    return [Finding("", "models", _paired_comparison(row)) for row in list(widest.values())[:_MOST_COMPARISONS]]


def _paired_comparison(row: Contrast) -> str:
    name = sentence_start(attribute_name(row.condition.attribute))
    done = aside(doing_to(row.condition.edit, row.condition.level))
    return (
        f"{name} ({done}): {row.second} loses {_gap(row)} less than "
        f"{row.first} {interval(row)}, paired by photo (n = {row.n})."
    )
