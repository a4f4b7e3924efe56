"""ImageNet-C's tables: corruption errors relative to AlexNet's and their mean (mCE), and the plain errors."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from counterfoil.errors import UserError
from counterfoil.published.condition_scores import Scores, collect_notes, drop_empty, score_top1
from counterfoil.published.imagenet_c.reader import CORRUPTIONS, corruption_kind
from counterfoil.report.content import PaperTable
from counterfoil.statistics.answers import Condition
from counterfoil.study.runs import Study

SEVERITIES = 5


class CorruptionError(NamedTuple):
    """CE by corruption and their mean, in percent of AlexNet's error."""

    by_corruption: dict[str, float]
    mean: float  # mCE


@cache
def alexnet_errors() -> dict[str, float]:
    """AlexNet's error by corruption, mean over five severities, as published with ImageNet-C."""
    lines = (
        files("counterfoil.published.imagenet_c").joinpath("alexnet_error.csv").read_text(encoding="utf-8").splitlines()
    )
    return {row["corruption"]: float(row["error"]) for row in csv.DictReader(lines)}


def corruption_error(errors: Mapping[str, Sequence[float]]) -> CorruptionError:
    """CE and mCE from errors (shares) by corruption, one per severity."""
    reference = alexnet_errors()
    _check(errors, reference)
    ratios = {name: 100 * float(np.mean(values)) / reference[name] for name, values in errors.items()}
    return CorruptionError(ratios, float(np.mean(list(ratios.values()))))


def _check(errors: Mapping[str, Sequence[float]], reference: Mapping[str, float]) -> None:
    unknown = sorted(set(errors) - set(reference))
    if unknown or not errors:
        raise UserError(f"expected corruptions of {', '.join(reference)}, got {', '.join(unknown) or 'none'}")
    short = [name for name, values in errors.items() if len(values) != SEVERITIES]
    if short:
        raise UserError(
            f"expected {SEVERITIES} severities, got {len(errors[short[0]])} of {short[0]}; CE needs all five"
        )


_SEVERITIES = ("1", "2", "3", "4", "5")


def tables(study: Study) -> Sequence[PaperTable]:
    """CE by corruption and mCE, and the errors behind them."""
    there = set(study.answers.conditions)
    whole = [
        name for name in CORRUPTIONS if all(Condition(*corruption_kind(name, level)) in there for level in _SEVERITIES)
    ]
    errors = {model: _errors(score_top1(study), model, whole) for model in study.files}
    return [_relative(study, whole, errors), _plain(whole, errors)]


def _relative(study: Study, whole: Sequence[str], errors: dict[str, dict[str, list[float]]]) -> PaperTable:
    mean = "mCE" if len(whole) == len(CORRUPTIONS) else f"mean CE of {len(whole)} corruptions"
    absent = [name for name in CORRUPTIONS if name not in whole]
    note = f"Not at all five severities in this run, so there is no mCE: {', '.join(absent)}." if absent else ""
    rows: list[tuple[str | float | None, ...]] = []
    for model, by_corruption in errors.items():
        result = corruption_error(by_corruption) if by_corruption else None
        cells = [*result.by_corruption.values(), result.mean] if result else [None] * (len(whole) + 1)
        rows.append((model, *cells))
    return PaperTable(
        title="ImageNet-C, corruption error",
        rule="CE = sum of top-1 errors over five severities / AlexNet's, in percent; mCE = their mean over fifteen"
        " corruptions.",
        columns=("model", *(f"CE, {name}" for name in whole), mean),
        rows=tuple(rows),
        footnotes=collect_notes(study, note),
    )


def _plain(whole: Sequence[str], errors: dict[str, dict[str, list[float]]]) -> PaperTable:
    rows: list[tuple[str | float | None, ...]] = []
    for model, by_corruption in errors.items():
        means = [100 * sum(values) / len(values) for values in by_corruption.values()]
        cells = [*means, sum(means) / len(means)] if means else [None] * (len(whole) + 1)
        rows.append((model, *cells))
    return PaperTable(
        title="ImageNet-C, error",
        rule="Mean top-1 error over five severities, in percent, and its mean over the corruptions, as they are.",
        columns=("model", *(f"error, {name}" for name in whole), "mean error"),
        rows=tuple(rows),
        footnotes=drop_empty("" if whole else "No corruption has all five severities in this run."),
    )


def _errors(scores: Scores, model: str, corruptions: Sequence[str]) -> dict[str, list[float]]:
    """Error shares by corruption, one per severity; empty where all answers to a folder are missing."""
    errors: dict[str, list[float]] = {}
    for name in corruptions:
        accuracies = [scores.accuracy(model, [corruption_kind(name, level)]) for level in _SEVERITIES]
        errors[name] = [1 - value / 100 for value in accuracies if value is not None]
    return errors if all(len(values) == len(_SEVERITIES) for values in errors.values()) else {}
