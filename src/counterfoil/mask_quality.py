"""The test of a mask that a network found: is it the object, and the whole object?

A mask is doubtful where its shape is implausible, where a second segmenter finds something else, where the network of
the test no longer gives its answer to the object alone, or still gives it to the photo without the object, or where one
of the things that the mask holds does not get that answer alone. The network
is an embedded one and is asked for its own answer to the photo, so neither the user's model nor the labels matter.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import cv2
import numpy as np

from counterfoil.models.model_loaders import load_model
from counterfoil.object_mask import Bytes, Flags, MaskVerdict, ObjectMask, hard_object, mask_overlap, object_share
from counterfoil.segmentation import SalienceNetwork, Segmentation, load_finder
from counterfoil.types import Model, Sample

SMALLEST_SHARE, LARGEST_SHARE = 0.01, 0.95  # of the picture, of a mask that a network found
SMALLEST_DRAWN, LARGEST_DRAWN = 0.0005, 0.995  # of one that was given
LARGEST_PIECE = 0.4  # share of the mask that its largest piece holds at least: several fruits are one object
MOST_UNDECIDED = 0.3  # pixels of which the segmenter is not sure, as a share of the object's
LEAST_AGREEMENT = 0.8  # overlap of two segmenters
LEAST_JOINT_AGREEMENT = 0.72  # overlap of the two networks of the joint segmenter
LEAST_STEADINESS = 0.75  # overlap of two looks of one segmenter
LEAST_KEPT_ALONE = 0.02  # share of the network's certainty that the object alone keeps at least
MOST_KEPT_WITHOUT = 0.3  # share of it that everything but the object keeps at most; backgrounds may tell a little
# What one click found and what further ones added belong together where each alone keeps this share (two birds), or
# where neither alone keeps the second one and the whole keeps so much more (a hammer). A man and his dog do neither.
LEAST_KEPT_EACH, MOST_KEPT_PART, LEAST_GAINED = 0.3, 0.5, 0.2
NETWORK = "embedded:efficientnet-lite0"
SIDE = 256  # pixels at which the network is asked
MARGIN = 4  # pixels by which the object is grown before it is removed
GREY = np.array((124, 116, 104), np.uint8)  # the mean colour of photos, behind the object alone


@dataclass(frozen=True)
class MaskJudge:
    """Judges masks; several threads may use one."""

    second: SalienceNetwork | None = None  # a second segmenter, where there is one
    _models: list[Model] = field(default_factory=list, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def decide(self, sample: str, image: Bytes, mask: ObjectMask | Segmentation) -> MaskVerdict:
        """The verdict on the mask of a photo, given or found."""
        if isinstance(mask, Segmentation):
            return self.judge_found(sample, image, mask)
        return self.judge_given(sample, mask)

    def judge_given(self, sample: str, mask: ObjectMask) -> MaskVerdict:
        """The verdict on a mask that came with its photo: only its size is looked at."""
        share = object_share(mask.values)
        reasons = _judge_share(share, SMALLEST_DRAWN, LARGEST_DRAWN)
        return _decide(MaskVerdict(sample=sample, origin=mask.origin, share=share), reasons)

    def judge_found(self, sample: str, image: Bytes, found: Segmentation) -> MaskVerdict:
        """The verdict on a mask that a network found."""
        inside = hard_object(found.mask.values)
        agreement, least = found.agreement, LEAST_JOINT_AGREEMENT
        if self.second is not None:
            least = LEAST_AGREEMENT
            agreement = mask_overlap(inside, hard_object(self.second(image).mask.values))
        alone, without = self._ask(image, inside)
        verdict = MaskVerdict(
            sample=sample, origin=found.mask.origin, share=object_share(found.mask.values), agreement=agreement,
            steadiness=found.steadiness, undecided=found.undecided, kept_alone=alone, kept_without=without,
        )  # fmt: skip
        reasons = [*judge_shape(verdict, inside, least), *judge_answers(verdict)]
        if found.added is not None:
            reasons += self._judge_added(image, inside, hard_object(found.added), alone)
        return _decide(verdict, reasons)

    def _judge_added(self, image: Bytes, inside: Flags, added: Flags, whole: float) -> list[str]:
        """What the answer of a network says against taking what further clicks added and the rest as one object."""
        less, more = sorted(self._ask(image, inside & part)[0] for part in (added, ~added))
        if less < LEAST_KEPT_EACH and (more >= MOST_KEPT_PART or whole - more < LEAST_GAINED):
            return [f"it holds two things, one of which leaves a network {less:.0%} of its certainty"]
        return []

    def _ask(self, image: Bytes, inside: Flags) -> tuple[float, float]:
        """The shares of the network's certainty in its answer that the object alone and all but the object keep."""
        small = np.asarray(cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_AREA), np.uint8)
        area = cv2.resize(np.where(inside, np.uint8(255), np.uint8(0)), (SIDE, SIDE), interpolation=cv2.INTER_AREA)
        there = hard_object(np.asarray(area, np.uint8))
        if there.all() or not there.any():
            return math.nan, math.nan
        alone = np.where(there[..., None], small, GREY)
        kernel = np.ones((2 * MARGIN + 1, 2 * MARGIN + 1), np.uint8)
        # A quick fill is enough: it has to hide the object, not to look like a photo.
        without = cv2.inpaint(small, cv2.dilate(there.astype(np.uint8), kernel), 5, cv2.INPAINT_TELEA)
        scores = self._network()([small, alone, np.asarray(without, np.uint8)])
        answer = int(scores[0].argmax())
        first, of_object, of_rest = (float(score) for score in scores[:, answer])
        return of_object / first, of_rest / first

    def _network(self) -> Model:
        with self._lock:
            if not self._models:
                self._models.append(load_model(NETWORK))
            return self._models[0]


