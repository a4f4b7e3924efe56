"""Masks for photos without one: a network of salience, alone or with one that cuts out what a click points at."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.assets.cache import cache_folder, fetch_asset
from counterfoil.assets.embedded_networks import build_click_network
from counterfoil.assets.onnx_session import open_onnx_session
from counterfoil.assets.salience_graph import open_coarse_salience_session
from counterfoil.errors import UserError
from counterfoil.object_mask import Bytes, Flags, ObjectMask, hard_object, mask_overlap
from counterfoil.sources.pixels import hash_pixels
from counterfoil.store.result_cache import ResultCache, Stored, name_result
from counterfoil.types import Sample

SEGMENTERS: Mapping[str, str] = {
    "joint": "U2-Netp, and HRNet18 clicked on what it finds, 56 MB, about 0.6 s a photo",
    "u2netp": "U2-Netp, 5 MB, about 0.3 s a photo",
    "u2net": "U2-Net, 176 MB, about 1 s a photo, better on some photos",
}
DEFAULT_SEGMENTER = "joint"
VERSIONS: Mapping[str, int] = {"joint": 2}  # of the masks, where not 1; 2: further clicks complete groups of things
BORDER = 0.2  # by which a photo is extended for a second look, as a share of each side
UNSURE = (40, 215)  # salience between these is neither object nor background
CLICK = 5  # pixels: radius of a click in the input of the network that takes one
# Overlaps of two networks between which colours decide what one of them alone finds: above, little is left to
# decide; below, a mask is doubtful.
DISPUTED = (0.72, 0.9)
# Overlaps after one click between which further clicks are tried, and what they must reach, one click after another.
PARTLY_FOUND = (0.3, 0.72)
LEAST_HELPED = (0.85, 0.9, 0.9)
DISPUTE_SIDE, DISPUTE_ROUNDS = 256, 3  # pixels of the longer side at which they do, and rounds
FEWEST = 32  # pixels of the object and of the background whose colours can be told
_REMEMBERED = 64  # answers of 0.4 MB, by pictures: a thread for each core works on a photo of its own
_SIDE, _CLICK_SIDES = 320, (400, 400)  # pixels of the networks' inputs
_MEAN = np.array((0.485, 0.456, 0.406), np.float32)
_STD = np.array((0.229, 0.224, 0.225), np.float32)


class Segmentation(NamedTuple):
    """What a segmenter finds in a photo."""

    mask: ObjectMask  # hard: 255 on the object, 0 off it
    undecided: float  # pixels of which the network is not sure, as a share of the object's; NaN for two networks
    steadiness: float  # overlap of what is found in the photo and in the extended photo, 0 to 1; NaN for two networks
    agreement: float = math.nan  # overlap of the objects that two networks of different kinds find; NaN for one network
    added: Bytes | None = None  # 255 where further clicks completed the object; None where one click was enough


Segmenter: TypeAlias = Callable[[Bytes], Segmentation]


@dataclass(frozen=True)
class SalienceNetwork:
    """U2-Netp or U2-Net: both take the same input and give a map of salience."""

    weights: Path
    coarse: bool = False  # a map of half the sides, enlarged, for less than half of the work; of U2-Netp

    @cached_property
    def _session(self) -> Any:
        return open_coarse_salience_session(self.weights) if self.coarse else open_onnx_session(self.weights)

    def __call__(self, image: Bytes) -> Segmentation:
        """The object, (height, width): what is salient in the photo or in the photo with an extended border.

        Where the object is cut by the border, the network often takes its head alone; a border around it helps.
        """
        plain, extended = self.look_twice(image)
        salience = np.maximum(plain, extended)
        inside = hard_object(salience)
        unsure = int(np.count_nonzero((salience > UNSURE[0]) & (salience < UNSURE[1])))
        return Segmentation(
            ObjectMask(np.where(inside, 255, 0).astype(np.uint8), "salience"),
            unsure / max(1, int(np.count_nonzero(inside))),
            mask_overlap(hard_object(plain), hard_object(extended)),
        )

    def look_twice(self, image: Bytes) -> tuple[Bytes, Bytes]:
        """The maps of salience of the photo and of the photo with an extended border, both at the photo's size."""
        return self.salience(image), self._salience_extended(image)

    def _salience_extended(self, image: Bytes) -> Bytes:
        height, width = image.shape[:2]
        down, across = max(1, round(BORDER * height)), max(1, round(BORDER * width))
        extended = cv2.copyMakeBorder(image, down, down, across, across, cv2.BORDER_REPLICATE)
        return self.salience(np.asarray(extended, np.uint8))[down : down + height, across : across + width]

    def salience(self, image: Bytes) -> Bytes:
        """The network's map of salience, stretched to 0..255, at the photo's size."""
        salience = self.raw_salience(image)
        stretched = (salience - salience.min()) / max(float(salience.max() - salience.min()), 1e-6)
        full = cv2.resize(stretched, (image.shape[1], image.shape[0]), interpolation=cv2.INTER_LINEAR)
        return np.asarray(np.rint(full.clip(0, 1) * 255), np.uint8)

    def raw_salience(self, image: Bytes) -> NDArray[np.float32]:
        """The network's answer at its own size: how salient each place is, 0 to 1."""
        small = cv2.resize(image, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA).astype(np.float32)
        ready = (small / max(float(small.max()), 1e-6) - _MEAN) / _STD
        source, target = self._session.get_inputs()[0].name, self._session.get_outputs()[0].name
        answer = self._session.run([target], {source: ready.transpose(2, 0, 1)[None]})[0]
        return np.asarray(answer[0, 0], np.float32)


