"""Rows of the table of drops made once more by other code: Pillow, NumPy and ONNX Runtime, nothing of the edits.

    python bench/independent_rows.py IMAGES MASKS RUN

RUN is a finished `counterfoil run` over the same photos with the three embedded networks and the edits named below. The
photos, the networks' files and the names of the classes are common; cutting out, editing, preparing, asking and
counting are not. Printed: both drops, and whether they differ by more than chance (paired by photo, 95 %).
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pyarrow.parquet
from numpy.typing import NDArray
from PIL import Image, ImageFilter

import counterfoil.labels
from counterfoil.assets.cache import cache_folder

Floats = NDArray[np.float64]
ORIGINAL = ("original", "none")
IMAGENET = ((123.675, 116.28, 103.53), (58.395, 57.12, 57.375))
NETWORKS = {  # file, shorter side, crop, filter, mean and deviation
    "Lite0": ("efficientnet-lite0-1", 256, 224, Image.Resampling.BICUBIC, ((127.0,) * 3, (128.0,) * 3)),
    "Lite2": ("efficientnet-lite2-1", 292, 260, Image.Resampling.BICUBIC, ((127.0,) * 3, (128.0,) * 3)),
    "LCNetV2": ("pp-lcnetv2-1", 256, 224, Image.Resampling.BILINEAR, IMAGENET),
}
ROWS = {  # ours, by edit and level in the run
    ("control", "none"): "control",
    ("background-blur", "15/3"): "blur",
    ("background-grayscale", "gray"): "gray",
    ("background-swap", "other"): "swap",
    ("segmented", "black"): "black",
    ("segmented", "white"): "white",
    ("object-grayscale", "gray"): "object gray",
    ("grayscale", "gray"): "all gray",
    ("corruption-gaussian-noise", "3"): "noise",
}


def main() -> None:
    images, masks, run = map(Path, sys.argv[1:4])
    theirs = {name: read_answers(run / "predictions" / f"{name}.parquet") for name in NETWORKS}
    photos = sorted({sample for sample, _ in next(iter(theirs.values()))})
    answers = ask(images, masks, photos)
    print("| network | row | photos | run | independent | difference [95 %] |\n|---|---|--:|--:|--:|---|")
    apart = 0
    for name in NETWORKS:
        for place, own in ROWS.items():
            both = [photo for photo in photos if (photo, place) in theirs[name]]
            run_losses = [int(theirs[name][photo, ORIGINAL]) - theirs[name][photo, place] for photo in both]
            own_losses = [int(answers[name, photo, "original"]) - answers[name, photo, own] for photo in both]
            drops = np.column_stack([run_losses, own_losses]).astype(float)
            gap = drops[:, 0] - drops[:, 1]
            half = 1.96 * gap.std(ddof=1) / np.sqrt(len(gap))
            apart += abs(gap.mean()) > half
            run_drop, own_drop = 100 * drops.mean(axis=0)
            bounds = f"[{100 * (gap.mean() - half):.1f}, {100 * (gap.mean() + half):.1f}]"
            label = " ".join(place)
            cells = (name, label, len(both), f"{run_drop:.1f}", f"{own_drop:.1f}", f"{100 * gap.mean():.1f} {bounds}")
            print(f"| {' | '.join(map(str, cells))} |")
    print(f"\n{apart} of {len(NETWORKS) * len(ROWS)} rows differ by more than chance (about one in twenty would)")


def read_answers(path: Path) -> dict[tuple[str, tuple[str, str]], bool]:
    columns = pyarrow.parquet.read_table(path, columns=["sample_id", "edit", "level", "correct"]).to_pydict()
    rows = zip(columns["sample_id"], columns["edit"], columns["level"], columns["correct"], strict=True)
    return {(sample, (edit, level)): correct for sample, edit, level, correct in rows}


def ask(images: Path, masks: Path, photos: list[str]) -> dict[tuple[str, str, str], bool]:
    """Whether each network is right on each picture of each photo."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    networks = {
        name: onnxruntime.InferenceSession(cache_folder() / "networks" / f"{spec[0]}.onnx", options)
        for name, spec in NETWORKS.items()
    }
    listed = Path(counterfoil.labels.__file__).parent / "imagenet1k.csv"
    with listed.open(encoding="utf-8", newline="") as file:
        column = {row["wnid"]: int(row["index"]) for row in csv.DictReader(file)}
    rng = np.random.default_rng(7)
    answers = {}
    for photo in photos:
        others = [other for other in photos if Path(other).parent != Path(photo).parent]
        donor = others[rng.integers(len(others))]
        pictures = edit(load(images, masks, photo), load(images, masks, donor), rng)
        for name, session in networks.items():
            batch = np.stack([prepare(picture, name) for picture in pictures.values()])
            given = session.run(None, {session.get_inputs()[0].name: batch})[0].argmax(axis=1)
            for kind, answer in zip(pictures, given, strict=True):
                answers[name, photo, kind] = bool(answer == column[Path(photo).parent.name])
    return answers


