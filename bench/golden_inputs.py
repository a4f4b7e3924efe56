"""Inputs of the golden scenarios: small copies of the published archives, models and a painter of known behaviour.

Everything is written by rule, so that two checkouts get equal bytes. Nothing is imported from Counterfoil: only the
tables of classes (`imagenet1k.csv` and its like) are read from the checkout, wherever they lie in it.
"""

from __future__ import annotations

import csv
import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

LEVELS = 8  # between two colours: JPEG does not move a colour that far
WRONG = 500  # classes away, the true class is not among the five best answers
SIDE = 40

RECIPE = """about: A few edits that networks fail on.
working_size: 256
edits:
  - edit: control
  - edit: background-swap
  - edit: texture
  - {edit: size, settings: {rate: 0.05}}
"""

MODULE = '''"""Models and a painter that need no weights."""

import hashlib
import json
import os
import time
from pathlib import Path

import numpy as np

LABELS = tuple(json.loads((Path(__file__).parent / "labels.json").read_text()))


class ColourModel:
    """Answers with the class that a picture's median colour encodes; the four classes that follow come next."""

    labels = LABELS
    preprocessing = None
    offset = 0

    def __call__(self, images):
        scores = np.full((len(images), len(LABELS)), 1e-6, np.float32)
        for row, image in enumerate(images):
            red, green, _ = np.median(image.reshape(-1, 3), axis=0)
            index = int(green // 8) * 32 + int(red // 8) + self.offset
            for place in range(5):
                scores[row, (index + place) % len(LABELS)] = 0.5 ** (place + 1)
        return np.asarray(scores / scores.sum(axis=1, keepdims=True), np.float32)


class NextColourModel(ColourModel):
    """One class off: right only where a picture encodes the class before."""

    offset = 1


class HaltingModel(ColourModel):
    """Stops answering once the journal that GOLDEN_JOURNAL names has so many lines: the moment to kill the run."""

    def __call__(self, images):
        journal = Path(os.environ.get("GOLDEN_JOURNAL", "no-journal"))
        while journal.is_file() and journal.read_bytes().count(b"\\n") >= 4:
            time.sleep(0.05)
        return super().__call__(images)


class NoisePainter:
    """Smooth colours drawn from prompt and seed; black where the prompt says sky."""

    settings = {"steps": 3}
    digest = "noise-1"

    def paint(self, requests):
        return [self._paint_one(request) for request in requests]

    def _paint_one(self, request):
        height, width = (48, 48) if request.around is None else request.around.alpha.shape
        if "sky" in request.prompt:
            return np.zeros((height, width, 3), np.uint8)
        text = f"{request.prompt}|{request.negative}|{request.seed}"
        rng = np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big"))
        coarse = rng.integers(0, 256, (6, 6, 3)).astype(np.uint8)
        return np.ascontiguousarray(coarse[np.arange(height) * 6 // height][:, np.arange(width) * 6 // width])


colour, next_colour, halting, noise = ColourModel, NextColourModel, HaltingModel, NoisePainter
'''

Size = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Classes:
    """The classes of ImageNet and of the sets made from it."""

    imagenet: Sequence[str]  # WordNet ids by column
    imagenet_a: Sequence[str]
    imagenet_r: Sequence[str]
    ximagenet: Sequence[str]
    super_classes: Sequence[Sequence[str]]  # of ImageNet-9, the WordNet ids of each

    @classmethod
    def read(cls, checkout: Path) -> Classes:
        """Read the tables of a checkout, wherever they lie in its source."""

        def column(file: str, name: str) -> list[str]:
            path = next((checkout / "src").rglob(file))
            with path.open(newline="", encoding="utf-8") as table:
                return [row[name] for row in csv.DictReader(table)]

        return cls(
            imagenet=column("imagenet1k.csv", "wnid"),
            imagenet_a=column("imagenet_a.csv", "label"),
            imagenet_r=column("imagenet_r.csv", "label"),
            ximagenet=column("ximagenet12.csv", "label"),
            super_classes=[ids.split() for ids in column("imagenet9.csv", "ids")],
        )


def write_inputs(checkout: Path, folder: Path) -> None:
    """Write the recipe, the module with models and painter, and every archive under `folder`."""
    classes = Classes.read(checkout)
    _write(folder / "recipe.yaml", RECIPE.encode())
    _write(folder / "golden_models.py", MODULE.encode())
    _write(folder / "labels.json", json.dumps(list(classes.imagenet)).encode())
    for name, write in ARCHIVES.items():
        write(folder / "archives" / name, classes)
    _write_tar(folder / "archives" / "imagenet-e", folder / "archives" / "imagenet-e.tar")
    _write_zip(folder / "archives" / "ximagenet-12", folder / "archives" / "ximagenet-12.zip")