class SalienceMemory:
    """A network of salience with its last answers: of one picture several things are asked, with several masks.

    Example:
        >>> import numpy as np
        >>> asked = []
        >>> memory = SalienceMemory(lambda image: asked.append(image) or np.zeros((2, 2), np.float32))
        >>> image = np.zeros((4, 4, 3), np.uint8)
        >>> memory(image) is memory(image.copy()), len(asked)
        (True, 1)
    """

    def __init__(self, ask: Callable[[Bytes], NDArray[np.float32]]) -> None:
        self._ask = ask
        self._answers: OrderedDict[tuple[tuple[int, ...], str], NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, image: Bytes) -> NDArray[np.float32]:
        """The network's answer at its own size, read-only."""
        key = image.shape, hash_pixels(image)
        with self._lock:
            known = self._answers.get(key)
            if known is not None:
                self._answers.move_to_end(key)
        return self._add(key, self._ask(image)) if known is None else known

    def _add(self, key: tuple[tuple[int, ...], str], answer: NDArray[np.float32]) -> NDArray[np.float32]:
        answer.flags.writeable = False
        with self._lock:
            self._answers[key] = answer
            if len(self._answers) > _REMEMBERED:
                self._answers.popitem(last=False)
        return answer

    def __getstate__(self) -> Callable[[Bytes], NDArray[np.float32]]:
        return self._ask  # a copy in another process begins empty

    def __setstate__(self, ask: Callable[[Bytes], NDArray[np.float32]]) -> None:
        self.__init__(ask)  # type: ignore[misc]


