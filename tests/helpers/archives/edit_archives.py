"""Look-alikes of ImageNet-E, XImageNet-12 and ImageNet-9: several pictures of one object."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import Image

from archives.class_colours import FAR, SIDE, picture, save, save_bytes
from counterfoil.labels.benchmark_classes import imagenet9, ximagenet12
from counterfoil.labels.label_space import imagenet1k

E_FOLDERS = ("ori", "rec", "20_smooth", "20_hard", "20_adv", "random_bg", "full", "01", "008", "005", "rp", "rd")
E_WRONG = {  # of six photos, how many the planted classifier gets wrong in each folder
    "ori": 1, "rec": 1, "20_smooth": 2, "20_hard": 3, "20_adv": 6, "random_bg": 4, "full": 1, "01": 2, "008": 3,
    "005": 5, "rp": 4, "rd": 0,
}  # fmt: skip
E_CLASSES = (0, 1, 207, 404, 510, 999)
X_FOLDERS = (
    "image", "blur_background", "blur_object", "image_r", "image_g", "image_b", "image_rainbow", "segmented_image",
    "transparent_img", "rand_bg",
)  # fmt: skip
X_AS_RELEASED = {  # where the authors' scripts write to, and how they call a file there
    "image": "ImageNet-13 Original Image Dateset/image/{}/{}.JPEG",
    "segmented_image": "segmented_image/segmented_image/{}/{}.JPEG",
    "transparent_img": "segmented_image_transparent/{}/{}_segmented.png",
    "rand_bg": "combine/{}/{}.JPEG",
    "blur_background": "Blur_bg/train/{}/{}.JPEG",  # split, as their training script tells to
}
X_WRONG = {"image": 0, "blur_background": 1, "rand_bg": 2}  # of two photos of every class; one elsewhere
NINE = (
    "00_dog", "01_bird", "02_wheeled vehicle", "03_reptile", "04_carnivore", "05_insect", "06_musical instrument",
    "07_primate", "08_fish",
)  # fmt: skip
NINE_FOLDERS = ("original", "mixed_same", "mixed_rand", "mixed_next", "only_fg", "no_fg", "only_bg_b", "only_bg_t")


def imagenet_e(folder: Path) -> Path:
    """Six photos in twelve folders; labels.txt ends in blank lines, and scripts lie about."""
    lines = []
    for number, truth in enumerate(E_CLASSES, 1):
        stem = f"ILSVRC2012_val_{number:08d}"
        lines.append(f"{stem}.JPEG\t{truth}")
        for kind in E_FOLDERS:
            said = truth if number > E_WRONG[kind] else (truth + FAR) % 1000
            jpeg = kind in ("ori", "full")
            save(folder / kind / f"{stem}.{'JPEG' if jpeg else 'png'}", said, (30, 50) if jpeg else (256, 256))
    save_bytes(folder / "labels.txt", ("\n".join([*lines[:3], "", *lines[3:]]) + "\n\n").encode())
    for name in ("eval.py", "vis.py"):
        save_bytes(folder / name, b"import torch\n")
    save_bytes(folder / "ori" / ".DS_Store", b"\0")
    return folder


def ximagenet_12(folder: Path, layout: Mapping[str, str] | None = None) -> Path:
    """Two photos of each of twelve classes in ten folders; the masks are red on black, grey labels or 0/255 in turn."""
    for place, wnid in enumerate(ximagenet12().labels):
        truth = imagenet1k().labels.index(wnid)
        for number in (1, 2):
            stem = f"{wnid}_{100 * place + number}"
            for kind in X_FOLDERS:
                said = truth if number > X_WRONG.get(kind, 1) else (truth + FAR) % 1000
                plain = f"{kind}/{{}}/{{}}.{'png' if kind == 'transparent_img' else 'JPEG'}"
                path = folder / (layout or {}).get(kind, plain).format(wnid, stem)
                save(path, said, tint=20 * number)  # no photo twice
                if kind == "transparent_img":
                    _see_through(path, said)
            _mask(folder / "masks" / wnid / f"{stem}.png", place % 3)
            _mask(folder / "standard_masks" / wnid / f"{stem}.png", 2)
    save_bytes(folder / "json" / "n01689811" / "n01689811_1.json", b"{}")
    save_bytes(folder / "README.txt", b"see the paper")
    return folder


def mask() -> np.ndarray:
    """Where the object of every photo is, (height, width)."""
    inside = np.zeros((SIDE, SIDE), bool)
    inside[10:30, 12:28] = True
    return inside


def _mask(path: Path, form: int) -> None:
    inside = mask()
    path.parent.mkdir(parents=True, exist_ok=True)
    forms = (
        np.dstack([np.where(inside, 128, 0), np.zeros_like(inside, int), np.zeros_like(inside, int)]),
        np.where(inside, 7, 0),
        np.where(inside, 255, 0),
    )
    Image.fromarray(forms[form].astype(np.uint8)).save(path)


def _see_through(path: Path, said: int) -> None:
    """Opaque but for the corners, so that the median still says the class."""
    alpha = np.full((SIDE, SIDE, 1), 255, np.uint8)
    alpha[:4, :4] = 0
    Image.fromarray(np.concatenate([picture(said), alpha], axis=2)).save(path)


def imagenet_9(folder: Path) -> Path:
    """Two photos of each super-class in eight variations, with masks and the map that the release has beside them.

    The first photo of a super-class is wrong on other backgrounds; on the background alone a model finds nothing.
    """
    for number, name in enumerate(NINE):
        ids = imagenet9().ids_of(imagenet9().labels[number])
        other = imagenet9().ids_of(imagenet9().labels[(number + 1) % 9])[0]
        for photo in (0, 1):
            source = f"{ids[photo]}_{1000 + photo}"
            for kind in NINE_FOLDERS:
                right = kind in ("original", "mixed_same", "only_fg") or (kind.startswith("mixed") and photo == 1)
                wnid = ids[photo] if right else other
                mixed = f"fg_{source}_bg_{other}_2000" if kind.startswith("mixed") else source
                save(folder / kind / "val" / name / f"{mixed}.JPEG", imagenet1k().labels.index(wnid))
            path = folder / "fg_mask" / "val" / name / f"{source}.npy"
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, np.ones((SIDE, SIDE), bool) if photo else mask())
    save_bytes(folder / "in_to_in9.json", b"{}")
    return folder
