"""Do edited pictures show the attribute or the tool? The judge's figures per edit, and fills against hidden truth.

    python bench/pictures.py IMAGES MASKS [--photos 48] [--first 0] [--sheets FOLDER [--shuffled]]

Before: patches fill every hole, nothing is refused. After: the fill is chosen and judged, cut objects stay at their
border, cut-outs are refined. `--sheets` writes contact sheets of the pictures that were made, before and after, to be
looked at. `--shuffled` mixes both on sheets that do not name them, and writes which picture is which to `key.csv`: to
be read after counting.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.edit_protocol import Edit, Supplied
from counterfoil.edits.fill import find_hole
from counterfoil.edits.fill_choice import Fills, FillTask, load_fills
from counterfoil.edits.fill_control import find_room
from counterfoil.edits.fill_quality import MOST, FilledHole, measure_fill, measure_texture
from counterfoil.edits.photo_border import find_cut_sides
from counterfoil.edits.registry import edit_named
from counterfoil.edits.subject import Subject, Tools
from counterfoil.errors import Unusable
from counterfoil.models.model_loaders import load_model
from counterfoil.sources.source_loaders import open_source
from counterfoil.types import Model, Picture
from counterfoil.variant_renderer import resize_to_working_size

SIDE = 384
EDITS: Mapping[str, tuple[str, dict[str, object]]] = {
    "size 0.05": ("size", {"rate": 0.05, "grounded": True}),
    "position": ("position", {"grounded": True}),
    "direction": ("direction", {"grounded": True}),
    "flip upside-down": ("flip", {"axis": "upside-down"}),
    "object-removed": ("object-removed", {}),
    "background-swap": ("background-swap", {"grounded": True}),
    "fill-control": ("fill-control", {}),
    "scene-swap": ("scene-swap", {}),
    "scene-size 0.05": ("scene-size", {"rate": 0.05}),
    "scene-position 0.05": ("scene-position", {"rate": 0.05}),
    "scene-direction": ("scene-direction", {}),
}
NO_CHANGE = 1.0  # mean difference in levels below which an edit did nothing
DONORS = 17  # tried by an edit that takes one, as in a run
SIDE_OF_CELL = 330  # of a contact sheet: the longer side of a picture
COLUMNS, ROWS = 6, 4

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]


@dataclass
class Tally:
    """What became of one edit on all photos."""

    made: list[Bytes] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    seam: list[float] = field(default_factory=list)
    repetition: list[float] = field(default_factory=list)
    texture: list[float] = field(default_factory=list)
    faulty: int = 0  # by any of the judge's limits
    invented: int = 0
    cut: int = 0  # pictures that show where the photo's border cut the object
    idle: int = 0  # pictures that hardly differ from the photo

    def row(self, name: str) -> str:
        """One line of the table."""
        n = max(1, len(self.made))
        means = (np.mean(values) if values else 0.0 for values in (self.seam, self.repetition, self.texture))
        figures = " | ".join(f"{value:.2f}" for value in means)
        shares = " | ".join(f"{100 * count / n:.0f} %" for count in (self.faulty, self.invented, self.cut, self.idle))
        return f"| {name} | {len(self.made)} | {len(self.refused)} | {figures} | {shares} |"


class Photo(NamedTuple):
    """A photo at working size and at its own."""

    name: str
    picture: Picture
    own: Picture


def read_photos(images: Path, masks: Path, count: int, first: int = 0) -> list[Photo]:
    """Photos spread evenly over the folder, from this number of each stretch on."""
    source = open_source(images, masks)
    samples = source.samples()[0]
    chosen = samples[first :: max(1, len(samples) // count)][:count]
    read = ((sample.id, *source.read(sample)) for sample in chosen)
    return [
        Photo(name, resize_to_working_size(Picture(image, mask), SIDE), Picture(image, mask))
        for name, image, mask in read
        if mask is not None
    ]


def try_edit(edit: Edit, subjects: Sequence[Subject], place: int, tally: Tally) -> None:
    """Make one picture and measure it."""
    tried = len(subjects) - 1 if edit.needs.scene else min(len(subjects) - 1, DONORS)
    subject, donors = subjects[place], [subjects[(place + step) % len(subjects)] for step in range(1, tried + 1)]
    if edit.needs.scene:  # all edits of a photo on one ground
        edit = edit.choose(place)
    try:
        edit.check_subject(subject)
        lenders = (each for each in donors if edit.needs.donor is not None and _suits(edit, subject, each))
        donor = next(lenders, donors[0])
        if edit.needs.donor is not None:
            edit.check_donor(donor)
            edit.check_fit(subject, donor)
        elif edit.needs.scene:
            edit = edit.resolve(subject, Supplied(donors=[])).edit
        picture = edit.apply(subject, np.random.default_rng(place), Supplied(donors=[donor]))
    except Unusable as error:
        tally.refused.append(str(error))
        return
    tally.made.append(picture.image)
    if edit.needs.scene:  # nothing is filled
        return
    filled, hole = _visible_fill(edit, subject, donor, picture)
    quality = measure_fill(FilledHole(filled, hole), load_fills().find_salience)
    tally.seam.append(quality.seam)
    tally.repetition.append(quality.repetition)
    tally.texture.append(quality.texture)
    tally.faulty += bool(quality.reason)
    tally.invented += quality.appearance > MOST.appearance
    free = edit.moves_object and subject.tools.allow_cut
    tally.cut += free and bool(find_cut_sides(subject.hard_object))
    tally.idle += float(np.abs(picture.image.astype(int) - subject.picture.image).mean()) < NO_CHANGE


def _suits(edit: Edit, subject: Subject, donor: Subject) -> bool:
    try:
        edit.check_donor(donor)
        edit.check_fit(subject, donor)
    except Unusable:
        return False
    return True


def _visible_fill(edit: Edit, subject: Subject, donor: Subject, picture: Picture) -> tuple[Bytes, Flags]:
    """The filled picture that the edit shows, and its hole."""
    if edit.needs.donor is not None:
        return donor.fill.image, donor.hole
    if not edit.moves_object and picture.alpha.any():  # the fill control: the hole is what changed
        return picture.image, np.asarray((picture.image != subject.picture.image).any(axis=2))
    return subject.fill.image, subject.hole


class Truth(NamedTuple):
    """How far one fill of a region of real background is from what was there."""

    error: float  # root mean square, in levels
    texture: float  # difference of texture strength, in doublings
    divergence: float  # KL of a network's answer to the photo from its answer to the filled photo


def compare_truth(photo: Photo, fills: Fills, model: Model) -> Iterator[tuple[str, Truth]]:
    """Each fill of a hole of the object's shape, cut out of the background."""
    subject = Subject(photo.picture)
    image, own = photo.picture.image, find_hole(subject.cutout.alpha)
    hole = find_room(own, np.random.default_rng(0))
    telea = cv2.inpaint(image, (hole | own).astype(np.uint8), 3, cv2.INPAINT_TELEA)
    plain = Fills(network=fills.network)
    chosen = fills.first(FillTask(image, hole, own))
    results = {
        "cv2 Telea": np.where(hole[..., None], telea, image).astype(np.uint8),
        "exemplar": plain.first(FillTask(image, hole, own)).image,
        "MI-GAN": plain.second(FillTask(image, hole, own), "exemplar").image if fills.network is not None else None,
        "the choice": chosen.image,
        "the choice, not refused": None if chosen.reason else chosen.image,
    }
    for name, filled in results.items():
        if filled is not None:
            yield name, _score(image, filled, hole, model)


