"""Other set-ups of a model tried on a few unedited photos: orders of labels, order of colours, scale, mean, deviation.

A network whose labels are in another order, or whose pictures are prepared otherwise than in its training, answers
without an error and is wrong. Where another set-up is right far more often on the same photos, the given one is
probably a mistake. All orders of labels come from the same scores; another preprocessing shows the photos again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from counterfoil.errors import Unusable
from counterfoil.labels.label_space import imagenet1k
from counterfoil.models.onnx_classifier import OnnxClassifier
from counterfoil.models.preprocessing import share_inputs
from counterfoil.models.reloadable_model import release_beyond_group
from counterfoil.types import Model, Preprocessing, SanityRecord, SetupTrial

STAGES = (16, 48, 384)  # photos after which set-ups that are not ahead are given up
AHEAD = 0.05  # the lead, as a share of the photos, with which a set-up goes on to the last stage
OBVIOUS = 0.4  # a lead with which nothing more need be shown
ORDER_FAR, LEVELS_FAR = 5.0, 10.0  # points; on dark photos other levels may help a model that is set up rightly
GOOD_ENOUGH = 0.9  # from this accuracy on, no other preprocessing is tried
_PHOTOS_AT_ONCE = 8  # of each thread, to bound memory
_MOST_THREADS = 4
_IMAGENET_MEAN, _IMAGENET_STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
_OWN = "embedded:"  # addresses of networks whose preprocessing is Counterfoil's own and tested: nobody sets it up
_DESCRIBED = ("onnx:", "torchscript:", "safetensors:")  # addresses of files whose labels and preprocessing users give

Image = NDArray[np.uint8]  # (height, width, 3), RGB


class TrialPhoto(NamedTuple):
    """An unedited photo: its label, and how to read it."""

    label: str
    read: Callable[[], Image]  # raises `Unusable`


class LabelOrder(NamedTuple):
    """An order in which a network's columns may be."""

    change: str
    advice: str
    labels: tuple[str, ...]  # of each column


class OtherPreprocessing(NamedTuple):
    """A preprocessing that a network may have been trained with."""

    change: str
    preprocessing: Preprocessing
    far: float = LEVELS_FAR


@dataclass
class _Contender:
    """A set-up under trial, and on which photos it is right."""

    preprocessing: OtherPreprocessing | None = None
    order: LabelOrder | None = None
    right: list[bool] = field(default_factory=list)


def check_setups(models: Sequence[Model], photos: Sequence[TrialPhoto], threads: int = 1) -> dict[str, SanityRecord]:
    """What other set-ups of each model give on these photos.

    Args:
        models: Models as a run uses them. Those that give no scores are not asked: an answer may cost money.
        photos: Unedited photos, the classes in turn; 48 are shown, and at most 384 where something is ahead.
        threads: How many ask a network in ONNX Runtime, which works with one thread; 4 at most. Others are asked by
            one.

    Returns:
        A record by the name of each model; with no photos where nothing could be tried.
    """
    records = {}
    for model in models:
        records[model.name] = _check_setup(model, photos, min(threads, _MOST_THREADS))
        release_beyond_group(models)
    return records


def _check_setup(model: Model, photos: Sequence[TrialPhoto], threads: int) -> SanityRecord:
    if not model.gives_scores:
        return SanityRecord(classes=len(model.labels))
    given = _Contender()
    everything = running = [_Contender(order=order) for order in list_label_orders(model.base.labels)]
    for start, stop in zip((0, *STAGES), STAGES, strict=False):
        _show(model, [given, *running], photos[start:stop], threads)
        if start == 0 and sum(given.right) < GOOD_ENOUGH * len(given.right):
            prepared = _other_preparations(model)
            _show(model, prepared, photos[:stop], threads)
            everything = running = [*running, *prepared]
        lead = 0.0 if stop == STAGES[0] else AHEAD * len(given.right)
        running = [one for one in running if one.right and sum(one.right) - sum(given.right) >= lead]
        obvious = any(sum(one.right) - sum(given.right) >= OBVIOUS * len(given.right) for one in running)
        if stop >= STAGES[1] and (obvious or not running):
            break
    return SanityRecord(
        photos=len(given.right),
        right=sum(given.right),
        classes=len(model.labels),
        tried=len(everything),
        chosen=sum(len(one.right) > STAGES[1] for one in everything),
        trials=tuple(_list_trials(model, given, everything)),
    )


