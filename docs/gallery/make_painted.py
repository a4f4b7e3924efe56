"""Make the pictures of docs/paint.md again: three free photos, every kind side by side; then ways to larger ones."""

from __future__ import annotations

from pathlib import Path

import make_sizes
import numpy as np
from make_gallery import photos, sheet
from numpy.typing import NDArray

from counterfoil.edits.edit_protocol import Supplied
from counterfoil.edits.registry import edit_named, settings_of
from counterfoil.edits.subject import Subject
from counterfoil.models.model_loaders import load_model
from counterfoil.types import Picture

HERE = Path(__file__).parent
LABELS = ("n02123045", "n07920052", "n04008634", None)  # tabby, espresso, missile; a person is no class of ImageNet
SHOWN = (0, 1, 2)
KINDS = (
    ("object-removed", {}), ("painted-complexity", {"guidance": -20}), ("painted-complexity", {"guidance": 0}),
    ("painted-complexity", {"guidance": 20}), ("painted-random", {}),
)  # fmt: skip


def main() -> None:
    """One row per photo: original, removed, lambda -20, 0, 20, random, 20-adv."""
    pictures = photos()
    rows = [[*_painted(pictures[place], place), _adversarial(pictures[place], place)] for place in SHOWN]
    sheet(rows).save(HERE / "paint.jpg", quality=85, optimize=True)
    make_sizes.main()


def _painted(picture: Picture, place: int) -> list[NDArray[np.uint8]]:
    made = (edit_named(name, settings)(picture, np.random.default_rng(place + 1)) for name, settings in KINDS)
    return [picture.image, *(each.image for each in made)]


def _adversarial(picture: Picture, place: int) -> NDArray[np.uint8]:
    """20-adv as a run makes it; says how, and what the surrogate thinks of it."""
    surrogate, label = load_model("embedded:efficientnet-lite0"), str(LABELS[place])
    subject, supplied = Subject(picture), Supplied(label=label, seed=place + 1, load_surrogate=lambda: surrogate)
    edit = edit_named("painted-adversarial", {}).resolve(subject, supplied).edit
    made = edit.apply(subject, np.random.default_rng(place + 1), supplied)
    before, after = surrogate([picture.image, made.image])[:, surrogate.labels.index(label)]
    print(f"{label} by {settings_of(edit)['by']}: probability of the truth {before:.3f} before, {after:.3f} after")
    return made.image


if __name__ == "__main__":
    main()
