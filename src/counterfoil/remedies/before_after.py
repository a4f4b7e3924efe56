"""Pictures whose answers a repair changed: for the report, and as one sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.assets.onnx_session import open_onnx_session
from counterfoil.builder import encode_png
from counterfoil.edits.seeds import content_hash
from counterfoil.labels.label_space import LabelSpace
from counterfoil.models.model_options import format_class_name
from counterfoil.models.preprocessing import prepare_input
from counterfoil.remedies.photo_graph import BOX, box_pixels
from counterfoil.remedies.picture_answers import Image, render_photo
from counterfoil.remedies.repair_result import RepairResult
from counterfoil.report.words import describe_change
from counterfoil.statistics.answers import NO_ATTRIBUTE
from counterfoil.store.files import write_atomically
from counterfoil.types import Model, PhotoInput, Picture

_MOST = 6  # pictures of each kind
_SIDE, _LINE = 288, 22  # pixels of a picture of the sheet, and of a line below it
_COLUMNS = 4
_COLOUR = (224, 112, 58)


@dataclass(frozen=True, kw_only=True)
class AnswerPicture:
    """One edited picture with the answers before and after a repair."""

    kind: Literal["gained", "lost"]
    sample: str
    label: str  # name of the class
    change: str  # the attribute, and the edit in words
    image: Image  # with the box drawn where there is one
    before: str
    after: str


def find_changed_pictures(result: RepairResult) -> list[AnswerPicture]:
    """A few pictures that became right, and a few that became wrong, in an order of chance; all classes compete."""
    table = result.table
    pictures: list[AnswerPicture] = []
    kinds: tuple[tuple[Literal["gained", "lost"], float], ...] = (("gained", 1.0), ("lost", -1.0))
    for kind, difference in kinds:
        change = table.after.every - table.before.every
        places = [
            (row, column) for row, column in np.argwhere(change == difference).tolist()
            if table.conditions[column].attribute not in NO_ATTRIBUTE
        ]  # fmt: skip
        places.sort(key=lambda place: content_hash(table.photos[place[0]], table.conditions[place[1]]))
        seen: set[int] = set()
        for row, column in places:
            if row not in seen and len(seen) < _MOST:
                seen.add(row)
                pictures += _show(result, kind, row, column)
    return pictures


def _show(result: RepairResult, kind: Literal["gained", "lost"], row: int, column: int) -> list[AnswerPicture]:
    """The picture of one photo and condition, made again, with the answers of the model that judged it."""
    name, condition = result.table.photos[row], result.table.conditions[column]
    plans = result.plan.judged_plans
    part = next(place for place, plan in enumerate(plans) if any(sample.id == name for sample in plan.samples))
    sample = next(sample for sample in plans[part].samples if sample.id == name)
    pictures = [image for _, image in render_photo(plans[part], sample, condition)[0]]
    candidate = next(row for row in result.candidates if row.name == result.method)
    after = candidate.folds[part]
    space, labels = result.plan.judged.space, result.plan.columns.labels

    def name_answer(model: Model) -> str:
        return _name(space, labels[int(model([pictures[0]])[0].argmax())])

    return [
        AnswerPicture(
            kind=kind, sample=name, label=_name(space, sample.label), image=_draw_box(pictures[0], after),
            change=f"{condition.attribute}: {describe_change(condition.edit, condition.level)}",
            before=name_answer(result.plan.model), after=name_answer(after),
        )
    ] if pictures else []  # fmt: skip


def _name(space: LabelSpace, label: str) -> str:
    return format_class_name(space.name_of(label)) if label in space else label


@lru_cache(maxsize=4)
def _open_session(path: Path) -> Any:
    return open_onnx_session(path)


def _draw_box(image: Image, model: Model) -> Image:
    """The picture with the box that the model looked at, where it says which."""
    if not isinstance(model.preprocessing, PhotoInput):
        return image
    session = _open_session(Path(model.name.partition("onnx:")[2]))
    if BOX not in [item.name for item in session.get_outputs()]:
        return image
    (values,) = session.run([BOX], {session.get_inputs()[0].name: prepare_input(image, model.preprocessing)[None]})
    left, top, side = box_pixels(values)
    drawn: Image = image.copy()
    thickness = max(2, min(image.shape[:2]) // 128)
    cv2.rectangle(drawn, (left, top), (left + side - 1, top + side - 1), _COLOUR, thickness)
    return drawn


def write_sheet(pictures: Sequence[AnswerPicture], path: Path) -> Path:
    """Write the pictures side by side, the answers before and after below each."""
    tiles = [_tile(picture) for picture in pictures]
    blank = np.full_like(tiles[0], 255) if tiles else np.full((_SIDE, _SIDE, 3), 255, np.uint8)
    rows = [tiles[start : start + _COLUMNS] for start in range(0, len(tiles), _COLUMNS)] or [[blank]]
    stacked = np.vstack([np.hstack([*row, *[blank] * (min(_COLUMNS, max(len(tiles), 1)) - len(row))]) for row in rows])
    return write_atomically(path, encode_png(Picture(stacked, np.zeros((1, 1), np.uint8))))


def _tile(picture: AnswerPicture) -> NDArray[np.uint8]:
    height, width = picture.image.shape[:2]
    scale = (_SIDE - 8) / max(height, width)
    size = (round(width * scale), round(height * scale))
    small = cv2.resize(picture.image, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC)
    tile = np.full((_SIDE + 4 * _LINE, _SIDE, 3), 255, np.uint8)
    top, left = (_SIDE - size[1]) // 2, (_SIDE - size[0]) // 2
    tile[top : top + size[1], left : left + size[0]] = small
    lines = (picture.label, f"before: {picture.before}", f"after: {picture.after}")
    for number, text in enumerate(lines):
        place = (8, _SIDE + (number + 1) * _LINE - 6)
        shown = text.encode("ascii", "replace").decode()[:36]
        cv2.putText(tile, shown, place, cv2.FONT_HERSHEY_SIMPLEX, 0.48, (30, 30, 30), 1, cv2.LINE_AA)
    return tile
