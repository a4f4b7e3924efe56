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
from counterfoil.edits.fill import fill_hole, fill_smoothly
from counterfoil.edits.fill_quality import MOST, FillQuality, SalienceFinder, measure_fill
from counterfoil.errors import Unusable
from counterfoil.segmentation import SalienceNetwork

FillName: TypeAlias = Literal["exemplar", "exemplar, other sources", "MI-GAN", "known"]
GOOD = 0.3  # fault below which the patches are taken without asking the network, which takes a CPU second

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
        patches = self._judge(_Task(image, hole, avoid), "exemplar")
        if patches.quality is None or self.network is None or patches.quality.fault < GOOD:
            return patches
        painted = self._judge(_Task(image, hole, avoid), "MI-GAN")
        return min(patches, painted, key=lambda fill: fill.quality.fault if fill.quality else 0.0)

    def second(self, image: Bytes, hole: Flags, first: FillName, avoid: Flags | None = None) -> Fill:
        """Another good fill of the same hole; raises `Unusable` where there is none."""
        reason = ""
        other: FillName = "exemplar" if first == "MI-GAN" else "MI-GAN"
        candidates: list[FillName] = ["exemplar, other sources"]
        if other == "exemplar" or self.network is not None:
            candidates.insert(0, other)
        for name in candidates:
            fill = self._judge(_Task(image, hole, avoid), name)
            if not fill.reason:
                return fill
            reason = reason or fill.reason
        raise Unusable(f"there is no second fill: {reason}")

    def again(self, image: Bytes, hole: Flags, name: FillName) -> Fill:
        """The fill of a hole that differs a little from one whose fill was chosen, in the same way, not judged."""
        same: FillName = "MI-GAN" if name == "MI-GAN" and self.network is not None else "exemplar"
        return Fill(self._make(_Task(image, hole), same), same)

    def _judge(self, task: _Task, name: FillName) -> Fill:
        image = self._make(task, name)
        return Fill(
            image, name, measure_fill(image, task.hole, self.find_salience, task.avoid) if self.judged else None
        )

    def _make(self, task: _Task, name: FillName) -> Bytes:
        everything = task.hole if task.avoid is None else task.hole | task.avoid
        if name == "MI-GAN" and self.network is not None:
            filled = self.network.fill(task.image, everything)
        else:
            filled = fill_hole(task.image, everything, again=name == "exemplar, other sources")
        return filled if task.avoid is None else np.where(task.hole[..., None], filled, task.image)


class _Task(NamedTuple):
    image: Bytes
    hole: Flags
    avoid: Flags | None = None


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
