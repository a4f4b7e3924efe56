"""A model's columns as a benchmark's classes: by name, never by position."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import counterfoil as cf
from counterfoil.contract_checks import check_classifier
from counterfoil.errors import UserError
from counterfoil.labels.benchmark_classes import entry_classes, imagenet9, imagenet_d, ximagenet12
from counterfoil.labels.label_space import LabelSpace, custom_label_space, imagenet1k
from counterfoil.models.inference import regroup_columns
from counterfoil.models.model_protocol import ModelBase
from counterfoil.types import Preprocessing

IMAGE = np.zeros((4, 4, 3), np.uint8)


class Fixed(ModelBase):
    """A classifier that always gives the same row."""

    name = "python:fixed"
    digest = "0" * 64
    preprocessing: Preprocessing | None = None

    def __init__(self, labels: Sequence[str], likely: dict[str, float]) -> None:
        self.labels = tuple(labels)
        rest = (1 - sum(likely.values())) / (len(labels) - len(likely))
        self.row = np.array([likely.get(label, rest) for label in labels], np.float32)

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        return np.stack([self.row] * len(images))


ALARM_CLOCKS = imagenet_d().ids_of("alarm_clock")


def thousand(**likely: float) -> Fixed:
    return Fixed(imagenet1k().labels, likely)


def best(model: cf.Classifier) -> str:
    return model.labels[int(model([IMAGE])[0].argmax())]


def test_a_category_is_right_by_any_of_its_ids() -> None:
    for name in ALARM_CLOCKS:
        model = regroup_columns(thousand(**{name: 0.6}), imagenet_d(), imagenet_d().labels, "all")
        assert best(model) == "alarm_clock"
        check_classifier(model, [IMAGE, IMAGE + 9])


def test_two_ids_of_a_category_do_not_outvote_the_single_best_answer() -> None:
    """The published scoring is the arg-max over single ids, not over sums."""
    first, second = ALARM_CLOCKS
    backpack = imagenet_d().ids_of("backpack")[0]
    model = regroup_columns(
        thousand(**{first: 0.3, second: 0.3, backpack: 0.35}), imagenet_d(), imagenet_d().labels, "all"
    )
    assert best(model) == "backpack"
    row = dict(zip(model.labels, model([IMAGE])[0].tolist(), strict=True))
    assert row["alarm_clock"] == row["alarm_clock (id 2)"] == pytest.approx(0.3)


def test_an_answer_outside_the_benchmark_is_wrong_among_all_columns_and_impossible_in_the_subset() -> None:
    outside, clock = imagenet1k().resolve("tabby"), ALARM_CLOCKS[0]
    model = thousand(**{outside: 0.6, clock: 0.3})
    everything = regroup_columns(model, imagenet_d(), imagenet_d().labels, "all")
    subset = regroup_columns(model, imagenet_d(), imagenet_d().labels, "subset")
    assert best(everything) == outside
    assert best(subset) == "alarm_clock"
    np.testing.assert_allclose(subset([IMAGE]).sum(), 1, atol=1e-6)
    assert len(subset.labels) == sum(len(imagenet_d().ids_of(label)) for label in imagenet_d().labels)


def test_the_scoring_is_named() -> None:
    model = thousand()
    assert (
        regroup_columns(model, imagenet_d(), imagenet_d().labels, "subset").name == "python:fixed (subset: 113 classes)"
    )
    everything = regroup_columns(model, imagenet_d(), imagenet_d().labels, "all")
    assert everything.name == "python:fixed"
    assert everything.scoring == "all 1000 columns"


def test_super_classes_gather_their_ids() -> None:
    tabby, beagle = imagenet1k().resolve("tabby"), imagenet1k().resolve("beagle")
    labels = imagenet9().labels
    assert best(regroup_columns(thousand(**{beagle: 0.5}), imagenet9(), labels, "all")) == "dog"
    assert best(regroup_columns(thousand(**{tabby: 0.5}), imagenet9(), labels, "all")) == tabby
    assert len(regroup_columns(thousand(), imagenet9(), labels, "subset").labels) == 370


def test_columns_in_another_order_give_the_same_answers() -> None:
    likely = {ximagenet12().labels[3]: 0.5}
    for labels in (imagenet1k().labels, tuple(reversed(imagenet1k().labels))):
        model = regroup_columns(Fixed(labels, likely), ximagenet12(), ximagenet12().labels, "subset")
        assert best(model) == ximagenet12().labels[3]


def test_a_zero_shot_model_over_the_categories_needs_no_ids() -> None:
    model = regroup_columns(Fixed(imagenet_d().labels, {"banana": 0.5}), imagenet_d(), imagenet_d().labels, "subset")
    assert best(model) == "banana"
    assert set(model.labels) == set(imagenet_d().labels)


def test_two_hundred_numbered_folders_are_never_scored_by_their_order(tmp_path: Path) -> None:
    folders = [f"{place:03d}" for place in range(200)]
    with pytest.raises(UserError, match=r"expected python:fixed to have a column for '000'.*classes\.json"):
        regroup_columns(thousand(), custom_label_space("the folders", folders), folders, "subset")
    with pytest.raises(UserError, match="expected a label of imagenet1k, got '000'"):
        imagenet1k().resolve("000")


def test_a_class_that_hides_a_column_of_its_own_name_is_refused() -> None:
    space = LabelSpace("mine", ("cat", "dog"), ("cat", "dog"), (("tabby",), ("dog",)))
    model = Fixed(("cat", "tabby", "dog"), {"tabby": 0.9})
    assert best(regroup_columns(model, space, ["cat", "dog"], "subset")) == "cat"
    with pytest.raises(UserError, match="expected the class 'cat' to accept the column of that name"):
        regroup_columns(model, space, ["cat", "dog"], "all")


def test_an_entry_class_is_the_mean_of_its_columns_so_that_many_columns_are_no_advantage() -> None:
    space = entry_classes()
    assert len(space.labels) == 16
    terrier, tabby = space.ids_of("dog")[0], space.ids_of("cat")[0]
    # A best column of a dog, but a dog has 109 columns and a cat 6: their means are 0.5 / 109 and 0.3 / 6.
    model = thousand(**{terrier: 0.5, tabby: 0.3})
    assert best(regroup_columns(model, space, space.labels, "subset")) == "cat"
    every = regroup_columns(model, space, space.labels, "all")
    assert every.name.endswith("(all 1000 columns, mean of columns)")
    assert len(every.labels) == 16 + 1000 - 207
    assert regroup_columns(model, space, space.labels, "subset").identity != every.identity
