"""What a question is answered from, and the form of an answer."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.labels.label_space import match_label_space
from counterfoil.report.words import ABSENT, capitalize_first, format_number
from counterfoil.statistics.answers import NO_ATTRIBUTE, Answers, Condition, Details
from counterfoil.statistics.effective_robustness import Baseline, fit_baseline
from counterfoil.statistics.families import correct_tests
from counterfoil.statistics.intervals import Estimate
from counterfoil.statistics.significance import SIGNIFICANCE
from counterfoil.statistics.variance_score import ScoreDefinition
from counterfoil.store.parquet import read_table
from counterfoil.store.workspace import Workspace
from counterfoil.study.runs import Study

SEED = 0  # of resampled intervals: the same answers give the same page
FEWEST_PHOTOS = 10  # for a conclusion about one group of pictures
_NORMAL = NormalDist()
_SMALLEST = 1e-9  # of a ratio whose logarithm is taken
FEWEST_IN_CELL = 5  # photos of a class in a scenario, for an accuracy that is more than noise


class MeasuredNumber(NamedTuple):
    """One number of an answer, with its 95 % interval and what it is a number of."""

    measure: str
    model: str  # empty where it is about all models, or about the set
    value: float
    low: float = math.nan  # NaN where a number has no interval
    high: float = math.nan
    n: int = 0
    of: str = "photos"  # what n counts
    unit: str = ""  # percent, points, ratio, p, ...
    decimals: int = 1

    @property
    def text(self) -> str:
        """The value with its unit and interval."""
        if math.isnan(self.value):
            return ABSENT
        sign = {"percent": " %", "points": " points"}.get(self.unit, "")
        number = f"{self.value:.2g}" if self.unit == "p" else format_number(self.value, self.decimals)
        return f"{number}{sign}{self.interval}"

    @property
    def interval(self) -> str:
        """The interval in brackets; empty where there is none."""
        if math.isnan(self.low) or math.isnan(self.high):
            return ""
        low, high = (format_number(bound, self.decimals) for bound in (self.low, self.high))
        return f" [{low}, {high}]"


def measured(
    measure: str, model: str, row: Estimate, unit: str, *, of: str = "photos", decimals: int = 1
) -> MeasuredNumber:
    """A number from an estimate."""
    return MeasuredNumber(measure, model, *row, of=of, unit=unit, decimals=decimals)


def replace_value(number: MeasuredNumber, measure: str, value: float) -> MeasuredNumber:
    """Another measure of the same model, photos and unit, without an interval."""
    return number._replace(measure=measure, value=value, low=math.nan, high=math.nan)


def select_clear(
    numbers: Sequence[MeasuredNumber], attributes: Sequence[str], *, nothing: Literal[0, 1] = 0
) -> list[MeasuredNumber]:
    """The numbers that a sentence may call different from nothing, corrected in the families of the table of drops.

    A sentence that names what stands out among many rows would nearly always find something. The p is that of a normal
    estimate with this interval.

    Args:
        numbers: With 95 % intervals.
        attributes: Of the numbers.
        nothing: The value that says nothing: 0, or 1 for a ratio.
    """
    tests = [
        (row.model, attribute, _p_of_interval(row, ratio=nothing == 1))
        for row, attribute in zip(numbers, attributes, strict=True)
    ]
    return [row for row, own in zip(numbers, correct_tests(tests), strict=True) if own.p_adjusted < SIGNIFICANCE]


def _p_of_interval(row: MeasuredNumber, *, ratio: bool) -> float:
    """The two-sided p of a normal estimate with this 95 % interval, by the bound on the side of 0, or of 1."""
    value, low, high = (math.log(max(x, _SMALLEST)) if ratio else x for x in (row.value, row.low, row.high))
    distance, reach = abs(value), value - low if value > 0 else high - value
    if math.isnan(reach):
        return math.nan
    if not reach > 0:
        return 0.0 if distance > 0 else 1.0
    return 2.0 * _NORMAL.cdf(-distance / reach * _NORMAL.inv_cdf(0.975))


def join_clauses(*clauses: str, otherwise: str = "") -> str:
    """Return one sentence of the clauses that are not empty; `otherwise` where all are."""
    text = "; ".join(clause for clause in clauses if clause) or otherwise
    return f"{capitalize_first(text)}."


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a run replies to a question."""

    answer: str  # one sentence, or a few
    numbers: tuple[MeasuredNumber, ...] = ()
    notes: tuple[str, ...] = ()  # how the numbers are defined, and what to beware of


class NotJudged(Exception):
    """A question that this run cannot answer."""

    def __init__(self, needs: str, add: str) -> None:
        super().__init__(f"not judged: needs {needs}; {add}")


@dataclass(frozen=True, kw_only=True)
class AnalysisOptions:
    """What a user may choose."""

    definition: ScoreDefinition = field(default_factory=ScoreDefinition)  # of the variance score
    reference: Path | None = None  # CSV of reference models for effective robustness
    workspace: Path | None = None  # with people's verdicts on the pictures


