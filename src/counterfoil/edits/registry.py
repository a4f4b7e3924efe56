"""The edits by name: built-in ones, registered here in `OURS`, and those of installed plug-ins."""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pydantic import TypeAdapter, ValidationError

from counterfoil.edits import (
    background,
    background_colour,
    background_folder,
    blur,
    colour,
    combine,
    complexity,
    control,
    direction,
    fill_control,
    light,
    material,
    motion,
    occlusion,
    painted,
    position,
    presence,
    scene_edits,
    second_object,
    shadow,
    shape,
    size,
    text,
    texture,
    whole_picture,
)
from counterfoil.edits.corruptions import CORRUPTIONS
from counterfoil.edits.edit_protocol import Edit, adapt_old_edit, describe_level
from counterfoil.errors import UserError, expect_kind
from counterfoil.types import EditLevel

ENTRY_POINTS = "counterfoil.edits"  # the group in which another package names its edits

OURS: Mapping[str, type[Edit]] = {
    "control": control.Control,
    "fill-control": fill_control.FillControl,
    "background-swap": background.BackgroundSwap,
    "scene-swap": scene_edits.SceneSwap,
    "background-plain": background.BackgroundPlain,
    "background-blur": background.BackgroundBlur,
    "background-additive": background.BackgroundAdditive,
    "background-folder": background_folder.BackgroundFolder,
    "background-texture": background.BackgroundTexture,
    "background-hue": background_colour.BackgroundHue,
    "background-rainbow": background_colour.BackgroundRainbow,
    "background-grayscale": background_colour.BackgroundGrayscale,
    "background-brightness": background_colour.BackgroundBrightness,
    "background-contrast": background_colour.BackgroundContrast,
    "background-complexity": complexity.Complexity,
    "background-worst": background.BackgroundWorst,
    "painted-complexity": painted.PaintedComplexity,
    "painted-adversarial": painted.PaintedAdversarial,
    "painted-random": painted.PaintedRandom,
    "object-removed": presence.ObjectRemoved,
    "painted-removal": painted.PaintedRemoval,
    "object-box": presence.ObjectBox,
    "size": size.Size,
    "scene-size": scene_edits.SceneSize,
    "position": position.Position,
    "scene-position": scene_edits.ScenePosition,
    "position-grid": position.PositionGrid,
    "direction": direction.Direction,
    "scene-direction": scene_edits.SceneDirection,
    "flip": direction.Flip,
    "tilt": direction.Tilt,
    "object-blur": blur.ObjectBlur,
    "object-motion": motion.ObjectMotion,
    "object-hue": colour.ObjectHue,
    "object-grayscale": colour.ObjectGrayscale,
    "object-brightness": colour.ObjectBrightness,
    "texture": texture.Texture,
    "material": material.Material,
    "shadow": shadow.Shadow,
    "occlusion": occlusion.Occlusion,
    "occlusion-object": occlusion.OcclusionObject,
    "crop": occlusion.Crop,
    "text": text.Text,
    "second-object": second_object.SecondObject,
    "exposure": light.Exposure,
    "white-balance": light.WhiteBalance,
    "segmented": background.Segmented,
    "silhouette": shape.Silhouette,
    "edges": shape.Edges,
    **CORRUPTIONS,
    "jpeg": whole_picture.Jpeg,
    "resize": whole_picture.Resize,
    "grayscale": whole_picture.Grayscale,
    "combine": combine.Combine,
    "combine-donor": combine.CombineDonor,
}


class _Registry(Mapping[str, type[Edit]]):
    """The edits by name; plug-ins are imported on the first lookup."""

    @cached_property
    def _classes(self) -> dict[str, type[Edit]]:
        classes = dict(OURS)
        for entry in entry_points(group=ENTRY_POINTS):
            if entry.name in classes:
                raise UserError(
                    f"two edits are named {entry.name!r}, one of them {entry.value}: uninstall or rename one"
                )
            classes[entry.name] = _load_class(entry)
        return classes

    def add(self, name: str, kind: type[Edit]) -> None:
        """Add an edit of this process; one that was added before under the name is replaced, as in a notebook."""
        if name in self._classes and name not in self.added:
            raise UserError(f"expected a new name for an edit, got {name!r}, which is taken; give name=...")
        self.added.add(name)
        self._classes[name] = kind

    @cached_property
    def added(self) -> set[str]:
        """The edits of this process, by name."""
        return set()

    def __getitem__(self, name: str) -> type[Edit]:
        return self._classes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)


