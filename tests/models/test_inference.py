"""A model's answers as predictions: from rows of scores, or from a model that answers by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.models.inference import (
    ScoredClassifier,
    bind_labels,
    check_coverage,
    predict,
    predict_again,
    should_retry,
)
from counterfoil.models.model_protocol import ModelBase
from counterfoil.types import Model, Prediction, PredictionOutcome, Variant

LABELS = ("ant", "bee", "cat", "dog", "eel", "fox")


def variant(number: int, label: str = "cat") -> Variant:
    return Variant(
        id=f"v{number}",
        sample_id=f"s{number}",
        label=label,
        attribute="original",
        edit="original",
        level="none",
        settings="{}",
        seed=number,
    )


def image(number: int) -> NDArray[np.uint8]:
    return np.full((2, 2, 3), number, np.uint8)


@dataclass
class Scorer(ModelBase):
    """Gives the label at the picture's level the score 0.5, its follower 0.3; NaN to black pictures."""

    name: str = "scorer"
    labels: Sequence[str] = LABELS
    preprocessing: None = None
    digest: str = "0"
    batches: list[int] = field(default_factory=list)

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        self.batches.append(len(images))
        rows = np.full((len(images), len(self.labels)), 0.05, np.float32)
        for row, picture in zip(rows, images, strict=True):
            level = int(picture[0, 0, 0])
            row[level % 6], row[(level + 1) % 6] = 0.5, 0.3
            row[:] = np.nan if level == 0 else row
        return rows


@dataclass
class Sayer(Scorer):
    """Answers by itself, as it is told; knows which variants it was asked about."""

    told: dict[str, PredictionOutcome] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    chosen_from: Sequence[str] = LABELS

    @property
    def retryable(self) -> bool:
        return True

    def predict(self, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]]) -> list[Prediction]:
        self.asked += [one.id for one in variants]
        return [Prediction(one.id, (), (), float("nan"), self.told.get(one.id, "unparsed")) for one in variants]

    def among(self, labels: Sequence[str]) -> Model:
        return Sayer(chosen_from=labels)


def test_scores_become_ranked_labels_with_the_true_labels_probability() -> None:
    (found,) = predict(Scorer(), [variant(1)], [image(1)], batch_size=4)
    assert found.ranked == ("bee", "cat", "ant", "dog", "eel")  # equal scores keep the order of the columns
    assert found.scores == pytest.approx((0.5, 0.3, 0.05, 0.05, 0.05))
    assert found.true_score == pytest.approx(0.3)
    assert found.outcome == "scored"


def test_scores_that_are_no_numbers_are_an_error_not_a_wrong_answer() -> None:
    (found,) = predict(Scorer(), [variant(0)], [image(0)], batch_size=4)
    assert (found.outcome, found.ranked) == ("error", ())
    assert np.isnan(found.true_score)


def test_batches_change_no_answer() -> None:
    variants, images = [variant(n) for n in range(1, 8)], [image(n) for n in range(1, 8)]
    one, three = Scorer(), Scorer()
    assert predict(one, variants, images, batch_size=1) == predict(three, variants, images, batch_size=3)
    assert (one.batches, three.batches) == ([1] * 7, [3, 3, 1])


def test_a_model_that_answers_by_itself_is_asked_by_variant() -> None:
    model = Sayer(told={"v2": "refused"})
    found = predict(model, [variant(1), variant(2)], [image(1), image(2)], batch_size=1)
    assert [prediction.outcome for prediction in found] == ["unparsed", "refused"]
    assert model.asked == ["v1", "v2"]
    assert model.batches == []


class Shuffler(Sayer):
    def predict(self, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]]) -> list[Prediction]:
        return super().predict(variants, images)[::-1]


def test_answers_out_of_order_are_a_bug_that_shows() -> None:
    with pytest.raises(ValueError, match="in order"):
        predict(Shuffler(), [variant(1), variant(2)], [image(1), image(2)], batch_size=2)


def test_only_errors_are_asked_again() -> None:
    outcomes: dict[str, PredictionOutcome] = {
        "v0": "error",
        "v1": "scored",
        "v2": "refused",
        "v3": "error",
        "v4": "unparsed",
    }
    variants = [variant(number) for number in range(5)]
    earlier = Sayer(told=outcomes).predict(variants, [])
    model = Sayer(told={"v0": "scored", "v3": "error"})
    later = predict_again(model, variants, earlier, lambda one: image(int(one.id[1:])))
    assert model.asked == ["v0", "v3"]
    assert [prediction.outcome for prediction in later] == ["scored", "scored", "refused", "error", "unparsed"]
    assert should_retry(model, later)


def test_a_classifiers_errors_would_come_again_and_are_not_asked_again() -> None:
    earlier = [Prediction("v0", (), (), float("nan"), "error")]
    assert not should_retry(Scorer(), earlier)
    assert should_retry(Sayer(), earlier)
    assert not should_retry(Sayer(), [Prediction("v0", (), (), float("nan"), "refused")])


def test_a_model_without_a_column_for_a_label_is_refused() -> None:
    check_coverage(Scorer(), ["cat", "dog"])
    with pytest.raises(UserError, match=r"no column for 2 of them: 'gnu', 'yak'; its labels look like 'ant'"):
        bind_labels(Scorer(), ["cat", "gnu", "yak"])


def test_a_model_is_made_for_the_photos_labels() -> None:
    scorer = Scorer()
    assert bind_labels(scorer, ["cat", "dog"]) is scorer
    narrowed = bind_labels(Sayer(), ["cat", "dog"])
    assert isinstance(narrowed, Sayer)
    assert narrowed.chosen_from == ["cat", "dog"]


def test_identities_are_those_of_earlier_versions_so_that_their_runs_go_on() -> None:
    narrowed = ScoredClassifier(Scorer(), (("cat", (2,)), ("bug", (0, 1))), (), "subset: 2 classes")
    assert Scorer().identity == "e3064831b4dcce984a03e7c5627d690174c36d7d03f8526a4aa667dee44956ad"
    assert narrowed.identity == "efa1ed381032d62189885f7a7af4965290e3d5a7c8e8c2a93944f9d708f58ff7"


@pytest.mark.parametrize("change", [{"name": "other"}, {"digest": "1"}, {"labels": LABELS[::-1]}])
def test_whatever_changes_the_answers_changes_the_identity(change: dict[str, Any]) -> None:
    assert replace(Scorer(), **change).identity != Scorer().identity
