"""The fill of a hole, chosen among candidates by measures: patches of the photo, or an inpainting network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.assets.cache import fetch_asset
from counterfoil.assets.inpainting_weights import find_inpainting_weights
from counterfoil.assets.onnx_session import open_onnx_session
from counterfoil.edits.fill import fill_visible_hole
from counterfoil.edits.fill_quality import (
    MOST,
    FilledHole,
    FillQuality,
    SalienceFinder,
    measure_appearance,
    measure_fill,
)
from counterfoil.edits.patch_match import OpenPicture
from counterfoil.edits.smooth_fill import fill_smoothly
from counterfoil.errors import Unusable
from counterfoil.segmentation import SalienceNetwork

FillName: TypeAlias = Literal["exemplar", "exemplar, other sources", "exemplar after MI-GAN", "MI-GAN", "known"]
GOOD = 0.7  # fault below which no further fill is made

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


@dataclass(frozen=True)
class InpaintingNetwork:
    """MI-GAN in ONNX Runtime."""

    weights: Path

    @cached_property
    def _session(self) -> Any:
        return open_onnx_session(self.weights)

    def fill(self, image: Bytes, hole: Flags) -> Bytes:
        """The picture with its hole filled; pixels outside the hole stay as they are."""
        mask = np.where(hole, 0, 255).astype(np.uint8)
        # The network mixes what the hole held into its answer, most at the rim; smooth colours hold nothing.
        planes = np.ascontiguousarray(fill_smoothly(image, hole).transpose(2, 0, 1))[None]
        (result,) = self._session.run(["result"], {"image": planes, "mask": mask[None, None]})
        return np.where(hole[..., None], result[0].transpose(1, 2, 0), image).astype(np.uint8)


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
        return "exemplar or MI-GAN, judged" if self.network is not None else "exemplar, judged"

    def first(self, image: Bytes, hole: Flags, avoid: Flags | None = None) -> Fill:
        """The fill with the fewest faults; nothing is copied from places to `avoid`, which stay as they are."""
        share = float(hole.mean())
        if self.judged and share > MOST.hole_share:  # refused in any case: not worth filling
            return Fill(image, "exemplar", FillQuality(0.0, 0.0, 0.0, 0.0, 0.0, share))
        task = _Task(image, hole, avoid)
        patches = self._make(task, "exemplar")
        if not self.judged or self.network is None:
            return self._judge(task, "exemplar", patches)
        guide = self.network.fill(image, task.everything)
        painted = task.keep_rest(guide)
        fills = [self._measure(task, "exemplar", patches, painted), self._measure(task, "MI-GAN", painted, patches)]
        if min(map(_fault_of, fills)) >= GOOD:  # patches of the photo that follow what the network painted
            guided = task.keep_rest(fill_visible_hole(OpenPicture(image, task.everything, guide)))
            fills.append(self._measure(task, "exemplar after MI-GAN", guided, patches, painted))
        return self._choose(task, fills)

    def _choose(self, task: _Task, fills: list[Fill]) -> Fill:
        """The fill with the fewest faults; the network that looks for objects is asked about as few as possible."""
        left = sorted(fills, key=_fault_of)
        best = self._look_for_objects(task, left[0])
        for fill in left[1:]:
            if _fault_of(fill) < _fault_of(best):
                best = min(best, self._look_for_objects(task, fill), key=_fault_of)
        return best

    def second(self, image: Bytes, hole: Flags, first: FillName, avoid: Flags | None = None) -> Fill:
        """Another good fill of the same hole; raises `Unusable` where there is none."""
        reason = ""
        candidates: tuple[FillName, ...] = ("MI-GAN", "exemplar", "exemplar, other sources")
        for name in candidates:
            if name == first or (name == "MI-GAN" and self.network is None):
                continue
            task = _Task(image, hole, avoid)
            fill = self._judge(task, name, self._make(task, name))
            if not fill.reason:
                return fill
            reason = reason or fill.reason
        raise Unusable(f"there is no second fill: {reason}")

    def again(self, image: Bytes, hole: Flags, name: FillName) -> Fill:
        """The fill of a hole that differs a little from one whose fill was chosen, in the same way, not judged."""
        same: FillName = name if "MI-GAN" in name and self.network is not None else "exemplar"
        return Fill(self._make(_Task(image, hole), same), same)

    def _judge(self, task: _Task, name: FillName, image: Bytes) -> Fill:
        return self._look_for_objects(task, self._measure(task, name, image))

    def _measure(self, task: _Task, name: FillName, image: Bytes, *others: Bytes) -> Fill:
        """The fill with its faults, but for objects that appeared."""
        return Fill(
            image, name, measure_fill(FilledHole(image, task.hole, task.avoid, others)) if self.judged else None
        )

    def _look_for_objects(self, task: _Task, fill: Fill) -> Fill:
        if fill.quality is None or self.find_salience is None or fill.quality.fault > 1:
            return fill
        appearance = measure_appearance(self.find_salience(fill.image), task.hole)
        return fill._replace(quality=fill.quality._replace(appearance=appearance))

    def _make(self, task: _Task, name: FillName) -> Bytes:
        picture = OpenPicture(task.image, task.everything)
        if self.network is None or "MI-GAN" not in name:
            return task.keep_rest(fill_visible_hole(picture, again=name == "exemplar, other sources"))
        painted = self.network.fill(*picture[:2])
        return task.keep_rest(painted if name == "MI-GAN" else fill_visible_hole(picture._replace(guide=painted)))


def _fault_of(fill: Fill) -> float:
    return fill.quality.fault if fill.quality else 0.0


class _Task(NamedTuple):
    image: Bytes
    hole: Flags
    avoid: Flags | None = None

    @property
    def everything(self) -> Flags:
        """All that nothing may be copied from."""
        return self.hole if self.avoid is None else np.asarray(self.hole | self.avoid)

    def keep_rest(self, filled: Bytes) -> Bytes:
        """The picture filled in the hole alone."""
        return filled if self.avoid is None else np.where(self.hole[..., None], filled, self.image)


@lru_cache(maxsize=2)
def load_fills(network: bool = True) -> Fills:
    """The judged fills of this machine, with the inpainting network where its weights can be had."""
    weights = find_inpainting_weights().path if network else None
    judge = SalienceNetwork(fetch_asset("u2netp"))
    painter = InpaintingNetwork(weights) if weights is not None else None
    return Fills(network=painter, find_salience=judge.raw_salience, judged=True)


def load_same_fills(record: str) -> Fills:
    """The fills that a run recorded; old runs, which recorded none, took patches without a judge."""
    return load_fills("MI-GAN" in record) if "judged" in record else Fills()