def _load_class(entry: EntryPoint) -> type[Edit]:
    kind = entry.load()
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        raise UserError(f"entry point {entry.name} = {entry.value}: expected a dataclass, got {kind!r}")
    if issubclass(kind, Edit):
        return kind
    if not any("__call__" in vars(base) for base in kind.__mro__):
        raise UserError(f"entry point {entry.name} = {entry.value}: expected a subclass of counterfoil.Edit")
    return adapt_old_edit(kind)


_REGISTRY = _Registry()
EDITS: Mapping[str, type[Edit]] = _REGISTRY


def register_edit(name: str, kind: type[Edit]) -> None:
    """Make an edit known by its name in this process; other packages use an entry point instead."""
    _REGISTRY.add(name, kind)


def is_of_process(name: str) -> bool:
    """Whether an edit was registered in this process, so that another process does not know it."""
    return name in _REGISTRY.added


def edit_named(name: str, settings: Mapping[str, object]) -> Edit:
    """The edit registered under `name`, with these settings.

    Args:
        name: A name of `counterfoil list edits`.
        settings: Values of its settings, as a recipe has them; the others keep their defaults.

    Returns:
        The edit.

    Raises:
        UserError: There is no such edit or setting, or a value is of the wrong type.

    Examples:
        >>> edit_named("size", {"rate": 0.1}).level
        '0.1'
    """
    expect_kind(name, str, "the name of an edit")
    expect_kind(settings, Mapping, "settings by name")
    if name not in EDITS:
        near = difflib.get_close_matches(name, EDITS, n=3, cutoff=0.4) or sorted(EDITS)
        raise UserError(f"no edit is named {name!r}; did you mean {' or '.join(near)}?")
    known = [field.name for field in dataclasses.fields(EDITS[name])]  # type: ignore[arg-type]
    for key in settings:
        if key not in known:
            raise UserError(f"edit {name}: unknown setting {key!r}; expected {', '.join(known) or 'none'}")
    try:
        # Through JSON, where a list may be a tuple and 1 a float, but the text "1" is not a number.
        return _make_adapter(EDITS[name]).validate_json(json.dumps(dict(settings)), strict=True)  # type: ignore[no-any-return]
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][:1])
        raise UserError(f"edit {name}: setting {where}: {first['msg']}, got {settings.get(where)!r}") from None


@lru_cache(maxsize=256)
def _make_adapter(kind: type[Edit]) -> TypeAdapter[Any]:
    """What checks the settings of an edit; made once, since that takes a millisecond."""
    return TypeAdapter(kind)


def name_of(edit: Edit) -> str:
    """The name under which the edit's class is registered."""
    for name, kind in EDITS.items():
        if type(edit) is kind:
            return name
    raise UserError(f"{type(edit).__name__} is not a registered edit; register it as an entry point of {ENTRY_POINTS}")


def settings_of(edit: Edit) -> dict[str, object]:
    """The edit's settings as JSON values."""
    settings: dict[str, object] = json.loads(json.dumps(dataclasses.asdict(edit)))  # type: ignore[call-overload]
    return settings


def describe_edit(name: str, level: str) -> str:
    """The edit at a level, as the subject of a sentence; accepts names and levels of any run."""
    return EDITS[name].describe(level) if name in EDITS else describe_level(name, level)


def shows_tool(name: str) -> bool:
    """Whether a fill or the mask's edge may show in the pictures of an edit; True for edits that are not registered."""
    edit = _with_defaults(name)
    return edit is None or edit.shows_fill or edit.uses_mask


def uses_mask(name: str) -> bool:
    """Whether the mask matters to the pictures of an edit; True for edits that are not registered."""
    edit = _with_defaults(name)
    return edit is None or edit.uses_mask


def _with_defaults(name: str) -> Edit | None:
    try:
        return EDITS[name]()
    except (KeyError, TypeError, UserError):  # unknown, or it has no default settings
        return None


def shows_fill(name: str, level: str) -> bool:
    """Whether a fill may show in the pictures of an edit at a level; True for edits that are not registered."""
    try:
        return EDITS[name].shows_fill_at(level)
    except (KeyError, TypeError, UserError):  # unknown, or it has no default settings
        return True


def crossed_by(name: str, level: str) -> tuple[EditLevel, EditLevel] | None:
    """The two edits that an edit at a level makes at once; None where it is one, or not registered."""
    return EDITS[name].crossed(name, level) if name in EDITS else None


def own_ground_of(name: str, level: str) -> EditLevel | None:
    """The same change on the photo's own background, of an edit that makes it in another scene; else None."""
    return EDITS[name].on_own_ground(level) if name in EDITS else None


def reference_of(name: str, level: str) -> EditLevel | None:
    """What the edit at a level is compared with; None for the original, and for edits that are not registered."""
    return EDITS[name].reference(level) if name in EDITS else None