def _other_preparations(model: Model) -> list[_Contender]:
    """Every other preprocessing that a user may have given, with the labels as given and in every other order."""
    orders = [None, *list_label_orders(model.base.labels)]
    preprocessing = model.base.preprocessing
    if preprocessing is None or model.base.name.startswith(_OWN):
        return []
    others = list_preprocessings(preprocessing)
    return [_Contender(other, order) for other in others for order in orders]


def _list_trials(model: Model, given: _Contender, tried: Sequence[_Contender]) -> list[SetupTrial]:
    """The trials that changed one thing, and those ahead that changed two; best first."""
    rows = [
        (one, _describe_trial(model, given, one))
        for one in tried
        if one.right and (one.order is None or one.preprocessing is None or sum(one.right) > sum(given.right))
    ]
    # a set-up that changes two things comes first only where it is clearly better
    rows.sort(key=lambda row: -row[1].gap * (0.95 if row[0].order and row[0].preprocessing else 1.0))
    return [trial for _, trial in rows]


def _describe_trial(model: Model, given: _Contender, one: _Contender) -> SetupTrial:
    both = list(zip(given.right, one.right, strict=False))  # a set-up that was given up saw the first photos only
    gained, lost = ([a != b and b is better for a, b in both] for better in (True, False))
    parts = [part for part in (one.preprocessing, one.order) if part is not None]
    return SetupTrial(
        change=" and ".join(part.change for part in parts),
        remedy=_write_remedy(model, one),
        photos=len(both),
        gained=sum(gained),
        lost=sum(lost),
        right=sum(one.right),
        later_gained=sum(gained[STAGES[1] :]),
        later_lost=sum(lost[STAGES[1] :]),
        far=ORDER_FAR if one.order is not None or one.preprocessing is None else one.preprocessing.far,
    )


def _show(model: Model, contenders: Sequence[_Contender], photos: Sequence[TrialPhoto], threads: int) -> None:
    """Add to every contender whether it is right on each of the photos that can be read."""
    sources = {id(one): _columns_of(model.base.labels, one.order) for one in contenders}
    ask = partial(_ask, model, list(dict.fromkeys(one.preprocessing for one in contenders)))
    few = [photos[start : start + _PHOTOS_AT_ONCE] for start in range(0, len(photos), _PHOTOS_AT_ONCE)]
    threads = threads if isinstance(model.base, OnnxClassifier) else 1  # other libraries have threads of their own
    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        answers = pool.map(ask, few) if threads > 1 else map(ask, few)
        for labels, scores in answers:
            for one in contenders:
                if (given := scores[one.preprocessing]) is not None:
                    one.right += _find_right(model, given[:, sources[id(one)]], labels)


def _ask(
    model: Model, others: Sequence[OtherPreprocessing | None], photos: Sequence[TrialPhoto]
) -> tuple[list[str], Mapping[OtherPreprocessing | None, NDArray[np.float32] | None]]:
    """The labels of the photos that can be read, and their scores by preprocessing; None where it cannot be tried."""
    labels, images = _read(photos)
    if not images:
        return [], dict.fromkeys(others)
    with share_inputs(images):
        return labels, {
            other: model.base(images) if other is None else model.base.try_preprocessing(images, other.preprocessing)
            for other in others
        }


def _read(photos: Sequence[TrialPhoto]) -> tuple[list[str], list[Image]]:
    """Labels and pixels of photos; those that cannot be read are left out, as later in the run."""
    pairs = []
    for photo in photos:
        try:
            pairs.append((photo.label, photo.read()))
        except Unusable:
            continue
    return [label for label, _ in pairs], [image for _, image in pairs]


def _columns_of(labels: Sequence[str], order: LabelOrder | None) -> NDArray[np.intp]:
    """For each of the given labels the column that holds it under another order."""
    column_of = {label: column for column, label in enumerate(labels if order is None else order.labels)}
    return np.array([column_of[label] for label in labels], np.intp)


def _find_right(model: Model, scores: NDArray[np.float32], labels: Sequence[str]) -> list[bool]:
    grouped = model.regroup(scores)
    best = np.where(np.isfinite(grouped).all(axis=1), grouped.argmax(axis=1), -1)
    return [column >= 0 and model.labels[column] == label for column, label in zip(best.tolist(), labels, strict=True)]


