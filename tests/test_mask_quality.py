"""The test of masks that a network found: shape, second look, and a network's answers with and without the object."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from counterfoil.mask_quality import MaskJudge, judge_answers, judge_shape
from counterfoil.object_mask import MaskVerdict, ObjectMask, object_share
from counterfoil.segmentation import Segmentation, make_segmenter
from counterfoil.sources.demo_photos import DemoSource
from counterfoil.store.mask_table import read_masks, write_masks


def box_mask(left: int, top: int, right: int, bottom: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    mask = np.zeros((100, 100), np.uint8)
    mask[top:bottom, left:right] = 255
    return mask


def shape_faults(mask: np.ndarray[tuple[int, int], np.dtype[np.uint8]], **measures: float) -> str:
    verdict = MaskVerdict(sample="a", origin="salience", share=object_share(mask), **measures)  # type: ignore[arg-type]
    return "; ".join(judge_shape(verdict, mask >= 128))


def test_the_size_pieces_and_certainty_of_a_mask_are_judged() -> None:
    pieces = box_mask(0, 0, 30, 30) + box_mask(60, 60, 90, 90) + box_mask(0, 60, 30, 90)
    assert "covers 0.25%" in shape_faults(box_mask(45, 45, 50, 50))
    assert "covers 97.0%" in shape_faults(box_mask(0, 0, 100, 97))
    assert "in pieces, the largest holds 33%" in shape_faults(pieces)
    assert "not sure of 80%" in shape_faults(box_mask(20, 20, 80, 80), undecided=0.8)
    assert "second network finds another object (overlap 30%)" in shape_faults(box_mask(0, 0, 80, 80), agreement=0.3)
    assert "wider border gives another object (overlap 20%)" in shape_faults(box_mask(0, 0, 80, 80), steadiness=0.2)
    assert shape_faults(box_mask(20, 20, 80, 80), undecided=0.1, agreement=0.9, steadiness=0.9) == ""


def test_a_mask_that_touches_three_sides_is_not_doubtful_for_that() -> None:
    assert shape_faults(box_mask(0, 20, 100, 100)) == ""


@pytest.mark.parametrize(
    ("alone", "without", "said"),
    [(0.9, 0.01, ""), (0.9, 0.8, "without it leaves a network 80%"), (0.0, 0.01, "alone leaves a network 0%")],
)
def test_a_mask_is_doubtful_where_the_answer_does_not_follow_the_object(
    alone: float, without: float, said: str
) -> None:
    reasons = judge_answers(MaskVerdict(sample="a", origin="salience", kept_alone=alone, kept_without=without))
    assert (reasons == []) if not said else (said in reasons[0])


def test_answers_that_were_not_asked_for_say_nothing() -> None:
    assert judge_answers(MaskVerdict(sample="a", origin="salience")) == []


def test_a_mask_by_hand_is_only_looked_at_for_its_size() -> None:
    judge = MaskJudge()
    assert judge.judge_given("a", ObjectMask(box_mask(0, 0, 60, 60), "hand")).verdict == "accepted"
    whole = judge.judge_given("a", ObjectMask(np.full((100, 100), 255, np.uint8), "hand"))
    assert whole.is_doubtful
    assert whole.reasons == ("it covers 100.0% of the picture",)


def test_the_object_passes_and_a_piece_of_the_background_does_not(assets: object) -> None:
    source, judge = DemoSource(), MaskJudge()
    samples = {sample.id: sample for sample in source.samples()[0]}
    image, mask = source.read(samples["n02110341/imagenet_16_251.jpg"])
    assert mask is not None
    hard = np.where(mask >= 128, 255, 0).astype(np.uint8)
    beside = np.zeros_like(hard)
    rows, columns = np.nonzero(hard == 0)
    beside[rows[: hard.size // 12], columns[: hard.size // 12]] = 255
    good, bad = (
        judge.judge_found("dog", image, Segmentation(ObjectMask(values, "salience"), 0.05, 0.95))
        for values in (hard, beside)
    )
    assert good.verdict == "accepted", good.reasons
    assert bad.is_doubtful
    assert bad.kept_without > good.kept_without


def test_the_table_of_masks_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    rows = [
        MaskVerdict(sample="dog/1.jpg", origin="hand", share=0.25),
        MaskVerdict(sample="dog/2, b.jpg", origin="salience", verdict="doubtful", reasons=("a", "b"), agreement=0.5),
    ]
    write_masks(tmp_path, rows)
    back = read_masks(tmp_path)
    assert [(row.sample, row.origin, row.verdict, row.reasons) for row in back] == [
        ("dog/1.jpg", "hand", "accepted", ()), ("dog/2, b.jpg", "salience", "doubtful", ("a", "b")),
    ]  # fmt: skip
    assert back[0].share == 0.25
    assert math.isnan(back[0].agreement)
    assert read_masks(tmp_path / "elsewhere") == []


@pytest.mark.parametrize(
    ("name", "said"), [("imagenet_15_99", ""), ("imagenet_00_243", "it holds two things, one of which leaves")]
)
def test_geese_belong_together_and_a_man_beside_his_dog_does_not(name: str, said: str) -> None:
    source = DemoSource()
    sample = next(sample for sample in source.samples()[0] if Path(sample.image).stem == name)
    image, _ = source.read(sample)
    found = make_segmenter([replace(sample, mask=None)], "joint")(image)
    assert found.added is not None
    assert found.agreement > 0.85
    reasons = MaskJudge().judge_found(sample.id, image, found).reasons
    assert (reasons == ()) if not said else any(reason.startswith(said) for reason in reasons)
