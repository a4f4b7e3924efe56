"""The numbers of mining as records, and the files that hold them: mining.json and mining.csv."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from counterfoil.report.csv_tables import to_csv
from counterfoil.statistics.intervals import Estimate
from counterfoil.study.examples import Example
from counterfoil.study.failure_modes import FailureModes
from counterfoil.types import Skipped

Role: TypeAlias = Literal["surrogate", "target"]
ALL = "all"  # in place of an attribute, edit or level: all together


class MinedModel(NamedTuple):
    """A model that was asked, with its accuracies."""

    name: str
    role: Role
    family: str
    digest: str
    original: Estimate  # accuracy on the originals of the candidates
    candidates: Estimate  # accuracy on all candidates
    kept: Estimate  # accuracy on the kept pictures; low by construction for a surrogate
    unscored: int  # answers to candidates that could not be scored


class Yield(NamedTuple):
    """The share of an attribute, edit or level that is kept; "all" stands for several together."""

    attribute: str
    edit: str
    level: str
    candidates: int
    kept: int
    share: Estimate


class Transfer(NamedTuple):
    """How often a target, or a family of targets, fails on the selected pictures."""

    name: str
    family: str
    unseen: bool  # no surrogate is of its family
    failing: Estimate  # of the kept pictures
    base: Estimate  # of all candidates
    more: Estimate  # the difference, in points
    lost: Estimate  # of the kept pictures whose original it has right
    lost_base: Estimate  # of the candidates whose original it has right
    lost_more: Estimate


class CurvePoint(NamedTuple):
    """The selections of groups of one size, answered by one model outside those groups."""

    size: int  # surrogates in a group
    groups: int
    empty: int  # groups that keep nothing
    accuracy: Estimate  # mean over the groups
    lowest: float  # accuracy over the groups
    highest: float
    transfer: Estimate  # failures where the model has the original right, mean over the groups


class Curve(NamedTuple):
    """Difficulty and transfer against the number of surrogates, for one unseen model."""

    model: str
    role: Role  # a surrogate is measured only on groups without it
    points: tuple[CurvePoint, ...]


class SizeYield(NamedTuple):
    """How much groups of one size keep."""

    size: int
    groups: int
    share: float  # of the candidates, mean over the groups
    lowest: float
    highest: float


class SelectionBias(NamedTuple):
    """How much lower a surrogate's accuracy is because it took part in the selection."""

    model: str
    chosen_by_all: Estimate  # its accuracy on the pictures that all surrogates selected
    chosen_by_others: Estimate
    bias: Estimate  # points
    adjusted: Estimate  # points, minus what targets lose from the one set to the other
    pictures_of_others: int


class Spread(NamedTuple):
    """How evenly pictures are spread over groups; empty groups count."""

    groups: int  # among the candidates
    filled: int  # with a kept picture
    evenness: float  # entropy over its maximum: 1 even, 0 all in one group; NaN with one group
    effective: float  # number of equal groups with the same entropy
    gini: float  # 0 even, towards 1 all in one group
    largest: float  # share of the pictures in the largest group


class SpreadRow(NamedTuple):
    """How evenly candidates or kept pictures are spread over classes or attributes."""

    over: Literal["class", "attribute"]
    of: Literal["candidates", "kept"]
    spread: Spread
    largest: str  # the group with most pictures


class WrongAnswers(NamedTuple):
    """Whether the surrogates make the same error on the kept pictures, and how often a target makes it too."""

    common: Estimate  # of the kept pictures that several surrogates fail on: all of these name the same class
    followed: Mapping[str, Estimate]  # by target: of its failures there, the share that names that class too


class Candidate(NamedTuple):
    """One candidate as listed in mining.csv."""

    variant_id: str
    sample_id: str
    label: str
    attribute: str
    edit: str
    level: str
    kept: bool
    right: tuple[float, ...]  # by model: 1, 0, or NaN where it was not scored


@dataclass(frozen=True, kw_only=True)
class MiningContent:
    """The content of the page, the sentences and the tables."""

    workspace: str
    rule: str
    models: Sequence[MinedModel]  # surrogates first
    photos: int  # with a candidate
    candidates: int
    chosen: int  # by the rule
    kept: int  # after balancing
    settings: Mapping[str, int]  # number that other settings of the rule would select
    yields: Sequence[Yield]
    transfers: Sequence[Transfer]
    families: Sequence[Transfer]
    curves: Sequence[Curve]
    sizes: Sequence[SizeYield]
    biases: Sequence[SelectionBias]
    spreads: Sequence[SpreadRow]
    classes: Sequence[tuple[str, int, int]]  # label, candidates, kept
    wrong_answers: WrongAnswers
    failures: FailureModes
    pictures: Sequence[Candidate] = ()
    examples: Sequence[Example] = ()
    names: Mapping[str, str] = field(default_factory=dict)  # readable names by label
    notes: Sequence[str] = ()  # what was left out or could not be computed
    skipped: Sequence[Skipped] = ()
    command: str = ""
    digest: str = ""  # of the workspace

    @property
    def surrogates(self) -> list[MinedModel]:
        """The models that selected the pictures."""
        return [model for model in self.models if model.role == "surrogate"]

    @property
    def targets(self) -> list[MinedModel]:
        """The models that took no part in the selection."""
        return [model for model in self.models if model.role == "target"]


MINING_FORMAT = 1  # raised when a key of mining.json changes its meaning or is removed
_DIGITS = 6  # significant digits, so that small p values are kept
_LISTED = ("models", "yields", "transfers", "families", "curves", "sizes", "biases", "spreads")


def render_mining_json(content: MiningContent) -> dict[str, object]:
    """Return the content of mining.json: null where there is no number; shares in percent, differences in points."""
    plain = ("workspace", "rule", "photos", "candidates", "chosen", "kept", "command", "digest")
    return {
        "format": MINING_FORMAT,
        **{name: getattr(content, name) for name in plain},
        "settings": dict(content.settings),
        "notes": list(content.notes),
        **{name: _plain(getattr(content, name)) for name in _LISTED},
        "classes": [{"label": label, "candidates": n, "kept": kept} for label, n, kept in content.classes],
        "wrong_answers": _plain(content.wrong_answers),
        "confusions": _plain(content.failures.confusions),
        "lenders": _plain(content.failures.donors),
        "kept_ids": [row.variant_id for row in content.pictures if row.kept],
    }


def render_mining_csv(content: MiningContent) -> str:
    """Return one line per candidate: whether it was kept, and by model right (1), wrong (0) or not scored (empty)."""
    names = ("variant_id", "sample_id", "label", "attribute", "edit", "level")
    lines = (
        [*(getattr(row, name) for name in names), int(row.kept)]
        + ["" if math.isnan(value) else int(value) for value in row.right]
        for row in content.pictures
    )
    return to_csv([*names, "kept", *(f"{model.role} {model.name}" for model in content.models)], lines)


def _plain(value: object) -> object:
    """Convert records and their estimates to JSON types."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") + 0.0 if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): _plain(member) for name, member in value.items()}
    if hasattr(value, "_asdict"):
        return {name: _plain(member) for name, member in value._asdict().items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(member) for member in value]
    return value
