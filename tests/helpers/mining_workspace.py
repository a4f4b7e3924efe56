"""A small workspace with known shared failures: saved answers say which model is wrong on which picture."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.store.prediction_tables import RenderedVariant, ResultTables
from counterfoil.store.workspace import Workspace, locate_picture
from counterfoil.types import Attribute, Sample, Variant

LABELS = ("n01440764", "n01443537")  # tench, goldfish
CONDITIONS: tuple[tuple[Attribute, str, str], ...] = (
    ("original", "original", "none"),
    ("control", "control", "none"),
    ("presence", "object-removed", "removed"),
    ("background", "background-swap", "other"),
    ("size", "size", "0.1"),
    ("size", "size", "0.05"),
)
Wrong = Callable[[int, str, str], bool]  # photo, edit, level


def write_workspace(folder: Path, photos: int = 8, *, originals: bool = True) -> Workspace:
    """A workspace as `build` leaves it: every photo under every condition, tiny plain pictures."""
    conditions = [condition for condition in CONDITIONS if originals or condition[0] != "original"]
    with ResultTables(folder, [], None) as tables:
        for photo in range(photos):
            for place, condition in enumerate(conditions):
                _write_picture(folder, tables, photo, 37 * photo + 11 * place, condition)
    record: dict[str, object] = {
        "images": "",
        "masks": None,
        "recipe": "test",
        "recipe_digest": "",
        "seed": 0,
        "models": [],
    }
    (folder / "run.json").write_text(json.dumps({**record, "model_digests": {}, "preprocessing": {}}))
    return Workspace(folder)


def _write_picture(
    folder: Path, tables: ResultTables, photo: int, shade: int, condition: tuple[Attribute, str, str]
) -> None:
    name, label = f"fish/{photo:03d}.jpg", LABELS[photo % 2]
    identity = hashlib.sha256(repr((name, condition)).encode()).hexdigest()[:16]
    variant = Variant(identity, name, label, *condition, "{}", photo)
    image = np.full((24, 32, 3), shade % 256, np.uint8)
    path = folder / "pictures" / locate_picture(variant)
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), image)
    sample = Sample(id=name, label=label, image=name, mask=None, digest=f"{photo:064x}")
    tables.add_variant(sample, RenderedVariant(variant, hashlib.sha256(image.tobytes()).hexdigest(), 30.0))


def saved_answers(path: Path, workspace: Workspace, wrong: Wrong, *, unanswered: Wrong | None = None) -> str:
    """The address of a model that is wrong, or gives no answer, exactly on the pictures given."""
    lines = ["variant_id,class,probability"]
    for stored in workspace.pictures:
        v = stored.variant
        where = (int(str(v.sample_id)[5:8]), v.edit, v.level)
        if unanswered is None or not unanswered(*where):
            other = LABELS[1 - LABELS.index(v.label)]
            best, second = (other, v.label) if wrong(*where) else (v.label, other)
            lines += [f"{v.id},{best},0.75", f"{v.id},{second},0.25"]
    path.write_text("\n".join([*lines, f"{path.stem},tench,1"]) + "\n")  # the last line tells equal models apart
    return f"predictions:{path}"


def wrong_on(edit: str, photos: Sequence[int], level: str = "") -> Wrong:
    """Wrong on these photos under one edit, and right elsewhere."""
    return lambda photo, name, strength: name == edit and photo in photos and level in ("", strength)


def either(*wrong: Wrong) -> Wrong:
    """Wrong where one of them is."""
    return lambda photo, edit, level: any(one(photo, edit, level) for one in wrong)


class Counting:
    """A classifier that is always sure of the same class, and counts the pictures it was given."""

    labels = LABELS
    preprocessing = None
    digest = "counting"  # without it, the fixed pictures that a model is known by would be counted too
    shown = 0

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        Counting.shown += len(images)
        return np.tile(np.array([0.9, 0.1], np.float32), (len(images), 1))


counting = Counting
