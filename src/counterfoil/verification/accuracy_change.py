"""The effect of verification: accuracies and drops over the pictures that people decided on and those that they kept.

Both are over the same photos, so the change has its own interval, from each photo's contribution.
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
from counterfoil.report.words import format_interval, format_number
from counterfoil.statistics.annotators import UNDECIDED
from counterfoil.statistics.answers import ALL, encode_labels
from counterfoil.statistics.intervals import Estimate, estimate
from counterfoil.statistics.photo_shares import PhotoCounts, estimate_share, mean_share, pooled_share, share_change
from counterfoil.store.parquet import read_table
from counterfoil.store.prediction_tables import locate_predictions, read_run
from counterfoil.store.workspace import Workspace
from counterfoil.study.runs import find_surrogates
from counterfoil.types import Run, StoredVariant, VerificationResult

_FEWEST = 10  # kept pictures an attribute needs for figures


class KeptShare(NamedTuple):
    """How many pictures of an attribute people kept."""

    attribute: str  # or "all"
    decided: int
    undecided: int  # enough answers, but the rule did not decide
    kept: int
    share: Estimate  # kept of decided, in percent

    def __str__(self) -> str:
        what = "pictures" if self.attribute == ALL else f"pictures of {self.attribute}"
        undecided = f", {self.undecided} undecided" if self.undecided else ""
        share = f"{format_number(self.share.value)} % {format_interval(self.share)}"
        return f"People keep {self.kept} of {self.decided} {what}: {share}{undecided}."


class AccuracyChange(NamedTuple):
    """One model and attribute; accuracies in percent, drops and changes in points."""

    model: str
    surrogate: bool  # it selected the pictures: its accuracies are low by construction
    attribute: str  # or "all"
    accuracy_without: Estimate  # without verification
    accuracy_with: Estimate
    accuracy_change: Estimate  # with minus without
    drop_without: Estimate  # against the originals; n counts photos
    drop_with: Estimate
    drop_change: Estimate

    @property
    def kept(self) -> int:
        """How many pictures of the attribute people kept."""
        return self.accuracy_change.n

    def describe_accuracies(self) -> str:
        """Describe the accuracy without and with verification."""
        without, kept = self.accuracy_without, self.accuracy_with
        with_it = (
            f"{format_number(kept.value)} % with it (n = {kept.n})" if kept.n else "none with it, since none is kept"
        )
        return f"{format_number(without.value)} % without verification (n = {without.n}), {with_it}"

    def describe_changes(self) -> str:
        """Describe the changes of accuracy and drop; empty where people kept no picture."""
        if not self.accuracy_with.n:
            return ""
        if self.accuracy_with.n == self.accuracy_without.n:
            return ": nothing changes on these photos"
        without, kept = self.drop_without, self.drop_with
        drop = (
            f"; drop {format_number(without.value)} and {format_number(kept.value)} points"
            f" (n = {without.n} and {kept.n} photos), change {_describe_change(self.drop_change)}"
        )
        return f", change {_describe_change(self.accuracy_change)}{drop if without.n else ''}"


def _describe_change(change: Estimate) -> str:
    """Describe a change with its interval, or why it has none."""
    if math.isnan(change.value):
        return "not defined, since no kept picture has an original"
    if math.isnan(change.ci_low):
        return f"{format_number(change.value)} points (no interval: too few photos)"
    return f"{format_number(change.value)} points {format_interval(change)}"


def _describe_effect(rows: Sequence[AccuracyChange]) -> Iterator[str]:
    """Yield the lines of every model that took no part in the selection, then the surrogates in one line."""
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
        accuracies = "; ".join(f"{row.model} (surrogate) {row.describe_accuracies()}" for row in surrogates)
        yield f"Surrogates chose the pictures, so their accuracies are low by construction: {accuracies}."


def _describe_model(model: str, rows: Sequence[AccuracyChange]) -> Iterator[str]:
    """Yield the line of all pictures, then those of attributes with enough kept pictures."""
    enough = [row for row in rows if row.attribute == ALL or row.kept >= _FEWEST]
    few = [f"{row.attribute} ({row.kept})" for row in rows if row not in enough and rows[0].kept]
    for row in enough:
        yield f"{model}, {row.attribute}: accuracy {row.describe_accuracies()}{row.describe_changes()}."
    if few:
        yield f"{model}: fewer than {_FEWEST} pictures are kept, too few to say anything, of {', '.join(few)}."


class VerificationEffect(NamedTuple):
    """How many pictures people kept, and the changes for the models."""

    kept: tuple[KeptShare, ...]
    changes: tuple[AccuracyChange, ...]
    waiting: int  # pictures that mining kept and that have no decision yet

    @property
    def lines(self) -> list[str]:
        """The effect in sentences."""
        lines = [*map(str, self.kept), *_describe_effect(self.changes)]
        return [*lines, f"{self.waiting} mined pictures have no decision yet."] if self.waiting else lines


def measure_effect(workspace: Workspace, runs: Sequence[Path] = ()) -> VerificationEffect:
    """Measure the effect over these runs on the workspace, or over the runs of mining where none are given."""
    verified = workspace.verified
    if verified is None or not verified.decisions:
        raise UserError(
            f"expected people's decisions in {workspace.folder}, got none yet; run `counterfoil verify decide` first"
        )
    workspace.check_unchanged(verified.workspace_digest, "people verified it")
    folders = list(runs) or _find_mined_runs(workspace)
    comparison = _Comparison(workspace, verified)
    mined = workspace.mined
    surrogates = {} if mined is None else mined.surrogates
    waiting = 0 if mined is None else len(set(mined.kept) - {row.variant_id for row in verified.decisions})
    rows = [row for folder in folders for row in comparison.compare_run(folder, surrogates)]
    return VerificationEffect(tuple(comparison.count_kept()), tuple(rows), waiting)


def _find_mined_runs(workspace: Workspace) -> list[Path]:
    """The finished runs of mining over the present pictures."""
    folders = sorted(path.parent for path in (workspace.folder / "mining" / "run").glob("*/run.json"))
    finished = [folder for folder in folders if (folder / "variants.parquet").is_file()]
    current = [folder for folder in finished if read_run(folder).collection_digest == workspace.digest]
    if not current:
        raise UserError(
            "expected a run over the workspace, got none; give one with --run, made by"
            f" `counterfoil evaluate {workspace.folder} --model MODEL --out RUN`"
        )
    return current


@dataclass(frozen=True)
class _Comparison:
    workspace: Workspace
    verified: VerificationResult

    @cached_property
    def pictures(self) -> tuple[StoredVariant, ...]:
        """The pictures that people decided on, in the order of the manifest."""
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
        everything = {ALL: np.ones(len(names), bool)}
        return {**everything, **{name: names == name for name in dict.fromkeys(names)}}

    def count_kept(self) -> Iterator[KeptShare]:
        """Count how many pictures of each attribute people kept."""
        undecided_ids = {row.variant_id for row in self.verified.decisions if UNDECIDED in row.decided.values()}
        undecided = np.array([stored.variant.id in undecided_ids for stored in self.pictures], bool)
        for attribute, among in self.attributes.items():
            kept = estimate_share(pooled_share(self.kept, among, self.photos)).scaled(100)
            counts = (int(among.sum()), int((undecided & among).sum()), int((self.kept & among).sum()))
            yield KeptShare(attribute, *counts, kept)

    def compare_run(self, folder: Path, surrogates: Mapping[str, str]) -> Iterator[AccuracyChange]:
        """Compare every model of a run."""
        run = read_run(folder)
        chose = find_surrogates(replace(run, surrogates=surrogates))
        self._check_run(folder, run)
        for model, path in locate_predictions(folder, run.models).items():
            table = read_table(path, ["variant_id", "sample_id", "attribute", "outcome", "correct"])
            right = self._right(table)
            if not np.isfinite(right).any():
                raise UserError(_other_pictures(folder))
            original = self._originals(table)
            for attribute, among in self.attributes.items():
                yield AccuracyChange(model, model in chose, attribute, *self._accuracies(right, among),
                              *self._drops(right, original, among))  # fmt: skip

    def _check_run(self, folder: Path, run: Run) -> None:
        """Raise `UserError` for a run without models or over other pictures, such as a benchmark's selection."""
        if not run.models or run.collection_digest not in ("", self.workspace.digest):
            raise UserError(_other_pictures(folder))

    def _right(self, table: Mapping[str, NDArray[np.generic]]) -> NDArray[np.float64]:
        """1 right, 0 wrong, NaN not scored, by picture."""
        rows = zip(table["variant_id"], table["outcome"], table["correct"], strict=True)
        scored = {name: float(correct) for name, outcome, correct in rows if outcome == "scored"}
        return np.array([scored.get(stored.variant.id, np.nan) for stored in self.pictures])

    def _originals(self, table: Mapping[str, NDArray[np.generic]]) -> NDArray[np.float64]:
        """The same for the originals, by photo."""
        names = ("sample_id", "attribute", "outcome", "correct")
        rows = zip(*(table[name] for name in names), strict=True)
        originals = (row for row in rows if row[1:3] == ("original", "scored"))
        scored = {name: float(right) for name, _, _, right in originals}
        return np.array([scored.get(name, np.nan) for name in self.samples[0]])

    def _accuracies(self, right: NDArray[np.float64], among: NDArray[np.bool_]) -> Iterator[Estimate]:
        """Without verification, with it, and the change."""
        scored = np.isfinite(right)
        sides = [pooled_share(right == 1, chosen & scored, self.photos) for chosen in (among, among & self.kept)]
        yield from (estimate_share(side).scaled(100) for side in sides)
        yield share_change(*sides).scaled(100)

    def _drops(
        self, right: NDArray[np.float64], original: NDArray[np.float64], among: NDArray[np.bool_]
    ) -> Iterator[Estimate]:
        """The same for drops: every photo counts once, with the mean of its pictures."""
        lost = [self._lost(right, original, chosen) for chosen in (among, among & self.kept)]
        yield from (estimate(values).scaled(100) for values in lost)
        yield share_change(*map(mean_share, lost)).scaled(100)

    def _lost(
        self, right: NDArray[np.float64], original: NDArray[np.float64], chosen: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """The original's rate minus that of the selected pictures, by photo; NaN where one of them is missing."""
        rows = chosen & np.isfinite(right)
        photo, photos = self.samples[1][rows], len(original)
        pictures, hits = np.bincount(photo, minlength=photos), np.bincount(photo, right[rows], minlength=photos)
        with np.errstate(invalid="ignore"):  # 0 / 0: the photo has no such picture
            return np.asarray(original - hits / pictures, np.float64)


def _other_pictures(folder: Path) -> str:
    return f"expected a run of models over the workspace that people verified, got {folder}, which is none"