@dataclass(frozen=True)
class Evidence:
    """One or several runs over the same pictures, and the files beside them."""

    study: Study
    options: AnalysisOptions

    @property
    def answers(self) -> Answers:
        """Every answer of every model."""
        return self.study.answers

    @property
    def details(self) -> Details:
        """Labels and confidences beside the answers."""
        return self.study.details

    @property
    def models(self) -> tuple[str, ...]:
        """The models of the run."""
        return self.answers.models

    @cached_property
    def classes(self) -> int:
        """The number of classes that occur; 0 where the photos' classes are unknown."""
        label = self.details.photo_labels
        return len(np.unique(label[label >= 0]))

    @cached_property
    def class_names(self) -> dict[str, str]:
        """Readable names of the classes that occur."""
        space = match_label_space(list(self.details.labels))
        return {label: space.name_of(label) for label in self.details.labels}

    @property
    def attributes(self) -> list[str]:
        """The attributes that were edited, without control, diagnostics and combinations."""
        every = dict.fromkeys(condition.attribute for condition in self.answers.conditions)
        return [attribute for attribute in every if attribute not in NO_ATTRIBUTE]

    def require_attributes(self) -> None:
        """Raise `NotJudged` where nothing was edited."""
        if not self.attributes:
            raise NotJudged("edited pictures", "add an edit to the recipe, or a condition to the table")

    def require_models(self, least: int, what: str) -> None:
        """Raise `NotJudged` where there are fewer models."""
        if len(self.models) < least:
            raise NotJudged(
                f"{least} models {what}, got {len(self.models)}",
                f"add --model ADDRESS {least - len(self.models)} more"
                f" time{'s' if least - len(self.models) > 1 else ''}, or name several runs over the same pictures",
            )

    def require_originals(self) -> None:
        """Raise `NotJudged` where there is nothing to compare with."""
        if not self.study.has_originals:
            raise NotJudged("the unedited photos", "add their answers, or run an archive that holds them")

    def require_classes(self, least: int) -> None:
        """Raise `NotJudged` where there are fewer classes, or none is known."""
        if not self.classes:
            raise NotJudged("the photos' classes", "add a column `label` to the imported table")
        if self.classes < least:
            raise NotJudged(
                f"photos of {least} classes, got {self.classes}", f"add photos of {least - self.classes} more"
            )

    @cached_property
    def photos_per_class(self) -> int:
        """Photos of the smallest class."""
        label = self.details.photo_labels
        return int(np.unique(label[label >= 0], return_counts=True)[1].min(initial=0))

    def require_photos_per_class(self) -> None:
        """Raise `NotJudged`, with the number that would do, where accuracies of a class are mostly noise."""
        if len(self.answers.samples) < FEWEST_IN_CELL * self.classes:
            raise NotJudged(
                f"{FEWEST_IN_CELL} photos of a class on average, {FEWEST_IN_CELL * self.classes:,} photos of these"
                f" {self.classes} classes, got {len(self.answers.samples):,}",
                "add photos, or leave classes out",
            )

    @cached_property
    def factors(self) -> dict[str, NDArray[np.bool_]] | None:
        """Which photos have each annotated factor, (photos,), under "" those annotated at all; None without a file."""
        path = self.study.folders[0] / "factors.parquet"
        if not path.is_file():
            return None
        table = read_table(path, ["sample_id", "factor"])
        places = {name: place for place, name in enumerate(self.answers.samples)}
        flags: dict[str, NDArray[np.bool_]] = {"": np.zeros(len(places), bool)}
        for sample, factor in zip(table["sample_id"], table["factor"], strict=True):
            if sample in places:
                flags.setdefault(factor, np.zeros(len(places), bool))[places[sample]] = True
                flags[""][places[sample]] = True
        return flags

    @cached_property
    def workspace(self) -> Workspace | None:
        """The workspace that the run is over, or the one that was named."""
        folder = self.options.workspace or Path(self.study.run.images)
        is_one = (folder / "variants.parquet").is_file() and (folder / "pictures").is_dir()
        if not is_one and self.options.workspace is not None:
            raise UserError(f"expected a workspace with variants.parquet and pictures/, got '{folder}'")
        return Workspace(folder) if is_one else None

    @cached_property
    def baselines(self) -> dict[str, Baseline] | None:
        """The lines through the reference models, by attribute ("" for all); None where no file was given."""
        return None if self.options.reference is None else read_reference(self.options.reference)


def name_condition(condition: Condition) -> str:
    """A condition as edit and level."""
    return "original" if condition.attribute == "original" else f"{condition.edit} {condition.level}".strip()


Ask: TypeAlias = Callable[[Evidence], Reply]


def read_reference(path: Path) -> dict[str, Baseline]:
    """The lines of a CSV with the columns model, clean, shifted and, where it has one, attribute; in percent."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"expected a CSV of reference models, got '{path}': {error}") from error
    wanted = ("model", "clean", "shifted")
    header = list(rows[0]) if rows else []
    if not set(wanted) <= set(header):
        raise UserError(f"expected the columns {', '.join(wanted)} in {path}, got {', '.join(header) or 'no row'}")
    groups: dict[str, list[tuple[float, float]]] = {}
    for number, row in enumerate(rows, 2):
        pair = _parse_percent(path, number, row["clean"]), _parse_percent(path, number, row["shifted"])
        groups.setdefault(row.get("attribute") or "", []).append(pair)
    return {name: fit_baseline(*(list(side) for side in zip(*pairs, strict=True))) for name, pairs in groups.items()}


def _parse_percent(path: Path, number: int, text: str | None) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not 0 < value < 100:
        raise UserError(
            f"expected an accuracy in percent, above 0 and below 100, in line {number} of {path}, got '{text}'"
        )
    return value / 100