@dataclass(frozen=True)
class ClickNetwork:
    """HRNet18 with object context, trained to cut out what a person clicks on."""

    weights: Path

    @cached_property
    def _session(self) -> Any:
        return open_onnx_session(self.weights)

    def __call__(self, image: Bytes, found: Flags) -> Bytes:
        """How sure the network is that a place belongs to the thing under the middle of what was found, 0..255."""
        return next(self.click(image, found))

    def click(self, image: Bytes, found: Flags) -> Iterator[Bytes]:
        """The same after one click and after each further one, on the middle of what the last answer left out."""
        small = np.asarray(cv2.resize(image, _CLICK_SIDES, interpolation=cv2.INTER_AREA), np.float32) / np.float32(255)
        share = cv2.resize(found.astype(np.float32), _CLICK_SIDES, interpolation=cv2.INTER_AREA)
        wanted = np.asarray(share) >= 0.5
        planes = np.zeros((3, *_CLICK_SIDES), np.float32)  # what was cut out before, clicks on it, clicks beside it
        place, depth = _find_deepest(wanted)
        while True:
            cv2.circle(planes[1], place, CLICK, 1.0, -1)
            sure = self._ask(small, planes)
            full = cv2.resize(sure, (image.shape[1], image.shape[0]), interpolation=cv2.INTER_LINEAR)
            yield np.asarray(np.rint(full.clip(0, 1) * 255), np.uint8)
            planes[0] = sure >= 0.5
            place, depth = _find_deepest(wanted & (sure < 0.5))
            if depth <= CLICK:
                return

    def _ask(self, small: NDArray[np.float32], planes: NDArray[np.float32]) -> NDArray[np.float32]:
        """The network's certainty at its own size."""
        ready = np.ascontiguousarray(((small - _MEAN) / _STD).transpose(2, 0, 1), np.float32)
        answer = self._session.run(["logits"], {"pictures": ready[None], "clicks": planes[None]})[0][0, 0]
        return np.asarray(1 / (1 + np.exp(-np.asarray(answer, np.float32))), np.float32)


def _find_deepest(inside: Flags) -> tuple[tuple[int, int], float]:
    """The place furthest from the edge of what is set, across and down, and how far it is."""
    depth = np.asarray(cv2.distanceTransform(np.pad(inside.astype(np.uint8), 1), cv2.DIST_L2, 5))[1:-1, 1:-1]
    down, across = np.unravel_index(int(depth.argmax()), depth.shape)
    return (int(across), int(down)), float(depth[down, across])