def load(images: Path, masks: Path, photo: str) -> tuple[Floats, Floats]:
    """The photo and how much of each pixel is the object: the mask's sure half, its border softened by a pixel."""
    picture = Image.open(images / photo).convert("RGB")
    mask = Image.open((masks / photo).with_suffix(".png")).convert("L").point(lambda level: 255 * (level >= 128))
    soft = np.asarray(mask.filter(ImageFilter.GaussianBlur(1)), float) / 255
    return np.asarray(picture, float), soft[:, :, None]


def edit(own: tuple[Floats, Floats], donor: tuple[Floats, Floats], rng: np.random.Generator) -> dict[str, Floats]:
    """Every picture of a photo."""
    photo, share = own
    ground = spread(photo, 1 - share, 3) * share + photo * (1 - share)  # the object's place holds what is around it
    gray = np.repeat((photo @ (0.299, 0.587, 0.114))[:, :, None], 3, axis=2)
    behind = {
        "blur": blur(ground, 3),
        "gray": gray,
        "swap": fill(*donor, photo.shape[:2]),
        "black": np.zeros_like(photo),
        "white": np.full_like(photo, 255),
    }
    pictures = {"original": photo, "control": photo}
    pictures |= {name: share * photo + (1 - share) * other for name, other in behind.items()}
    pictures |= {"object gray": share * gray + (1 - share) * photo, "all gray": gray}
    return pictures | {"noise": np.clip(photo + 255 * 0.18 * rng.normal(size=photo.shape), 0, 255)}


def fill(photo: Floats, share: Floats, shape: tuple[int, ...]) -> Floats:
    """A photo without its object: at a quarter of its size, colours from around the hole, ever coarser inwards."""
    small, hidden = (np.asarray(resize(plane, (shape[0] // 4, shape[1] // 4))) for plane in (photo, share))
    known, filled = 1 - hidden, small * (1 - hidden)
    for radius in (1, 4, 16, 64):
        wide, reached = spread(small, 1 - hidden, radius), blur(1 - hidden, radius) > 0.05
        filled = np.where(reached, filled + (1 - known) * wide, filled)
        known = np.where(reached, 1.0, known)
    rough = resize(filled, shape)
    full, cover = resize(photo, shape), resize(share, shape)
    return full * (1 - cover) + rough * cover


def resize(plane: Floats, shape: tuple[int, ...]) -> Floats:
    channels = [Image.fromarray(channel.astype(np.float32)) for channel in np.moveaxis(plane, 2, 0)]
    size = (shape[1], shape[0])
    return np.dstack([np.asarray(one.resize(size, Image.Resampling.BILINEAR), float) for one in channels])


def spread(photo: Floats, known: Floats, radius: float) -> Floats:
    """The mean colour of the known pixels around each pixel."""
    return blur(photo * known, radius) / np.maximum(blur(np.repeat(known, 3, axis=2), radius), 1e-6)


def blur(plane: Floats, radius: float) -> Floats:
    """A Gaussian, one axis after the other; the border is repeated."""
    reach = int(3 * radius)
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / radius) ** 2)
    for axis in (0, 1):
        padding = [(reach, reach) if place == axis else (0, 0) for place in range(3)]
        padded = np.pad(plane, padding, mode="edge")
        length = padded.shape[axis] + 2 * reach
        kernel = np.fft.rfft(weights / weights.sum(), length).reshape(
            [-1 if place == axis else 1 for place in range(3)]
        )
        whole = np.fft.irfft(np.fft.rfft(padded, length, axis=axis) * kernel, length, axis=axis)
        plane = np.take(whole, range(2 * reach, 2 * reach + plane.shape[axis]), axis=axis)
    return plane


def prepare(picture: Floats, name: str) -> NDArray[np.float32]:
    """The network's input: shorter side, centre crop, normalised."""
    _, side, crop, how, (mean, deviation) = NETWORKS[name]
    image = Image.fromarray(np.rint(picture).astype(np.uint8))
    scale = side / min(image.size)
    image = image.resize((int(image.width * scale), int(image.height * scale)), how)
    left, top = (image.width - crop) // 2, (image.height - crop) // 2
    levels = np.asarray(image.crop((left, top, left + crop, top + crop)), np.float32)
    normalised = ((levels - np.array(mean)) / np.array(deviation)).astype(np.float32)
    return np.moveaxis(normalised, 2, 0)


if __name__ == "__main__":
    main()
