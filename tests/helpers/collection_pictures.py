"""Small workspaces of finished pictures with known right answers: a synthetic classifier names the colour it sees."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.store.prediction_tables import RenderedVariant, ResultTables
from counterfoil.store.workspace import locate_picture
from counterfoil.types import Attribute, Sample, Variant
from planted import HUES, LABELS, SATURATION


class Shown(NamedTuple):
    """One picture: its class and the colour of its object."""

    label: str
    colour: str
    attribute: Attribute = "texture"
    edit: str = "painted"
    level: str = "bricks"
    sample: str = ""  # "" for a sample of its own
    left: bool = False  # where the object is


def pictures(count: int, right: int, attribute: Attribute, edit: str, level: str) -> list[Shown]:
    """The first pictures have the colour of their class, the others that of the next class."""
    found = []
    for number in range(count):
        label = LABELS[number % len(LABELS)]
        colour = label if number < right else LABELS[(number + 1) % len(LABELS)]
        found.append(Shown(label, colour, attribute, edit, level))
    return found


def write_workspace(folder: Path, shown: Iterable[Shown]) -> Path:
    """A workspace as `build` leaves it, of these pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with ResultTables(folder, [], None) as tables:
        for number, one in enumerate(shown):
            image = _image(one, number)
            variant = _variant(one, number)
            path = folder / "pictures" / locate_picture(variant)
            path.parent.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(path), cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
            sample = Sample(id=str(variant.sample_id), label=one.label, image="", mask=None, digest="")
            tables.add_variant(
                sample, RenderedVariant(variant, hashlib.sha256(image.tobytes()).hexdigest(), float("nan"))
            )
    record: dict[str, object] = {
        "images": "",
        "masks": None,
        "recipe": "test",
        "recipe_digest": "",
        "seed": 0,
        "models": [],
    }
    (folder / "run.json").write_text(json.dumps({**record, "model_digests": {}, "preprocessing": {}}))
    return folder


def _variant(one: Shown, number: int) -> Variant:
    sample = one.sample or f"{one.label}/{one.edit}-{one.level}-{number:03d}"
    identity = hashlib.sha256(repr((one, number)).encode()).hexdigest()[:16]
    return Variant(
        id=identity,
        sample_id=sample,
        label=one.label,
        attribute=one.attribute,
        edit=one.edit,
        level=one.level,
        settings="{}",
        seed=number,
    )


def _image(one: Shown, number: int) -> NDArray[np.uint8]:
    """An oval in the strong colour on a plain ground whose brightness differs between pictures."""
    hsv = np.full((48, 64, 3), (0, 0, 100 + number % 100), np.uint8)
    centre = (16, 24) if one.left else (48, 24)
    cv2.ellipse(hsv, centre, (12, 18), 0, 0, 360, (HUES[one.colour], SATURATION, 220), -1)
    return np.asarray(cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB), np.uint8)