def list_label_orders(labels: Sequence[str]) -> list[LabelOrder]:
    """The orders that columns are often in by mistake, without the given one."""
    names = imagenet1k()
    by_name = sorted(labels, key=lambda label: names.name_of(label).lower() if label in names else label.lower())
    orders = [
        LabelOrder("columns one place later", "put the last label first", (labels[-1], *labels[:-1])),
        LabelOrder("columns one place earlier", "put the first label last", (*labels[1:], labels[0])),
        LabelOrder("columns in the reverse order", "reverse the list", tuple(reversed(labels))),
        LabelOrder("columns sorted as text", "sort the labels as text", tuple(sorted(labels))),
        LabelOrder("columns sorted by number", "sort the labels by number", tuple(sorted(labels, key=_natural))),
        LabelOrder("columns sorted by class name", "sort the labels by class name", tuple(by_name)),
    ]
    distinct = {order.labels: order for order in reversed(orders) if order.labels != tuple(labels)}
    return list(reversed(distinct.values()))


def _natural(label: str) -> list[tuple[int, str]]:
    """A key by which 2 comes before 10."""
    return [(int(part), "") if part.isdecimal() else (-1, part.lower()) for part in re.split(r"(\d+)", label) if part]


def list_preprocessings(given: Preprocessing) -> list[OtherPreprocessing]:
    """The preprocessings of the same size that networks are often trained with, without the given one."""
    swapped = replace(given, colour_order="BGR" if given.colour_order == "RGB" else "RGB")
    if given.mean[0] != given.mean[2] and (given.mean[0] < given.mean[2]) == (swapped.colour_order == "RGB"):
        swapped = replace(swapped, mean=given.mean[::-1], std=given.std[::-1])  # red has the largest mean in photos
    choices = [
        OtherPreprocessing(f"the colours in the order {swapped.colour_order}", swapped, ORDER_FAR),
        OtherPreprocessing("levels from 0 to 1", _normalised(given, 0.0, 255.0)),
        OtherPreprocessing("levels from -1 to 1", _normalised(given, 127.5, 127.5)),
        OtherPreprocessing("levels from 0 to 255", _normalised(given, 0.0, 1.0)),
        OtherPreprocessing("ImageNet's mean and deviation", replace(given, mean=_IMAGENET_MEAN, std=_IMAGENET_STD)),
        OtherPreprocessing(
            "BGR and levels from 0 to 255 less the mean, as in Caffe",
            replace(given, colour_order="BGR", mean=(103.939, 116.779, 123.68), std=(1.0, 1.0, 1.0)),
        ),
    ]
    if max(*given.mean, *given.std) <= 1:  # of levels from 0 to 1, where those from 0 to 255 are expected
        levels = replace(given, mean=_times_255(given.mean), std=_times_255(given.std))
        choices.insert(0, OtherPreprocessing("mean and deviation times 255", levels))
    return [choice for choice in choices if choice.preprocessing != given]


def _normalised(given: Preprocessing, mean: float, std: float) -> Preprocessing:
    return replace(given, mean=(mean, mean, mean), std=(std, std, std))


def _times_255(values: tuple[float, float, float]) -> tuple[float, float, float]:
    return 255 * values[0], 255 * values[1], 255 * values[2]


def _write_remedy(model: Model, one: _Contender) -> str:
    """What to write where, so that the set-up is this one."""
    parts = []
    if one.preprocessing is not None:
        parts.append(f"set {_changed_keys(model.base.preprocessing, one.preprocessing.preprocessing)} {_place(model)}")
    if one.order is not None:
        parts.append(f"{one.order.advice} {_label_place(model)}; they then begin {', '.join(one.order.labels[:3])}")
    return "; ".join(parts)


def _changed_keys(given: Preprocessing | None, wanted: Preprocessing) -> str:
    """The keys of a description that differ, as JSON."""
    keys = [key for key in ("colour_order", "mean", "std") if given is None or vars(given)[key] != vars(wanted)[key]]
    return ", ".join(f'"{key}": {json.dumps(_rounded(vars(wanted)[key]))}' for key in keys)


def _rounded(value: object) -> object:
    return [round(number, 3) for number in value] if isinstance(value, tuple) else value


def _place(model: Model) -> str:
    """Where the preprocessing of a model is described."""
    if not model.base.name.startswith(_DESCRIBED):
        return "in the model's own configuration"
    return f"in {_description_file(model)} or --describe"


def _label_place(model: Model) -> str:
    """Where the labels of a model stand."""
    if model.base.name.startswith("python:"):
        return f"in `labels` of {model.base.name}"
    if not model.base.name.startswith(_DESCRIBED):
        return "in the model's own configuration"
    return f'in "labels" of {_description_file(model)} or --describe'


def _description_file(model: Model) -> str:
    return Path(model.base.name.rpartition(":")[2]).with_suffix(".json").name
