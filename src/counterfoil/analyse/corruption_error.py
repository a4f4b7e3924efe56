"""ImageNet-C's corruption error: errors summed over severities, divided by AlexNet's."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from counterfoil.errors import UserError

SEVERITIES = 5


class CorruptionError(NamedTuple):
    """CE by corruption and their mean, in percent of AlexNet's error."""

    by_corruption: dict[str, float]
    mean: float  # mCE


@cache
def alexnet_errors() -> dict[str, float]:
    """AlexNet's error by corruption, mean over five severities, as published with ImageNet-C."""
    lines = files("counterfoil.analyse").joinpath("alexnet_error.csv").read_text(encoding="utf-8").splitlines()
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
