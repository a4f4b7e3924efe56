"""What verification changed: how much people confirmed, and every model's accuracy and drop with and without it.

Without verification stand all pictures that people decided on, with it those that they kept. Both are of the same
photos, so a change has an interval of its own, from what each photo adds to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse import Estimate
from counterfoil.analyse.accuracies import ALL
from counterfoil.analyse.answers import coded
from counterfoil.analyse.deciding import UNDECIDED
from counterfoil.analyse.interval import estimate
from counterfoil.analyse.photo_shares import change, mean_over_photos, share_estimate
from counterfoil.errors import UserError
from counterfoil.mine import Photos, share
from counterfoil.pipeline.verified_words import Changed, Confirmed, told_changes, told_confirmed
from counterfoil.report.surrogates import surrogates_among
from counterfoil.store import Workspace, prediction_files, read_table
from counterfoil.store.results import read_run
from counterfoil.types import Exhibit, Run, Verified

__all__ = ["Changed", "Changes", "Confirmed", "changed_by_verification"]


class Changes(NamedTuple):
    """What verification did to the pictures and to the models."""

    confirmed: tuple[Confirmed, ...]
    changed: tuple[Changed, ...]
    waiting: int  # pictures that mining kept and nobody decided on yet

    @property
    def lines(self) -> list[str]:
        """The same in sentences."""
        told = [*map(told_confirmed, self.confirmed), *told_changes(self.changed)]
        return [*told, f"{self.waiting} mined pictures have no decision yet."] if self.waiting else told


def changed_by_verification(workspace: Workspace, runs: Sequence[Path] = ()) -> Changes:
    """Over runs that show the workspace to models; over those that mining left there where none are given."""
    verified = workspace.verified
    if verified is None or not verified.decisions:
        raise UserError(
            f"expected people's decisions in {workspace.folder}, got none yet; run `counterfoil verify decide` first"
        )
    workspace.check_unchanged(verified.workspace_digest, "people verified it")
    folders = list(runs) or _mined_runs(workspace)
    compared = _Compared(workspace, verified)
    mined = workspace.mined
    surrogates = {} if mined is None else mined.surrogates
    waiting = 0 if mined is None else len(set(mined.kept) - {row.variant_id for row in verified.decisions})
    rows = [row for folder in folders for row in compared.of_run(folder, surrogates)]
    return Changes(tuple(compared.confirmed), tuple(rows), waiting)


def _mined_runs(workspace: Workspace) -> list[Path]:
    """The runs that mining left and that are over the pictures as they are now."""
    found = sorted(path.parent for path in (workspace.folder / "mining" / "run").glob("*/run.json"))
    current = [folder for folder in found if _finished(folder) and _digest_of(folder) == workspace.digest]
    if not current:
        raise UserError(
            "expected a run over the workspace, got none; give one with --run, made by"
            f" `counterfoil evaluate {workspace.folder} --model MODEL --out RUN`"
        )
    return current


def _finished(folder: Path) -> bool:
    return (folder / "variants.parquet").is_file()


def _digest_of(folder: Path) -> str:
    return read_run(folder).collection_digest


@dataclass(frozen=True)
class _Compared:
    workspace: Workspace
    verified: Verified

    @cached_property
    def pictures(self) -> tuple[Exhibit, ...]:
        """What people decided on, in the order of the manifest."""
        return self.workspace.chosen([row.variant_id for row in self.verified.decisions])

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        wanted = {row.variant_id for row in self.verified.decisions if row.kept}
        return np.array([exhibit.variant.id in wanted for exhibit in self.pictures], bool)

    @cached_property
    def samples(self) -> tuple[tuple[str, ...], NDArray[np.intp]]:
        return coded(exhibit.variant.sample_id or exhibit.variant.id for exhibit in self.pictures)

    @property
    def photos(self) -> Photos:
        return Photos(self.samples[1], len(self.samples[0]))

    @cached_property
    def attributes(self) -> dict[str, NDArray[np.bool_]]:
        """All pictures, then those of each attribute."""
        names = np.array([exhibit.variant.attribute for exhibit in self.pictures], object)
        found = {ALL: np.ones(len(names), bool)}
        return {**found, **{name: names == name for name in dict.fromkeys(names)}}

    @property
    def confirmed(self) -> Iterator[Confirmed]:
        """How much people kept of each attribute."""
        open_ones = {row.variant_id for row in self.verified.decisions if UNDECIDED in row.decided.values()}
        undecided = np.array([exhibit.variant.id in open_ones for exhibit in self.pictures], bool)
        for attribute, among in self.attributes.items():
            found = share_estimate(share(self.kept, among, self.photos)).scaled(100)
            counts = (int(among.sum()), int((undecided & among).sum()), int((self.kept & among).sum()))
            yield Confirmed(attribute, *counts, found)

    def of_run(self, folder: Path, surrogates: Mapping[str, str]) -> Iterator[Changed]:
        """Every model of a run."""
        run = read_run(folder)
        chose = surrogates_among(replace(run, surrogates=surrogates))
        self._check_pictures(folder, run)
        for model, path in prediction_files(folder, run.models).items():
            table = read_table(path, ["variant_id", "sample_id", "attribute", "outcome", "correct"])
            right = self._right(table)
            if not np.isfinite(right).any():
                raise UserError(_other_pictures(folder))
            original = self._originals(table)
            for attribute, among in self.attributes.items():
                yield Changed(model, model in chose, attribute, *self._accuracies(right, among),
                              *self._drops(right, original, among))  # fmt: skip

    def _check_pictures(self, folder: Path, run: Run) -> None:
        """Refuse what shows no model, other pictures, or a choice of them alone, as a benchmark's run does."""
        if not run.models or run.collection_digest not in ("", self.workspace.digest):
            raise UserError(_other_pictures(folder))

    def _right(self, table: Mapping[str, NDArray[np.generic]]) -> NDArray[np.float64]:
        """1 right, 0 wrong, NaN not scored, by picture."""
        rows = zip(table["variant_id"], table["outcome"], table["correct"], strict=True)
        said = {name: float(correct) for name, outcome, correct in rows if outcome == "scored"}
        return np.array([said.get(exhibit.variant.id, np.nan) for exhibit in self.pictures])

    def _originals(self, table: Mapping[str, NDArray[np.generic]]) -> NDArray[np.float64]:
        """The same of the unedited pictures, by photo."""
        names = ("sample_id", "attribute", "outcome", "correct")
        rows = zip(*(table[name] for name in names), strict=True)
        said = {name: float(right) for name, kind, outcome, right in rows if (kind, outcome) == ("original", "scored")}
        return np.array([said.get(name, np.nan) for name in self.samples[0]])

    def _accuracies(self, right: NDArray[np.float64], among: NDArray[np.bool_]) -> Iterator[Estimate]:
        """Without verification, with it, and the change."""
        scored = np.isfinite(right)
        sides = [share(right == 1, chosen & scored, self.photos) for chosen in (among, among & self.kept)]
        yield from (share_estimate(side).scaled(100) for side in sides)
        yield change(*sides).scaled(100)

    def _drops(
        self, right: NDArray[np.float64], original: NDArray[np.float64], among: NDArray[np.bool_]
    ) -> Iterator[Estimate]:
        """The same of the drops: every photo counts once, with the mean of its pictures."""
        lost = [self._lost(right, original, chosen) for chosen in (among, among & self.kept)]
        yield from (estimate(values).scaled(100) for values in lost)
        yield change(*map(mean_over_photos, lost)).scaled(100)

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