@dataclass(frozen=True)
class JointSegmenter:
    """A network of salience finds the object, one that takes a click cuts it out; the mask is the mean of both.

    They make different mistakes, so that their overlap tells whether to trust the mask. Where they overlap well but
    not fully, a part that one of them alone finds (a leash, a plank, a tail) belongs to the object if its colours do.
    One click finds one thing. Where that is a part of what is salient (one of several birds, a hammer's head), further
    clicks are given on what is missing; since they help, the overlap must be larger then, else the first answer counts.
    What they added is given with the mask, to be tested apart: it may be a man beside his dog.
    """

    finder: SalienceNetwork
    clicked: ClickNetwork

    def __call__(self, image: Bytes) -> Segmentation:
        """The object, (height, width), and the overlap of what both networks find."""
        salience = np.maximum(*self.finder.look_twice(image))
        found = hard_object(salience)
        if not found.any():
            return Segmentation(ObjectMask(np.zeros_like(salience), "salience"), math.nan, math.nan, 0.0)
        cut, agreement, first = self._cut_out(image, found)
        inside = hard_object(((salience.astype(np.uint16) + cut + 1) // 2).astype(np.uint8))
        if DISPUTED[0] <= agreement < DISPUTED[1]:
            inside = decide_by_colour(image, found, hard_object(cut))
        # Neither how sure they are nor a second look tells more than their overlap: both refused good masks.
        mask = ObjectMask(_paint(inside), "salience")
        added = None if first is cut else _paint(inside & ~hard_object(first))
        return Segmentation(mask, math.nan, math.nan, agreement, added)

    def _cut_out(self, image: Bytes, found: Flags) -> tuple[Bytes, float, Bytes]:
        """The map of the network that takes clicks, its overlap with what was found, and the map after one click."""
        answers = self.clicked.click(image, found)
        first = next(answers)
        agreement = mask_overlap(found, hard_object(first))
        if PARTLY_FOUND[0] <= agreement < PARTLY_FOUND[1]:
            for least, cut in zip(LEAST_HELPED, answers, strict=False):
                helped = mask_overlap(found, hard_object(cut))
                if helped >= least:
                    return cut, helped, first
        return first, agreement, first


def _paint(inside: Flags) -> Bytes:
    return np.where(inside, 255, 0).astype(np.uint8)


def decide_by_colour(image: Bytes, first: Flags, second: Flags) -> Flags:
    """What both find, and of what one alone finds the part whose colours are more the object's than the background's.

    GrabCut decides, on a small copy.
    """
    height, width = first.shape
    scale = min(1.0, DISPUTE_SIDE / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    here, there = (
        np.asarray(cv2.resize(each.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST)) > 0
        for each in (first, second)
    )
    labels = np.full(here.shape, cv2.GC_BGD, np.uint8)
    labels[here & there] = cv2.GC_FGD
    labels[here & ~there] = cv2.GC_PR_BGD
    labels[there & ~here] = cv2.GC_PR_FGD
    if min(np.count_nonzero(labels == kind) for kind in (cv2.GC_BGD, cv2.GC_FGD)) < FEWEST:
        return first & second
    small = np.ascontiguousarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA))
    cv2.setRNGSeed(0)  # GrabCut's first colours are drawn at random
    models = np.zeros((1, 65)), np.zeros((1, 65))
    cv2.grabCut(small, labels, (0, 0, 1, 1), *models, DISPUTE_ROUNDS, cv2.GC_INIT_WITH_MASK)
    kept = np.isin(labels, (cv2.GC_FGD, cv2.GC_PR_FGD)).astype(np.float32)
    full = np.asarray(cv2.resize(kept, (width, height), interpolation=cv2.INTER_LINEAR)) >= 0.5
    return np.asarray(np.where(first == second, first, full), np.bool_)


def check_segmenter(name: str) -> None:
    """Raises `UserError` where no segmenter has this name."""
    if not isinstance(name, str) or name not in SEGMENTERS:
        raise UserError(f"expected a segmenter of {', '.join(SEGMENTERS)}, got {name!r}")


def name_masks(segmenter: str) -> str:
    """The segmenter with the version of its masks, so that parts made with other masks are not continued.

    Example:
        >>> name_masks("joint"), name_masks("u2net")
        ('joint 2', 'u2net')
    """
    version = VERSIONS.get(segmenter, 1)
    return segmenter if version == 1 else f"{segmenter} {version}"


def make_segmenter(samples: Sequence[Sample], name: str = DEFAULT_SEGMENTER) -> Segmenter:
    """The segmenter for these samples; its weights are fetched only where a photo has no mask."""
    check_segmenter(name)
    if all(sample.mask is not None for sample in samples):
        return SalienceNetwork(Path())
    if name == "joint":
        return JointSegmenter(load_finder("u2netp"), ClickNetwork(build_click_network(fetch_asset, cache_folder())))
    return load_finder(name)


def keep_masks(segment: Segmenter, name: str, cache: ResultCache) -> Segmenter:
    """The segmenter of this name with its answers kept in a cache."""

    def store(found: Segmentation) -> Stored:
        measures = [found.undecided, found.steadiness, found.agreement]
        planes = (found.mask.values,) if found.added is None else (found.mask.values, found.added)
        return Stored([found.mask.origin, *map(float, measures)], planes)

    def restore(stored: Stored) -> Segmentation:
        origin, *measures = stored.facts
        mask, *added = stored.planes
        return Segmentation(ObjectMask(mask, origin), *measures, *added)

    return lambda image: cache.once(name_result("mask", name, image), lambda: segment(image), store, restore)


def load_finder(name: str) -> SalienceNetwork:
    """U2-Netp or U2-Net, fetched on first use."""
    return SalienceNetwork(fetch_asset(name))