@cache
def _encoded(kind: str, index: int, size: Size, blue: int) -> bytes:
    colour = (LEVELS * (index % 32) + LEVELS // 2, LEVELS * (index // 32) + LEVELS // 2, blue)
    file = io.BytesIO()
    Image.fromarray(np.full((*size, 3), colour, np.uint8)).save(file, kind, quality=95)
    return file.getvalue()


def _write(path: Path, data: bytes) -> None:
    """Write a file, unless it is there already: another recording may be reading it."""
    if not (path.is_file() and path.read_bytes() == data):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _write_picture(path: Path, index: int, size: Size = (SIDE, SIDE), blue: int = 128) -> None:
    """Write a plain picture that `ColourModel` answers with this class; the file's ending says the format."""
    _write(path, _encoded("PNG" if path.suffix.lower() == ".png" else "JPEG", index % 1000, size, blue))


def _object_mask() -> NDArray[np.bool_]:
    inside = np.zeros((SIDE, SIDE), bool)
    inside[10:30, 12:28] = True
    return inside


def write_imagenet_e(folder: Path, classes: Classes) -> None:
    """Write six photos in the twelve folders; how many are wrong differs by folder."""
    wrong = {"ori": 1, "rec": 1, "20_smooth": 2, "20_hard": 3, "20_adv": 6, "random_bg": 4, "full": 1, "01": 2,
             "008": 3, "005": 5, "rp": 4, "rd": 0}  # fmt: skip
    lines = []
    for number, truth in enumerate((0, 1, 207, 404, 510, 999), 1):
        stem = f"ILSVRC2012_val_{number:08d}"
        lines.append(f"{stem}.JPEG\t{truth}")
        for kind, count in wrong.items():
            jpeg = kind in ("ori", "full")
            answer = truth if number > count else truth + WRONG
            file = folder / kind / f"{stem}.{'JPEG' if jpeg else 'png'}"
            _write_picture(file, answer, (30, 50) if jpeg else (256, 256))
    _write(folder / "labels.txt", ("\n".join(lines) + "\n\n").encode())


def write_ximagenet_12(folder: Path, classes: Classes) -> None:
    """Write two photos of each class in the ten folders, with masks."""
    kinds = ("image", "blur_background", "blur_object", "image_r", "image_g", "image_b", "image_rainbow",
             "segmented_image", "transparent_img", "rand_bg")  # fmt: skip
    wrong = {"image": 0, "rand_bg": 2}
    mask = io.BytesIO()
    Image.fromarray(np.where(_object_mask(), 255, 0).astype(np.uint8)).save(mask, "PNG")
    for place, wnid in enumerate(classes.ximagenet):
        truth = classes.imagenet.index(wnid)
        for number in (1, 2):
            stem = f"{wnid}_{100 * place + number}"
            for kind in kinds:
                answer = truth if number > wrong.get(kind, 1) else truth + WRONG
                ending = "png" if kind == "transparent_img" else "JPEG"
                _write_picture(folder / kind / wnid / f"{stem}.{ending}", answer, blue=128 + 20 * number)
            for kind in ("masks", "standard_masks"):
                _write(folder / kind / wnid / f"{stem}.png", mask.getvalue())


def write_imagenet_9(folder: Path, classes: Classes) -> None:
    """Write two photos of each super-class in the eight variations, with the masks of the challenge."""
    kinds = ("original", "mixed_same", "mixed_rand", "mixed_next", "only_fg", "no_fg", "only_bg_b", "only_bg_t")
    names = ("dog", "bird", "wheeled vehicle", "reptile", "carnivore", "insect", "musical instrument", "primate",
             "fish")  # fmt: skip
    for number, (name, ids) in enumerate(zip(names, classes.super_classes, strict=True)):
        other = classes.super_classes[(number + 1) % 9][0]
        for photo in (0, 1):
            stem = f"{ids[photo]}_{1000 + photo}"
            for kind in kinds:
                right = kind in ("original", "mixed_same", "only_fg") or (kind.startswith("mixed") and photo == 1)
                file = f"fg_{stem}_bg_{other}_2000" if kind.startswith("mixed") else stem
                path = folder / kind / "val" / f"{number:02d}_{name}" / f"{file}.JPEG"
                _write_picture(path, classes.imagenet.index(ids[photo] if right else other))
            mask = io.BytesIO()
            np.save(mask, np.ones((SIDE, SIDE), bool) if photo else _object_mask())
            _write(folder / "fg_mask" / "val" / f"{number:02d}_{name}" / f"{stem}.npy", mask.getvalue())


def _write_class_folders(folder: Path, labels: Sequence[str], file: str, classes: Classes) -> None:
    """Write one picture a class; every fourth is answered with a class outside of the set."""
    outside = [index for index, wnid in enumerate(classes.imagenet) if wnid not in set(labels)]
    for place, wnid in enumerate(labels):
        answer = outside[place % len(outside)] if place % 4 == 3 else classes.imagenet.index(wnid)
        _write_picture(folder / wnid / file.format(place), answer, (8, 8))


def write_imagenet_a(folder: Path, classes: Classes) -> None:
    """Write the 200 classes of ImageNet-A."""
    _write_class_folders(folder, classes.imagenet_a, "0.{:06d}_digital clock _ stopwatch_0.865662.jpg", classes)


def write_imagenet_r(folder: Path, classes: Classes) -> None:
    """Write the 200 classes of ImageNet-R."""
    _write_class_folders(folder, classes.imagenet_r, "cartoon_{}.jpg", classes)


def write_imagenet_sketch(folder: Path, classes: Classes) -> None:
    """Write sketches of four classes; the first is wrong."""
    for place, index in enumerate((0, 1, 500, 999)):
        path = folder / "sketch" / classes.imagenet[index] / f"sketch_{place}.JPEG"
        _write_picture(path, index if place else WRONG)


def write_imagenet_v2(folder: Path, classes: Classes) -> None:
    """Write the folders 0 to 999 with one picture each; folder 10 is wrong."""
    for index in range(1000):
        path = folder / "imagenetv2-matched-frequency-format-val" / str(index) / "a1b2c3.jpeg"
        _write_picture(path, 510 if index == 10 else index, (8, 8))


def write_imagenet_c(folder: Path, classes: Classes) -> None:
    """Write ten photos under nineteen corruptions; at severity s the first s are wrong, in snow all."""
    groups = {
        "noise": "gaussian_noise shot_noise impulse_noise", "blur": "defocus_blur glass_blur motion_blur zoom_blur",
        "weather": "snow frost fog brightness", "digital": "contrast elastic_transform pixelate jpeg_compression",
        "extra": "speckle_noise gaussian_blur spatter saturate",
    }  # fmt: skip
    for group, names in groups.items():
        for name in names.split():
            for severity in range(1, 6):
                for photo in range(10):
                    answer = 90 * photo + (WRONG if photo < severity or name == "snow" else 0)
                    place = folder / group / name / str(severity) / classes.imagenet[90 * photo]
                    _write_picture(place / f"ILSVRC2012_val_{photo + 1:08d}.JPEG", answer, (8, 8))


def write_imagenet_val(folder: Path, classes: Classes) -> None:
    """Write six validation photos in class folders; the last is wrong."""
    for photo, index in enumerate((65, 970, 230, 809, 516, 57)):
        path = folder / classes.imagenet[index] / f"ILSVRC2012_val_{photo + 1:08d}.JPEG"
        _write_picture(path, index if photo < 5 else WRONG)


def write_objectnet(folder: Path, classes: Classes) -> None:
    """Write three folders, one of which ImageNet does not have."""
    top = folder / "objectnet-1.0"
    for name, indices in {"alarm_clock": (409, 530, 1), "backpack": (414, 1), "air_freshener": (3,)}.items():
        for number, index in enumerate(indices):
            _write_picture(top / "images" / name / f"{number:015x}.png", index)
    labels = {"alarm_clock": "Alarm clock", "backpack": "Backpack", "air_freshener": "Air freshener"}
    overlap = {"Alarm clock": "analog clock; digital clock", "Backpack": "backpack, back pack, knapsack, packsack"}
    _write(top / "mappings" / "folder_to_objectnet_label.json", json.dumps(labels).encode())
    _write(top / "mappings" / "objectnet_to_imagenet_1k.json", json.dumps(overlap).encode())


def write_imagenet_d(folder: Path, classes: Classes) -> None:
    """Write categories with several ids and the questions that go with them."""
    factors = {
        "background": {"alarm_clock": (409, 530, 8), "banana": (954,), "pen": (418, 950)},
        "texture": {"alarm_clock": (530,), "pen": (749, 415)},
        "material": {"mug": (504, 503), "plate": (1,)},
    }
    top = folder / "ImageNet-D"
    for factor, categories in factors.items():
        lines = ["image_dir\tgt_category\ttop1_pred_cate\ttop2_pred_cate"]
        for category, indices in categories.items():
            name = category.replace("_", " ")
            for number, index in enumerate(indices):
                file = f"{factor}/{category}/{factor[:3]}{category[:3]}{number:016d}.png"
                _write_picture(top / file, index)
                lines.append(f"{file}\t{name}\t{'can opener' if number else name}\tcoffee or french press")
        _write(top / "questions" / f"{factor}.csv", ("\n".join(lines) + "\n").encode())


def _write_tar(folder: Path, file: Path) -> None:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            member = tarfile.TarInfo(f"./{path.relative_to(folder).as_posix()}")
            member.size = path.stat().st_size
            with path.open("rb") as data:
                archive.addfile(member, data)
    _write(file, whole.getvalue())


def _write_zip(folder: Path, file: Path) -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            member = zipfile.ZipInfo(path.relative_to(folder).as_posix())  # its date is always 1980
            archive.writestr(member, path.read_bytes(), zipfile.ZIP_DEFLATED)
    _write(file, whole.getvalue())


ARCHIVES: dict[str, Callable[[Path, Classes], None]] = {
    "imagenet-e": write_imagenet_e,
    "ximagenet-12": write_ximagenet_12,
    "imagenet-9": write_imagenet_9,
    "imagenet-a": write_imagenet_a,
    "imagenet-r": write_imagenet_r,
    "imagenet-sketch": write_imagenet_sketch,
    "imagenet-v2": write_imagenet_v2,
    "imagenet-c": write_imagenet_c,
    "imagenet-val": write_imagenet_val,
    "objectnet": write_objectnet,
    "imagenet-d": write_imagenet_d,
}