def _score(image: Bytes, filled: Bytes, hole: Flags, model: Model) -> Truth:
    error = float(np.sqrt(((filled[hole].astype(float) - image[hole]) ** 2).mean()))
    gray = [np.asarray(cv2.cvtColor(each, cv2.COLOR_RGB2GRAY), np.float32) for each in (filled, image)]
    # One picture beside the other: the region of the truth stands for the surroundings.
    both, inside = np.hstack(gray), np.hstack([hole, np.zeros_like(hole)])
    texture = measure_texture(both, inside, np.hstack([np.zeros_like(hole), hole]))
    before, after = np.maximum(np.asarray(model([image, filled]), np.float64), 1e-9)
    return Truth(error, texture, float((before * np.log(before / after)).sum()))


def draw_sheets(pictures: Sequence[Bytes], path: Path) -> None:
    """The pictures in numbered rows, on as many sheets as they need: PATH-1.png, PATH-2.png, ..."""
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [_draw_cell(picture, number) for number, picture in enumerate(pictures, start=1)]
    for number, start in enumerate(range(0, len(cells), COLUMNS * ROWS), start=1):
        page = cells[start : start + COLUMNS * ROWS]
        page += [np.full_like(page[0], 255)] * (-len(page) % COLUMNS)
        rows = [np.hstack(page[first : first + COLUMNS]) for first in range(0, len(page), COLUMNS)]
        cv2.imwrite(f"{path}-{number}.png", cv2.cvtColor(np.vstack(rows), cv2.COLOR_RGB2BGR))


