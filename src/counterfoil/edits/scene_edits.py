"""Size, position and direction in another scene, where no filled hole is seen.

All of a photo's pictures of these edits show one scene, and are compared with the object as it was, in that scene: the
difference is the attribute's. The scene itself is an edit of the background. It is a view of open ground, or a part of
another photo.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.composition import Composition
from counterfoil.edits.cutout_quality import check_cutout
from counterfoil.edits.direction import Direction
from counterfoil.edits.donor_scene import SceneWindow, check_whole, classify_support, is_in_water
from counterfoil.edits.edit_protocol import ComposedEdit, Edit, Needs, RecipeEdit, Resolution, Supplied, format_percent
from counterfoil.edits.geometry import check_rate
from counterfoil.edits.grass import stands_in_grass
from counterfoil.edits.ground_view import MATERIALS, can_draw_ground
from counterfoil.edits.open_scene import (
    GRASS,
    GroundScene,
    check_open_scene,
    check_scene_for,
    find_open_scene,
    stand_in_scene,
    stand_on_ground,
)
from counterfoil.edits.photo_border import refuse_cut
from counterfoil.edits.position import Position
from counterfoil.edits.seeds import seed_from
from counterfoil.edits.size import Size
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Attribute, EditLevel

Window = tuple[float, float, float, float]  # left, top, width, height as shares of the photo that lends the scene
SCENE = EditLevel("scene-swap", "random")  # what the others are compared with
_IN_SCENE = "in another scene"
PHOTO = "photo"  # the ground of a scene that another photo lends
VIEWS = 10_000  # of a ground


class InScene(ComposedEdit):
    """What the edits in a scene share: a view of open ground, or a part of a photo that lends its scene."""

    later: ClassVar[tuple[str, ...]] = ("ground", "view")
    window: Window | None  # of the photo that lends the scene
    ground: str  # of what the open ground is; PHOTO: another photo lends the scene; "" where that is not chosen yet
    view: int  # number of the view of the ground; 0 where the user asked for a ground and not for a view of it

    @property
    def needs(self) -> Needs:
        """A photo that lends its scene, the same for all edits in a scene; none on open ground."""
        is_lent = self.ground == PHOTO or self.window is not None  # a window alone is of before there was open ground
        return Needs(donor="any" if is_lent else None, scene=True)

    def check_settings(self) -> None:
        """Raises `UserError` for a ground that is not known."""
        if self.ground not in ("", PHOTO, *MATERIALS):
            raise UserError(f"ground: expected {', '.join(MATERIALS)} or {PHOTO}, got '{self.ground}'")

    def settle(self) -> Edit:
        """A photo lends the scene where the photos of which grounds are made cannot be had."""
        if self.ground or self.window is not None or can_draw_ground():
            return self
        return replace(self, ground=PHOTO)  # type: ignore[type-var]  # a dataclass

    def choose(self, seed: int) -> Edit:
        """Choose the ground and the view of it."""
        if self.ground or self.window is not None:
            return self
        number, grounds = seed_from(seed, "ground"), tuple(MATERIALS)
        view = 1 + number // len(grounds) % VIEWS
        return replace(self, ground=grounds[number % len(grounds)], view=view)  # type: ignore[type-var]

    def check_subject(self, subject: Subject) -> None:
        """Raises `Unusable` where part of the object, or what it hangs or stands on, would be missing."""
        check_whole(subject)
        check_cutout(subject)
        if self.ground not in MATERIALS:
            return
        if classify_support(subject) == "air":
            raise Unusable("nothing tells that the object stands on something: it may be in the air")
        if is_in_water(subject):
            raise Unusable("the object may be in water, and the scene is ground")

    def check_donor(self, donor: Subject) -> None:
        """Raises `Unusable` where the photo's object is seen in every part that is large enough."""
        check_open_scene(donor)

    def check_fit(self, subject: Subject, donor: Subject, exposed: bool = False) -> None:
        """Raises `Unusable` where the object would not stand in the scene, or another object is seen there."""
        check_scene_for(subject, donor)

    def resolve(self, subject: Subject, supplied: Supplied) -> Resolution:
        """Choose the part of the photo, so that the settings alone reproduce the variant.

        Open ground that was drawn becomes grass where the object stands in grass, which hides its feet.
        """
        if self.ground in MATERIALS and self.view > 0 and subject.tools.refine and stands_in_grass(subject):
            return Resolution(replace(self, ground=GRASS))  # type: ignore[type-var]  # a dataclass
        if self.window is not None or self.ground in MATERIALS:
            return Resolution(self)
        left, top, width, height = find_open_scene(subject, supplied.donor)
        return Resolution(replace(self, window=(left, top, width, height)))  # type: ignore[type-var]  # a dataclass

    def stand(self, subject: Subject, supplied: Supplied) -> Subject:
        """The object as it was, in the scene."""
        if not self.ground and self.window is None:  # called without a run, which would have chosen
            return cast("InScene", self.choose(supplied.seed)).stand(subject, supplied)
        if self.ground in MATERIALS:
            return stand_on_ground(subject, GroundScene(self.ground, self.view))
        donor = supplied.donor
        window = find_open_scene(subject, donor) if self.window is None else SceneWindow(*self.window)
        return stand_in_scene(subject, donor, window)


