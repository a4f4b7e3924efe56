"""Look-alikes of the archives that hold one picture of an object, and of ImageNet-C."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image

from archives.class_colours import FAR, SIDE, picture, save, save_bytes
from counterfoil.labels.benchmark_classes import imagenet_a, imagenet_d, imagenet_r
from counterfoil.labels.label_space import LabelSpace, imagenet1k

CORRUPTIONS = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    "weather": ("snow", "frost", "fog", "brightness"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
    "extra": ("speckle_noise", "gaussian_blur", "spatter", "saturate"),
}
D_CATEGORIES = {  # factor to category to what its pictures say; banana is missing from two factors
    "background": {"alarm_clock": (409, 530, 8), "banana": (954,), "pen": (418, 950)},
    "texture": {"alarm_clock": (530,), "pen": (749, 415)},
    "material": {"mug": (504, 503), "plate": (1,)},
}


def _index(wnid: str) -> int:
    return imagenet1k().labels.index(wnid)


def _class_folders(folder: Path, space: LabelSpace, name: str) -> Path:
    """One picture a class: every fourth says a class outside, every fifth another class of the set."""
    inside = {_index(wnid) for wnid in space.labels}
    outside = [index for index in range(1000) if index not in inside]
    for place, wnid in enumerate(space.labels):
        said = _index(wnid)
        if place % 4 == 3:
            said = outside[place % len(outside)]
        elif place % 5 == 4:
            said = _index(space.labels[(place + 100) % 200])
        save(folder / wnid / name.format(place), said, (8, 8))
    save_bytes(folder / "README.txt", b"read me")
    return folder


def imagenet_a_archive(folder: Path) -> Path:
    """200 class folders, called by confidence, truth and answer."""
    return _class_folders(folder, imagenet_a(), "0.{:06d}_digital clock _ stopwatch_0.865662.jpg")


def imagenet_r_archive(folder: Path) -> Path:
    """200 class folders, called by rendition."""
    return _class_folders(folder, imagenet_r(), "cartoon_{}.jpg")


def imagenet_sketch(folder: Path) -> Path:
    """Sketches of four classes: a partial copy; one is wrong."""
    for place, index in enumerate((0, 1, 500, 999)):
        said = index if place else FAR
        save(folder / "sketch" / imagenet1k().labels[index] / f"sketch_{place}.JPEG", said)
    return folder


def imagenet_v2(folder: Path) -> Path:
    """Folders 0 to 999 of one picture each, right in every one but folder 10."""
    for index in range(1000):
        said = 510 if index == 10 else index
        save(folder / "imagenetv2-matched-frequency-format-val" / str(index) / "a1b2c3.jpeg", said, (8, 8))
    return folder


def cue_conflict(folder: Path) -> Path:
    """Three shapes with each other's textures: bears follow their shape, cats the texture, dogs neither."""
    index = {"bear": 294, "cat": 281, "dog": 152}
    for shape in index:
        for number, texture in enumerate(index, 1):
            said = {"bear": index["bear"], "cat": index[texture], "dog": 404}[shape]
            save(folder / "cue-conflict" / shape / f"{shape}{number}-{texture}{number}.png", said)
    save(folder / "cue-conflict" / "cat" / "dog7-bear1.png", 152)
    return folder


def imagenet_c(folder: Path) -> Path:
    """Ten photos under nineteen corruptions; at severity s the first s are wrong, in snow all of them."""
    for group, names in CORRUPTIONS.items():
        for name in names:
            for severity in range(1, 6):
                for photo in range(10):
                    wrong = photo < severity or name == "snow"
                    truth = 90 * photo
                    path = folder / group / name / str(severity) / imagenet1k().labels[truth]
                    said = (truth + FAR) % 1000 if wrong else truth
                    save(path / f"ILSVRC2012_val_{photo + 1:08d}.JPEG", said, (8, 8))
    return folder


VAL_CLASSES = (65, 970, 230, 809, 516, 57)  # of the first six validation pictures: any list of them has these


def imagenet_val(folder: Path, *, flat: bool) -> Path:
    """Six photos of six classes in class folders, or flat; the last is wrong."""
    for photo, index in enumerate(VAL_CLASSES):
        wnid, name = imagenet1k().labels[index], f"ILSVRC2012_val_{photo + 1:08d}.JPEG"
        save(folder / name if flat else folder / wnid / name, index if photo < 5 else FAR)
    return folder


def objectnet(folder: Path) -> Path:
    """Two folders that ImageNet has too, one with two ids, and one it has not; pictures have a red border."""
    top = folder / "objectnet-1.0"
    said = {"alarm_clock": (409, 530, 1), "backpack": (414, 1), "air_freshener": (3,)}
    for name, indices in said.items():
        for number, index in enumerate(indices):
            path = top / "images" / name / f"{number:015x}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            image = np.full((SIDE, SIDE + 10, 3), (255, 0, 0), np.uint8)
            image[2:-2, 2:-2] = picture(index, (SIDE - 4, SIDE + 6))
            Image.fromarray(image).save(path)
    labels = {"alarm_clock": "Alarm clock", "backpack": "Backpack", "air_freshener": "Air freshener"}
    overlap = {"Alarm clock": "analog clock; digital clock", "Backpack": "backpack, back pack, knapsack, packsack"}
    save_bytes(top / "mappings" / "folder_to_objectnet_label.json", json.dumps(labels).encode())
    save_bytes(top / "mappings" / "objectnet_to_imagenet_1k.json", json.dumps(overlap).encode())
    return folder


def imagenet_d_archive(folder: Path) -> Path:
    """Categories with several ids, one missing from a factor, and the questions; pictures say an ImageNet class."""
    top = folder / "ImageNet-D"
    for factor, categories in D_CATEGORIES.items():
        lines = ["image_dir\tgt_category\ttop1_pred_cate\ttop2_pred_cate"]
        for category, indices in categories.items():
            for number, index in enumerate(indices):
                file = f"{factor}/{category}/{factor[:3]}{category[:3]}{number:016d}.png"
                save(top / file, index)
                name = (
                    imagenet_d().name_of(category).lower().replace("_", " ").replace("/", " or ")
                )  # as CLIP was asked
                first = name if number == 0 else "can opener"  # where the first is the truth, the second is offered
                lines.append(f"{file}\t{name}\t{first}\tcoffee or french press")
        save_bytes(top / "questions" / f"{factor}.csv", ("\n".join(lines) + "\n").encode())
    save_bytes(top / "README.md", b"# ImageNet-D")
    return folder
