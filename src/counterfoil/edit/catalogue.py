"""Every edit by its registered name, ours and those of other packages."""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pydantic import TypeAdapter, ValidationError

from counterfoil.edit.background import BackgroundAdditive, BackgroundBlur, BackgroundPlain, BackgroundSwap
from counterfoil.edit.background_box import ObjectBox
from counterfoil.edit.background_colour import (
    BackgroundBrightness,
    BackgroundContrast,
    BackgroundGrayscale,
    BackgroundHue,
    BackgroundRainbow,
)
from counterfoil.edit.background_folder import BackgroundFolder
from counterfoil.edit.background_texture import BackgroundTexture
from counterfoil.edit.base import Edit, describe_level
from counterfoil.edit.blur import ObjectBlur
from counterfoil.edit.colour import ObjectBrightness, ObjectGrayscale, ObjectHue
from counterfoil.edit.combine import Combine, CombineDonor
from counterfoil.edit.complexity import Complexity
from counterfoil.edit.control import Control
from counterfoil.edit.corruptions import CORRUPTIONS
from counterfoil.edit.crop import Crop
from counterfoil.edit.direction import Direction, Flip
from counterfoil.edit.legacy import adapted
from counterfoil.edit.material import Material
from counterfoil.edit.occlusion import Occlusion
from counterfoil.edit.outline import Edges, Silhouette
from counterfoil.edit.painted import PaintedAdversarial, PaintedComplexity, PaintedRandom, PaintedRemoval
from counterfoil.edit.position import Position, PositionGrid
from counterfoil.edit.presence import ObjectRemoved
from counterfoil.edit.segmented import Segmented
from counterfoil.edit.shadow import Shadow
from counterfoil.edit.size import Size
from counterfoil.edit.texture import Texture
from counterfoil.edit.tilt import Tilt
from counterfoil.edit.whole import Grayscale, Jpeg, Resize
from counterfoil.edit.worst_of import BackgroundWorst
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