def make_mask_judge(samples: Sequence[Sample], segmenter: str) -> MaskJudge:
    """The judge of a run; the masks of U2-Net are compared with those of U2-Netp."""
    if segmenter != "u2net" or all(sample.mask is not None for sample in samples):
        return MaskJudge()
    return MaskJudge(load_finder("u2netp"))


def _decide(verdict: MaskVerdict, reasons: Sequence[str]) -> MaskVerdict:
    return replace(verdict, verdict="doubtful" if reasons else "accepted", reasons=tuple(reasons))


def _judge_share(share: float, smallest: float, largest: float) -> list[str]:
    if share < smallest:
        return [f"it covers {share:.2%} of the picture"]
    return [f"it covers {share:.1%} of the picture"] if share > largest else []


def judge_shape(verdict: MaskVerdict, inside: Flags, least_agreement: float = LEAST_AGREEMENT) -> list[str]:
    """What is implausible about the mask itself; touching the picture's sides is not, most objects are cut by one."""
    reasons = _judge_share(verdict.share, SMALLEST_SHARE, LARGEST_SHARE)
    piece = _largest_piece(inside)
    if piece < LARGEST_PIECE:
        reasons.append(f"it is in pieces, the largest holds {piece:.0%} of it")
    if verdict.undecided > MOST_UNDECIDED:
        reasons.append(f"the segmenter is not sure of {verdict.undecided:.0%} of it")
    if verdict.agreement < least_agreement:
        reasons.append(f"a second network finds another object (overlap {verdict.agreement:.0%})")
    if verdict.steadiness < LEAST_STEADINESS:
        reasons.append(f"a wider border gives another object (overlap {verdict.steadiness:.0%})")
    return reasons


def find_mask_fault(alpha: Bytes) -> str:
    """What is implausible about the size and pieces of a mask; empty where nothing is."""
    return "; ".join(
        judge_shape(MaskVerdict(sample="", origin="salience", share=object_share(alpha)), hard_object(alpha))
    )


def judge_answers(verdict: MaskVerdict) -> list[str]:
    """What a network's answers to the object alone, and to all but the object, say against the mask."""
    reasons = []
    if verdict.kept_alone < LEAST_KEPT_ALONE:
        reasons.append(f"the object alone leaves a network {verdict.kept_alone:.0%} of its certainty")
    if verdict.kept_without > MOST_KEPT_WITHOUT:
        reasons.append(f"the photo without it leaves a network {verdict.kept_without:.0%} of its certainty")
    return reasons


def _largest_piece(inside: Flags) -> float:
    areas = cv2.connectedComponentsWithStats(inside.astype(np.uint8), connectivity=8)[2][1:, cv2.CC_STAT_AREA]
    return float(areas.max() / areas.sum()) if len(areas) else 1.0
