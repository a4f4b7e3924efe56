"""Accuracies with and without verification; effect of verification in sentences.

Without verification stand all pictures that people decided on, with it those that they kept. Both are of the same
photos, so a change has an interval of its own, from what each photo adds to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.report.words import interval, number
from counterfoil.statistics.accuracy import ALL
from counterfoil.statistics.annotators import UNDECIDED
from counterfoil.statistics.answers import encode_labels
from counterfoil.statistics.intervals import Estimate, estimate
from counterfoil.statistics.shares import PhotoCounts, estimate_share, mean_share, pooled_share, share_change
from counterfoil.store.parquet import read_table
from counterfoil.store.prediction_tables import locate_predictions, read_run
from counterfoil.store.workspace import Workspace
from counterfoil.study.runs import find_surrogates
from counterfoil.types import Run, StoredVariant, VerificationResult

_FEWEST = 10  # kept pictures below which an attribute is not told


class KeptShare(NamedTuple):
    """How many pictures of an attribute people confirmed."""

    attribute: str  # or "all"
    decided: int
    undecided: int  # answered, but the rule came to nothing
    kept: int
    share: Estimate  # kept of decided, in percent


class AccuracyChange(NamedTuple):
    """One model and attribute; accuracies in percent, drops and changes in points."""

    model: str
    surrogate: bool  # it chose the pictures: its accuracies are low by construction
    attribute: str  # or "all"
    accuracy_without: Estimate  # without verification
    accuracy_with: Estimate
    accuracy_change: Estimate  # with minus without
    drop_without: Estimate  # against the originals; n counts photos
    drop_with: Estimate
    drop_change: Estimate


def describe_kept(row: KeptShare) -> str:
    """How much people kept."""
    what = "pictures" if row.attribute == ALL else f"pictures of {row.attribute}"
    undecided = f", {row.undecided} undecided" if row.undecided else ""
    return (
        f"People keep {row.kept} of {row.decided} {what}: {number(row.share.value)} % {interval(row.share)}{undecided}."
    )


def describe_changes(rows: Sequence[AccuracyChange]) -> Iterator[str]:
    """Every model that had no say in the choice, then the surrogates together."""
    others = [row for row in rows if not row.surrogate]
    if others:
        yield (
            "Accuracies below are over the pictures that people decided on (without verification) and over those that"
            " they kept (with it); drops are against the originals; in brackets 95 % intervals over photos."
        )
    for model in dict.fromkeys(row.model for row in others):
        yield from _describe_model(model, [row for row in others if row.model == model])
    surrogates = [row for row in rows if row.surrogate and row.attribute == ALL]
    if surrogates:
        told = "; ".join(f"{row.model} (surrogate) {_describe_accuracies(row)}" for row in surrogates)
        yield f"Surrogates chose the pictures, so their accuracies are low by construction: {told}."


def _describe_model(model: str, rows: Sequence[AccuracyChange]) -> Iterator[str]:
    """All pictures, then the attributes of which enough is kept."""
    enough = [row for row in rows if row.attribute == ALL or _count_kept(row) >= _FEWEST]
    few = [f"{row.attribute} ({_count_kept(row)})" for row in rows if row not in enough and _count_kept(rows[0])]
    for row in enough:
        yield f"{model}, {row.attribute}: accuracy {_describe_accuracies(row)}{_describe_changes(row)}."
    if few:
        yield f"{model}: fewer than {_FEWEST} pictures are kept, too few to say anything, of {', '.join(few)}."


def _count_kept(row: AccuracyChange) -> int:
    return row.accuracy_change.n


def _describe_accuracies(row: AccuracyChange) -> str:
    without, with_it = row.accuracy_without, row.accuracy_with
    kept = f"{number(with_it.value)} % with it (n = {with_it.n})" if with_it.n else "none with it, since none is kept"
    return f"{number(without.value)} % without verification (n = {without.n}), {kept}"


def _describe_changes(row: AccuracyChange) -> str:
    """What became of the accuracy and the drop; nothing where people kept no picture, once where they kept all."""
    if not row.accuracy_with.n:
        return ""
    if row.accuracy_with.n == row.accuracy_without.n:
        return ": nothing changes on these photos"
    drop = f"; drop {_describe_drops(row)}" if row.drop_without.n else ""
    return f", change {_describe_change(row.accuracy_change)}{drop}"


def _describe_drops(row: AccuracyChange) -> str:
    change = _describe_change(row.drop_change)
    photos = f"n = {row.drop_without.n} and {row.drop_with.n} photos"
    return f"{number(row.drop_without.value)} and {number(row.drop_with.value)} points ({photos}), change {change}"


def _describe_change(found: Estimate) -> str:
    """A change with its interval, or why it has none."""
    if math.isnan(found.value):
        return "undefined, since nothing that is kept has an original to compare with"
    if math.isnan(found.ci_low):
        return f"{number(found.value)} points (no interval: too few photos)"
    return f"{number(found.value)} points {interval(found)}"


class VerificationEffect(NamedTuple):
    """What verification did to the pictures and to the models."""

    confirmed: tuple[KeptShare, ...]
    changed: tuple[AccuracyChange, ...]
    waiting: int  # pictures that mining kept and nobody decided on yet

    @property
    def lines(self) -> list[str]:
        """The same in sentences."""
        told = [*map(describe_kept, self.confirmed), *describe_changes(self.changed)]
        return [*told, f"{self.waiting} mined pictures have no decision yet."] if self.waiting else told


def measure_effect(workspace: Workspace, runs: Sequence[Path] = ()) -> VerificationEffect:
    """Over runs that show the workspace to models; over those that mining left there where none are given."""
    verified = workspace.verified
    if verified is None or not verified.decisions:
        raise UserError(
            f"expected people's decisions in {workspace.folder}, got none yet; run `counterfoil verify decide` first"
        )
    workspace.check_unchanged(verified.workspace_digest, "people verified it")
    folders = list(runs) or _find_mined_runs(workspace)
    compared = _Comparison(workspace, verified)
    mined = workspace.mined
    surrogates = {} if mined is None else mined.surrogates
    waiting = 0 if mined is None else len(set(mined.kept) - {row.variant_id for row in verified.decisions})
    rows = [row for folder in folders for row in compared.of_run(folder, surrogates)]
    return VerificationEffect(tuple(compared.confirmed), tuple(rows), waiting)


def _find_mined_runs(workspace: Workspace) -> list[Path]:
    """The runs that mining left and that are over the pictures as they are now."""
    found = sorted(path.parent for path in (workspace.folder / "mining" / "run").glob("*/run.json"))
    current = [folder for folder in found if _is_finished(folder) and _digest_of(folder) == workspace.digest]
    if not current:
        raise UserError(
            "expected a run over the workspace, got none; give one with --run, made by"
            f" `counterfoil evaluate {workspace.folder} --model MODEL --out RUN`"
        )
    return current


def _is_finished(folder: Path) -> bool:
    return (folder / "variants.parquet").is_file()


def _digest_of(folder: Path) -> str:
    return read_run(folder).collection_digest


@dataclass(frozen=True)
class _Comparison:
    workspace: Workspace
    verified: VerificationResult

    @cached_property
    def pictures(self) -> tuple[StoredVariant, ...]:
        """What people decided on, in the order of the manifest."""
        return self.workspace.chosen([row.variant_id for row in self.verified.decisions])

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        wanted = {row.variant_id for row in self.verified.decisions if row.kept}
        return np.array([stored.variant.id in wanted for stored in self.pictures], bool)

    @cached_property
    def samples(self) -> tuple[tuple[str, ...], NDArray[np.intp]]:
        return encode_labels(stored.variant.sample_id or stored.variant.id for stored in self.pictures)

    @property
    def photos(self) -> PhotoCounts:
        return PhotoCounts(self.samples[1], len(self.samples[0]))

    @cached_property
    def attributes(self) -> dict[str, NDArray[np.bool_]]:
        """All pictures, then those of each attribute."""
        names = np.array([stored.variant.attribute for stored in self.pictures], object)
        found = {ALL: np.ones(len(names), bool)}
        return {**found, **{name: names == name for name in dict.fromkeys(names)}}

    @property
    def confirmed(self) -> Iterator[KeptShare]:
        """How much people kept of each attribute."""
        open_ones = {row.variant_id for row in self.verified.decisions if UNDECIDED in row.decided.values()}
        undecided = np.array([stored.variant.id in open_ones for stored in self.pictures], bool)
        for attribute, among in self.attributes.items():
            found = estimate_share(pooled_share(self.kept, among, self.photos)).scaled(100)
            counts = (int(among.sum()), int((undecided & among).sum()), int((self.kept & among).sum()))
            yield KeptShare(attribute, *counts, found)

    def of_run(self, folder: Path, surrogates: Mapping[str, str]) -> Iterator[AccuracyChange]:
        """Every model of a run."""
        run = read_run(folder)
        chose = find_surrogates(replace(run, surrogates=surrogates))
        self._check_pictures(folder, run)
        for model, path in locate_predictions(folder, run.models).items():
            table = read_table(path, ["variant_id", "sample_id", "attribute", "outcome", "correct"])
            right = self._right(table)
            if not np.isfinite(right).any():
                raise UserError(_other_pictures(folder))
            original = self._originals(table)
            for attribute, among in self.attributes.items():
                yield AccuracyChange(model, model in chose, attribute, *self._accuracies(right, among),
                              *self._drops(right, original, among))  # fmt: skip

    def _check_pictures(self, folder: Path, run: Run) -> None:
        """Refuse what shows no model, other pictures, or a choice of them alone, as a benchmark's run does."""
        if not run.models or run.collection_digest not in ("", self.workspace.digest):
            raise UserError(_other_pictures(folder))

    def _right(self, table: Mapping[str, NDArray[np.generic]]) -> NDArray[np.float64]:
        """1 right, 0 wrong, NaN not scored, by picture."""
        rows = zip(table["variant_id"], table["outcome"], table["correct"], strict=True)
        said = {name: float(correct) for name, outcome, correct in rows if outcome == "scored"}
        return np.array([said.get(stored.variant.id, np.nan) for stored in self.pictures])

    def _originals(self, table: Mapping[str, NDArray[np.generic]]) -> NDArray[np.float64]:
        """The same of the unedited pictures, by photo."""
        names = ("sample_id", "attribute", "outcome", "correct")
        rows = zip(*(table[name] for name in names), strict=True)
        said = {name: float(right) for name, kind, outcome, right in rows if (kind, outcome) == ("original", "scored")}
        return np.array([said.get(name, np.nan) for name in self.samples[0]])

    def _accuracies(self, right: NDArray[np.float64], among: NDArray[np.bool_]) -> Iterator[Estimate]:
        """Without verification, with it, and the change."""
        scored = np.isfinite(right)
        sides = [pooled_share(right == 1, chosen & scored, self.photos) for chosen in (among, among & self.kept)]
        yield from (estimate_share(side).scaled(100) for side in sides)
        yield share_change(*sides).scaled(100)

    def _drops(
        self, right: NDArray[np.float64], original: NDArray[np.float64], among: NDArray[np.bool_]
    ) -> Iterator[Estimate]:
        """The same of the drops: every photo counts once, with the mean of its pictures."""
        lost = [self._lost(right, original, chosen) for chosen in (among, among & self.kept)]
        yield from (estimate(values).scaled(100) for values in lost)
        yield share_change(*map(mean_share, lost)).scaled(100)

    def _lost(
        self, right: NDArray[np.float64], original: NDArray[np.float64], chosen: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """The original's rate minus that of the chosen pictures, by photo; NaN where one of them is missing."""
        rows = chosen & np.isfinite(right)
        photo, photos = self.samples[1][rows], len(original)
        pictures, hits = np.bincount(photo, minlength=photos), np.bincount(photo, right[rows], minlength=photos)
        with np.errstate(invalid="ignore"):  # 0 / 0: no such picture of the photo
            return np.asarray(original - hits / pictures, np.float64)


def _other_pictures(folder: Path) -> str:
    return f"expected a run of models over the workspace that people verified, got {folder}, which is none"
