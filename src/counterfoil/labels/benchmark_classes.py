"""The classes of published benchmarks, and label spaces found by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from counterfoil.errors import UserError, did_you_mean, expect_path
from counterfoil.labels.class_file import read_class_file
from counterfoil.labels.label_space import LabelSpace, imagenet1k, read_label_table

_MERGED_IN_IMAGENET_S = {  # classes that ImageNet-S-919 merges
    "n04356056": "n04355933",
    "n04493381": "n02808440",
    "n03642806": "n03832673",
    "n04008634": "n03773504",
    "n03887697": "n15075141",
}


def _read_label_space(name: str, file: str) -> LabelSpace:
    rows = read_label_table(file)
    ids = tuple(tuple(row["ids"].split()) for row in rows)
    return LabelSpace(name, tuple(row["label"] for row in rows), tuple(row["name"] for row in rows), ids)


@cache
def imagenet_d() -> LabelSpace:
    """The 113 categories of ImageNet-D by folder name; nine of them accept several ImageNet ids."""
    return _read_label_space("imagenet-d", "imagenet_d.csv")


@cache
def imagenet9() -> LabelSpace:
    """The nine super-classes of the Backgrounds challenge, each of 16 to 116 ImageNet classes."""
    return _read_label_space("imagenet-9", "imagenet9.csv")


@cache
def ximagenet12() -> LabelSpace:
    """The twelve classes of XImageNet-12."""
    return _read_label_space("ximagenet-12", "ximagenet12.csv")


@cache
def imagenet_a() -> LabelSpace:
    """The 200 ImageNet classes of ImageNet-A."""
    return _read_label_space("imagenet-a", "imagenet_a.csv")


@cache
def imagenet_r() -> LabelSpace:
    """The 200 ImageNet classes of ImageNet-R."""
    return _read_label_space("imagenet-r", "imagenet_r.csv")


@cache
def entry_classes() -> LabelSpace:
    """The 16 entry-level classes of Geirhos et al., each the mean of 1 to 109 ImageNet columns."""
    return replace(_read_label_space("cue-conflict", "entry_classes.csv"), pooling="mean")


@cache
def imagenet_s_ids() -> dict[str, int]:
    """The number of each class in the masks of ImageNet-S-919, by WordNet id."""
    ids = {row["wnid"]: int(row["id"]) for row in read_label_table("imagenet_s919.csv")}
    return {**ids, **{merged: ids[into] for merged, into in _MERGED_IN_IMAGENET_S.items()}}


SPACES: dict[str, Callable[[], LabelSpace]] = {
    "imagenet1k": imagenet1k,
    "imagenet-d": imagenet_d,
    "imagenet-9": imagenet9,
    "ximagenet-12": ximagenet12,
    "imagenet-a": imagenet_a,
    "imagenet-r": imagenet_r,
    "cue-conflict": entry_classes,
}


def load_label_space(text: str) -> LabelSpace:
    """A known space by its name, or a user's own classes from a JSON file."""
    if text in SPACES:
        return SPACES[text]()
    if (path := expect_path(text, "a JSON file of classes")).is_file():
        return read_class_file(path)
    raise UserError(
        f"expected classes as one of {', '.join(SPACES)} or a JSON file, got '{text}', which is no file"
        f"{did_you_mean(text, SPACES)}"
    )
