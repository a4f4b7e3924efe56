"""The fill of a hole, chosen among candidates by measures: patches of the photo, or an inpainting network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.assets.cache import fetch_asset
from counterfoil.assets.inpainting_weights import find_inpainting_weights
from counterfoil.edits.fill import fill_visible_hole
from counterfoil.edits.fill_quality import (
    MOST,
    FilledHole,
    FillQuality,
    SalienceFinder,
    measure_appearance,
    measure_disagreement,
    measure_fill,
)
from counterfoil.edits.inpainting_network import InpaintingNetwork
from counterfoil.edits.patch_match import Moves, OpenPicture
from counterfoil.edits.smooth_fill import fill_smoothly
from counterfoil.errors import Unusable
from counterfoil.segmentation import SalienceMemory, SalienceNetwork

FillName: TypeAlias = Literal[
    "exemplar", "exemplar, other sources", "exemplar after MI-GAN", "MI-GAN", "MI-GAN, mirrored", "smooth", "known"
]
VERSION = 2  # of fills and judge; 2: MI-GAN at the picture's own scale, a coarser map of what stands out
GOOD = 0.85  # fault below which no further fill is made: good enough also where nothing stands before it
HOPELESS = (1.5, 1.2)  # fault from which none is either, after two fills and after three: no other was good enough then

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]


class Fill(NamedTuple):
    """A filled picture, by whom, and its faults where they were measured."""

    image: Bytes
    name: FillName
    quality: FillQuality | None = None

    @property
    def reason(self) -> str:
        """Why it must not be shown; empty where it may, or was not judged."""
        return "" if self.quality is None else self.quality.reason


# Fills in the order in which they are made, with those that each is compared with. What is behind the object can be
# told where the network paints alike in the photo and in its mirror image, or where a fill is like the smooth
# continuation of its surroundings. A round is made only where it may decide.
_ROUNDS: tuple[Mapping[FillName, tuple[FillName, ...]], ...] = (
    {"exemplar": ("MI-GAN", "smooth"), "MI-GAN": ("exemplar", "smooth")},
    {
        "exemplar": ("MI-GAN", "MI-GAN, mirrored", "smooth"),
        "MI-GAN": ("MI-GAN, mirrored", "smooth"),
        "MI-GAN, mirrored": ("MI-GAN", "smooth"),
    },
    {"exemplar after MI-GAN": ("MI-GAN", "MI-GAN, mirrored", "smooth")},
)
_PAINTED: tuple[FillName, ...] = ("MI-GAN", "MI-GAN, mirrored")


@dataclass(frozen=True, eq=False)
class FillTask:
    """A hole of a picture, with what was made and measured for it: a second fill is often a candidate of the first."""

    image: Bytes
    hole: Flags
    avoid: Flags | None = None
    levels: Sequence[Moves] | None = None  # the hole's patches, where they were matched before
    made: dict[FillName, Bytes] = field(default_factory=dict)
    qualities: dict[FillName, FillQuality] = field(default_factory=dict)  # without disagreement and appearance
    disagreements: dict[frozenset[FillName], float] = field(default_factory=dict)
    appearances: dict[FillName, float] = field(default_factory=dict)
    usual: list[float] = field(default_factory=list)  # difference of patches around the hole, measured once

    @property
    def everything(self) -> Flags:
        """All that nothing may be copied from."""
        return self.hole if self.avoid is None else np.asarray(self.hole | self.avoid)

    def keep_rest(self, filled: Bytes) -> Bytes:
        """The picture filled in the hole alone."""
        return filled if self.avoid is None else np.where(self.hole[..., None], filled, self.image)

    def planes(self) -> Iterator[NDArray[Any]]:
        """The pictures and masks that are held."""
        yield from (self.hole, *list(self.made.values()))
        if self.avoid is not None:
            yield self.avoid


@dataclass(frozen=True)
class Fills:
    """The fills that there are and the judge that chooses; without a judge the patches fill every hole."""

    network: InpaintingNetwork | None = None
    find_salience: SalienceFinder | None = None
    judged: bool = False

    @property
    def record(self) -> str:
        """The fills for the record of a run; `load_same_fills` makes the same again."""
        if not self.judged:
            return "exemplar"
        return f"{'exemplar or MI-GAN' if self.network is not None else 'exemplar'}, judged, version {VERSION}"

    def first(self, task: FillTask) -> Fill:
        """The fill with the fewest faults; nothing is copied from places to avoid, which stay as they are."""
        share = float(task.hole.mean())
        if self.judged and share > MOST.hole_share:  # refused in any case: not worth filling
            return Fill(task.image, "exemplar", FillQuality(0.0, 0.0, 0.0, 0.0, 0.0, share))
        if not self.judged or self.network is None:
            return self._look_for_objects(task, self._measure(task, "exemplar", "smooth"))
        fills: dict[FillName, Fill] = {}
        for compared, hopeless in zip(_ROUNDS, (*HOPELESS, 0.0), strict=True):
            fills |= {name: self._measure(task, name, *others) for name, others in compared.items()}
            if not GOOD <= min(map(_fault_of, fills.values())) < hopeless:
                break
        return self._choose(task, list(fills.values()))

    def _choose(self, task: FillTask, fills: list[Fill]) -> Fill:
        """The fill with the fewest faults; the network that looks for objects is asked about as few as possible."""
        left = sorted(fills, key=_fault_of)
        best = self._look_for_objects(task, left[0])
        for fill in left[1:]:
            if _fault_of(fill) < _fault_of(best):
                best = min(best, self._look_for_objects(task, fill), key=_fault_of)
        return best

    def second(self, task: FillTask, first: FillName) -> Fill:
        """Another good fill of the same hole; raises `Unusable` where there is none."""
        reason = ""
        candidates: tuple[FillName, ...] = ("MI-GAN", "exemplar", "exemplar, other sources")
        for name in candidates:
            if name == first or (name == "MI-GAN" and self.network is None):
                continue
            fill = self._judge(task, name)
            if not fill.reason:
                return fill
            reason = reason or fill.reason
        raise Unusable(f"there is no second fill: {reason}")

    def again(self, task: FillTask, name: FillName) -> Fill:
        """The fill of a hole that differs a little from one whose fill was chosen, in the same way, not judged."""
        same: FillName = name if "MI-GAN" in name and self.network is not None else "exemplar"
        return Fill(task.keep_rest(self._make(task, same)), same)

    def _judge(self, task: FillTask, name: FillName) -> Fill:
        return self._look_for_objects(task, self._measure(task, name))

    def _measure(self, task: FillTask, name: FillName, *others: FillName) -> Fill:
        """The fill with its faults, but for objects that appeared."""
        image = task.keep_rest(self._make(task, name))
        if not self.judged:
            return Fill(image, name)
        if name not in task.qualities:
            filled = FilledHole(image, task.hole, task.avoid, usual=task.usual)
            task.qualities[name] = measure_fill(filled, hopeless=HOPELESS[0])
        quality = task.qualities[name]
        if others:
            quality = quality._replace(disagreement=min(self._compare(task, name, other) for other in others))
        return Fill(image, name, quality._replace(painted=float(name in _PAINTED)))

    def _compare(self, task: FillTask, name: FillName, other: FillName) -> float:
        pair = frozenset((name, other))
        if pair not in task.disagreements:
            one, another = (task.keep_rest(self._make(task, each)) for each in (name, other))
            task.disagreements[pair] = measure_disagreement(one, another, task.hole)
        return task.disagreements[pair]

    def _look_for_objects(self, task: FillTask, fill: Fill) -> Fill:
        if fill.quality is None or self.find_salience is None or fill.quality.fault > 1:
            return fill
        if fill.name not in task.appearances:
            task.appearances[fill.name] = measure_appearance(self.find_salience(fill.image), task.hole)
        return fill._replace(quality=fill.quality._replace(appearance=task.appearances[fill.name]))

    def _make(self, task: FillTask, name: FillName) -> Bytes:
        """The picture with everything filled that nothing may be copied from, made once for a task."""
        if name not in task.made:
            picture = OpenPicture(task.image, task.everything)
            if name == "smooth":
                task.made[name] = fill_smoothly(task.image, task.everything)
            elif self.network is None or "MI-GAN" not in name:
                task.made[name] = fill_visible_hole(picture, name == "exemplar, other sources", task.levels)
            elif name == "MI-GAN":
                task.made[name] = self.network.fill(task.image, task.everything)
            elif name == "MI-GAN, mirrored":
                task.made[name] = _mirror(self.network.fill(_mirror(task.image), _mirror(task.everything)))
            else:
                task.made[name] = fill_visible_hole(picture._replace(guide=self._make(task, "MI-GAN")))
        return task.made[name]


def _mirror(plane: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(plane[:, ::-1])


def _fault_of(fill: Fill) -> float:
    return fill.quality.fault if fill.quality else 0.0


@lru_cache(maxsize=2)
def load_fills(network: bool = True) -> Fills:
    """The judged fills of this machine, with the inpainting network where its weights can be had."""
    weights = find_inpainting_weights().path if network else None
    judge = SalienceNetwork(fetch_asset("u2netp"), coarse=True)
    painter = InpaintingNetwork(weights) if weights is not None else None
    return Fills(network=painter, find_salience=SalienceMemory(judge.raw_salience), judged=True)


def load_same_fills(record: str) -> Fills:
    """The fills that a run recorded; old runs, which recorded none, took patches without a judge."""
    return load_fills("MI-GAN" in record) if "judged" in record else Fills()
