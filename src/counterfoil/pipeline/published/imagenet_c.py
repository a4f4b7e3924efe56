"""ImageNet-C's rule: errors summed over severities and divided by AlexNet's, then averaged."""

from __future__ import annotations

from collections.abc import Sequence

from counterfoil.analyse import Condition, corruption_error
from counterfoil.pipeline.published.scores import Scores, noted, notes_of, top1
from counterfoil.pipeline.recorded.study import Study
from counterfoil.published.imagenet_c import CORRUPTIONS, kind_of
from counterfoil.report import PaperTable

_SEVERITIES = ("1", "2", "3", "4", "5")


def tables(study: Study) -> Sequence[PaperTable]:
    """CE by corruption and mCE, and the errors behind them."""
    there = set(study.answers.conditions)
    whole = [name for name in CORRUPTIONS if all(Condition(*kind_of(name, level)) in there for level in _SEVERITIES)]
    errors = {model: _errors(top1(study), model, whole) for model in study.files}
    return [_relative(study, whole, errors), _plain(whole, errors)]


def _relative(study: Study, whole: Sequence[str], errors: dict[str, dict[str, list[float]]]) -> PaperTable:
    mean = "mCE" if len(whole) == len(CORRUPTIONS) else f"mean CE of {len(whole)} corruptions"
    absent = [name for name in CORRUPTIONS if name not in whole]
    told = f"Not at all five severities in this run, so there is no mCE: {', '.join(absent)}." if absent else ""
    rows: list[tuple[str | float | None, ...]] = []
    for model, found in errors.items():
        result = corruption_error(found) if found else None
        cells = [*result.by_corruption.values(), result.mean] if result else [None] * (len(whole) + 1)
        rows.append((model, *cells))
    return PaperTable(
        "ImageNet-C, corruption error",
        "CE = sum of top-1 errors over five severities / AlexNet's, in percent; mCE = their mean over fifteen"
        " corruptions.",
        ("model", *(f"CE, {name}" for name in whole), mean),
        tuple(rows),
        notes_of(study, told),
    )


def _plain(whole: Sequence[str], errors: dict[str, dict[str, list[float]]]) -> PaperTable:
    rows: list[tuple[str | float | None, ...]] = []
    for model, found in errors.items():
        means = [100 * sum(values) / len(values) for values in found.values()]
        cells = [*means, sum(means) / len(means)] if means else [None] * (len(whole) + 1)
        rows.append((model, *cells))
    return PaperTable(
        "ImageNet-C, error",
        "Mean top-1 error over five severities, in percent, and its mean over the corruptions, as they are.",
        ("model", *(f"error, {name}" for name in whole), "mean error"),
        tuple(rows),
        noted("" if whole else "No corruption has all five severities in this run."),
    )


def _errors(scores: Scores, model: str, corruptions: Sequence[str]) -> dict[str, list[float]]:
    """Shares wrong by corruption, one per severity; nothing where an answer to a whole folder is lost."""
    found: dict[str, list[float]] = {}
    for name in corruptions:
        accuracies = [scores.accuracy(model, [kind_of(name, level)]) for level in _SEVERITIES]
        found[name] = [1 - value / 100 for value in accuracies if value is not None]
    return found if all(len(values) == len(_SEVERITIES) for values in found.values()) else {}