def _draw_cell(picture: Bytes, number: int) -> Bytes:
    scale = SIDE_OF_CELL / max(picture.shape[:2])
    size = (round(picture.shape[1] * scale), round(picture.shape[0] * scale))
    cell = np.full((SIDE_OF_CELL + 4, SIDE_OF_CELL + 4, 3), 255, np.uint8)
    cell[: size[1], : size[0]] = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    cv2.rectangle(cell, (0, 0), (44, 22), (255, 255, 255), -1)
    cv2.putText(cell, str(number), (2, 18), cv2.FONT_HERSHEY_SIMPLEX, 0.6, (200, 0, 0), 2)
    return cell


def draw_shuffled(made: Sequence[tuple[str, Bytes]], folder: Path) -> None:
    """All pictures in a drawn order on sheets without names, and the key to them."""
    order = np.random.default_rng(0).permutation(len(made))
    draw_sheets([made[place][1] for place in order], folder / "shuffled")
    lines = [f"{number},{made[place][0]}" for number, place in enumerate(order, start=1)]
    (folder / "key.csv").write_text("\n".join(["number,edit", *lines, ""]), encoding="utf-8")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("images", type=Path)
    parser.add_argument("masks", type=Path)
    parser.add_argument("--photos", type=int, default=48)
    parser.add_argument("--first", type=int, default=0, help="start at this photo of each stretch")
    parser.add_argument("--sheets", type=Path)
    parser.add_argument("--shuffled", action="store_true", help="sheets that do not say what they show")
    given = parser.parse_args()
    photos, fills, model = (
        read_photos(given.images, given.masks, given.photos, given.first),
        load_fills(),
        load_model("embedded:efficientnet-lite0"),
    )
    print(f"{len(photos)} photos; fills: {fills.record}")
    print("| edit | made | refused | seam | repetition | texture | faulty | invented | cut shown | no change |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    made: list[tuple[str, Bytes]] = []
    for when, tools in (("before", Tools(allow_cut=True)), ("after", Tools(fills=fills, refine=True))):
        subjects = [Subject(photo.own, photo.picture, tools=tools) for photo in photos]
        for name, (kind, settings) in EDITS.items():
            tally = Tally()
            for place in range(len(subjects)):
                try_edit(edit_named(kind, settings), subjects, place, tally)
            print(tally.row(f"{name}, {when}"), flush=True)
            made += [(f"{name}, {when}", picture) for picture in tally.made]
            if given.sheets and tally.made and not given.shuffled:
                draw_sheets(tally.made, given.sheets / f"{name.replace(' ', '-')}-{when}")
    if given.sheets and given.shuffled:
        draw_shuffled(made, given.sheets)
    print("\n| fill | regions | error | texture | KL |\n|---|---|---|---|---|")
    truths: dict[str, list[Truth]] = {}
    for photo in photos:
        try:
            for name, truth in compare_truth(photo, fills, model):
                truths.setdefault(name, []).append(truth)
        except Unusable:
            continue
    for name, rows in truths.items():
        print(
            f"| {name} | {len(rows)} | "
            + " | ".join(f"{np.mean(column):.2f}" for column in zip(*rows, strict=True))
            + " |"
        )


if __name__ == "__main__":
    main()