@dataclass(frozen=True)
class SceneSwap(InScene):
    """Show the object as it was on open ground, or in a part of another photo that shows nothing of its object."""

    attribute: ClassVar[Attribute] = "background"
    version: ClassVar[int] = 3  # 3: on grass where the object stood in grass; 2: on open ground
    words: ClassVar[str] = "another scene behind the object"
    window: Window | None = None
    ground: str = ""
    view: int = 0

    def __post_init__(self) -> None:
        self.check_settings()

    @property
    def level(self) -> str:
        """The word random."""
        return SCENE.level

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Put the object before the scene."""
        return Composition.of(self.stand(subject, supplied).picture)

    def behind(self, subject: Subject, supplied: Supplied) -> NDArray[np.uint8]:
        """The scene."""
        return self.stand(subject, supplied).visible_background


class ChangedInScene(InScene):
    """An edit of the object's size, place or direction, made in the scene."""

    @property
    @abstractmethod
    def change(self) -> Edit:
        """The same edit on the photo's own background."""

    @property
    def level(self) -> str:
        """As of the same edit on the photo's own background."""
        return self.change.level

    @property
    def moves_object(self) -> bool:
        """It does: a cut by the photo's border would show in the scene too."""
        return True

    def check_subject(self, subject: Subject) -> None:
        """Raises `Unusable` as for the object as it was, and where two borders cut the object: too little is left."""
        super().check_subject(subject)
        if self.ground in MATERIALS and len(subject.cut_sides) > 1:
            refuse_cut(subject.cut_sides, "changing it in another scene")

    @property
    def required_edits(self) -> tuple[RecipeEdit, ...]:
        """The object as it was in the scene, or at the same size where a rate is given."""
        return (RecipeEdit(SCENE.edit, {}),)

    @classmethod
    def reference(cls, level: str) -> EditLevel | None:
        """The object as it was, in the same scene."""
        return SCENE

    @classmethod
    def on_own_ground(cls, level: str) -> EditLevel | None:
        """The same edit on the photo's own background, its hole filled."""
        return EditLevel(cls.attribute, level)

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Change the object in the scene."""
        return self.change.compose(self.stand(subject, supplied), rng, supplied)


@dataclass(frozen=True)
class SceneSize(ChangedInScene):
    """Zoom the object in the scene until it covers a given share of the picture."""

    attribute: ClassVar[Attribute] = "size"
    version: ClassVar[int] = 3  # 3: on grass where the object stood in grass; 2: on open ground
    rate: float = 0.05
    window: Window | None = None
    ground: str = ""
    view: int = 0

    def __post_init__(self) -> None:
        self.check_settings()
        check_rate(self.rate)

    @property
    def change(self) -> Size:
        """Size on the photo's own background."""
        return Size(rate=self.rate, grounded=True)

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence."""
        share = format_percent(level)
        return f"the object at {share} of the picture, {_IN_SCENE}" if share else f"{Size.describe(level)}, {_IN_SCENE}"


def _at_rate(level: str) -> EditLevel:
    """The object as it was, or at the size that a level such as "random@0.05" names, in the scene."""
    _, _, rate = level.partition("@")
    return EditLevel("scene-size", rate) if rate else SCENE


def _require_rate(rate: float | None) -> tuple[RecipeEdit, ...]:
    scene = RecipeEdit(SCENE.edit, {})
    return (scene,) if rate is None else (scene, RecipeEdit("scene-size", {"rate": rate}))


@dataclass(frozen=True)
class ScenePosition(ChangedInScene):
    """Move the object to another place of the scene."""

    attribute: ClassVar[Attribute] = "position"
    version: ClassVar[int] = 3  # 3: on grass where the object stood in grass; 2: on open ground
    rate: float | None = None  # zoom to this rate first
    window: Window | None = None
    ground: str = ""
    view: int = 0

    def __post_init__(self) -> None:
        self.check_settings()
        check_rate(self.rate)

    @property
    def change(self) -> Position:
        """Position on the photo's own background."""
        return Position(rate=self.rate, grounded=True)

    @classmethod
    def reference(cls, level: str) -> EditLevel | None:
        """The object where it was, at the same size in the same scene."""
        return _at_rate(level)

    @property
    def required_edits(self) -> tuple[RecipeEdit, ...]:
        """The object where it was, at the same size in the same scene."""
        return _require_rate(self.rate)

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence."""
        return f"{Position.describe(level)}, {_IN_SCENE}"


@dataclass(frozen=True)
class SceneDirection(ChangedInScene):
    """Turn the object in the scene, as far as it still stands."""

    attribute: ClassVar[Attribute] = "direction"
    version: ClassVar[int] = 4  # 4: in grass; 3: on open ground; 2: turned less far, as far as it keeps its footing
    low: int = -45
    high: int = 45
    angle: float | None = None
    rate: float | None = None  # zoom to this rate first
    window: Window | None = None
    ground: str = ""
    view: int = 0

    def __post_init__(self) -> None:
        self.check_settings()
        check_rate(self.rate)
        if self.low > self.high:
            raise UserError(f"low, high: expected low <= high, got {self.low} and {self.high}")

    @property
    def change(self) -> Direction:
        """Direction on the photo's own background."""
        return Direction(low=self.low, high=self.high, angle=self.angle, rate=self.rate, grounded=True)

    @classmethod
    def reference(cls, level: str) -> EditLevel | None:
        """The object as it stood, at the same size in the same scene."""
        return _at_rate(level)

    @property
    def required_edits(self) -> tuple[RecipeEdit, ...]:
        """The object as it stood, at the same size in the same scene."""
        return _require_rate(self.rate)

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence."""
        return f"{Direction.describe(level)}, {_IN_SCENE}"
