"""Edits by registered name, with plug-ins."""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pydantic import TypeAdapter, ValidationError

from counterfoil.edits.background import (
    BackgroundAdditive,
    BackgroundBlur,
    BackgroundPlain,
    BackgroundSwap,
    BackgroundTexture,
    ObjectBox,
    ObjectRemoved,
    Segmented,
)
from counterfoil.edits.background_colour import (
    BackgroundBrightness,
    BackgroundContrast,
    BackgroundGrayscale,
    BackgroundHue,
    BackgroundRainbow,
)
from counterfoil.edits.background_folder import BackgroundFolder
from counterfoil.edits.blur import ObjectBlur
from counterfoil.edits.colour import ObjectBrightness, ObjectGrayscale, ObjectHue
from counterfoil.edits.combine import Combine, CombineDonor
from counterfoil.edits.complexity import Complexity
from counterfoil.edits.control import Control
from counterfoil.edits.corruptions import CORRUPTIONS
from counterfoil.edits.direction import Direction, Flip, Tilt
from counterfoil.edits.edit_protocol import Edit, adapted, describe_level
from counterfoil.edits.material import Material
from counterfoil.edits.occlusion import Crop, Occlusion
from counterfoil.edits.painted import PaintedAdversarial, PaintedComplexity, PaintedRandom, PaintedRemoval
from counterfoil.edits.position import Position, PositionGrid
from counterfoil.edits.shadow import Shadow
from counterfoil.edits.shape import Edges, Silhouette
from counterfoil.edits.size import Size
from counterfoil.edits.texture import Texture
from counterfoil.edits.whole_picture import Grayscale, Jpeg, Resize
from counterfoil.edits.worst_background import BackgroundWorst
from counterfoil.errors import UserError

ENTRY_POINTS = "counterfoil.edits"  # the group in which another package names its edits

OURS: Mapping[str, type[Edit]] = {
    "control": Control,
    "background-swap": BackgroundSwap,
    "background-plain": BackgroundPlain,
    "background-blur": BackgroundBlur,
    "background-additive": BackgroundAdditive,
    "background-folder": BackgroundFolder,
    "background-texture": BackgroundTexture,
    "background-hue": BackgroundHue,
    "background-rainbow": BackgroundRainbow,
    "background-grayscale": BackgroundGrayscale,
    "background-brightness": BackgroundBrightness,
    "background-contrast": BackgroundContrast,
    "background-complexity": Complexity,
    "background-worst": BackgroundWorst,
    "painted-complexity": PaintedComplexity,
    "painted-adversarial": PaintedAdversarial,
    "painted-random": PaintedRandom,
    "object-removed": ObjectRemoved,
    "painted-removal": PaintedRemoval,
    "object-box": ObjectBox,
    "size": Size,
    "position": Position,
    "position-grid": PositionGrid,
    "direction": Direction,
    "flip": Flip,
    "tilt": Tilt,
    "object-blur": ObjectBlur,
    "object-hue": ObjectHue,
    "object-grayscale": ObjectGrayscale,
    "object-brightness": ObjectBrightness,
    "texture": Texture,
    "material": Material,
    "shadow": Shadow,
    "occlusion": Occlusion,
    "crop": Crop,
    "segmented": Segmented,
    "silhouette": Silhouette,
    "edges": Edges,
    **CORRUPTIONS,
    "jpeg": Jpeg,
    "resize": Resize,
    "grayscale": Grayscale,
    "combine": Combine,
    "combine-donor": CombineDonor,
}


class _Catalogue(Mapping[str, type[Edit]]):
    """The edits by name; other packages are imported when the first name is looked up, not before."""

    @cached_property
    def _classes(self) -> dict[str, type[Edit]]:
        classes = dict(OURS)
        for entry in entry_points(group=ENTRY_POINTS):
            if entry.name in classes:
                raise UserError(
                    f"two edits are named {entry.name!r}, one of them {entry.value}: uninstall or rename one"
                )
            classes[entry.name] = _loaded(entry)
        return classes

    def __getitem__(self, name: str) -> type[Edit]:
        return self._classes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)


def _loaded(entry: EntryPoint) -> type[Edit]:
    kind = entry.load()
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        raise UserError(f"entry point {entry.name} = {entry.value}: expected a dataclass, got {kind!r}")
    if issubclass(kind, Edit):
        return kind
    if not any("__call__" in vars(base) for base in kind.__mro__):
        raise UserError(f"entry point {entry.name} = {entry.value}: expected a subclass of counterfoil.Edit")
    return adapted(kind)


EDITS: Mapping[str, type[Edit]] = _Catalogue()


def edit_named(name: str, settings: Mapping[str, object]) -> Edit:
    """The edit registered under `name`, with these settings."""
    if name not in EDITS:
        near = difflib.get_close_matches(name, EDITS, n=3, cutoff=0.4) or sorted(EDITS)
        raise UserError(f"no edit is named {name!r}; did you mean {' or '.join(near)}?")
    known = [field.name for field in dataclasses.fields(EDITS[name])]  # type: ignore[arg-type]
    for key in settings:
        if key not in known:
            raise UserError(f"edit {name}: unknown setting {key!r}; expected {', '.join(known) or 'none'}")
    try:
        # By way of JSON, since there a list may be a tuple and 1 a float, but the text "1" is no number.
        return TypeAdapter[Any](EDITS[name]).validate_json(json.dumps(dict(settings)), strict=True)  # type: ignore[no-any-return]
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][:1])
        raise UserError(f"edit {name}: setting {where}: {first['msg']}, got {settings.get(where)!r}") from None


def name_of(edit: Edit) -> str:
    """The name under which the edit's class is registered."""
    for name, kind in EDITS.items():
        if type(edit) is kind:
            return name
    raise UserError(f"{type(edit).__name__} is not a registered edit; register it as an entry point of {ENTRY_POINTS}")


def settings_of(edit: Edit) -> dict[str, object]:
    """The edit's settings, ready for JSON."""
    settings: dict[str, object] = json.loads(json.dumps(dataclasses.asdict(edit)))  # type: ignore[call-overload]
    return settings


def describe_edit(name: str, level: str) -> str:
    """What an edit does at a level, as the subject of a sentence; takes names and levels of any run."""
    return EDITS[name].describe(level) if name in EDITS else describe_level(name, level)
