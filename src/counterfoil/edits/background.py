"""Edits of the background: swapped, the worst of several, plain, blurred, added, textured, or the object alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.blur import GaussianBlur
from counterfoil.edits.composition import Composition, Flat, Plane, Smoothed
from counterfoil.edits.cutout import cover
from counterfoil.edits.cutout_quality import check_cutout
from counterfoil.edits.donor_scene import (
    OTHER_OBJECTS,
    SALIENT,
    SceneFit,
    SceneWindow,
    check_dry,
    check_scene,
    check_whole,
    classify_support,
    fit_scene,
    show_scene,
)
from counterfoil.edits.edit_protocol import ComposedEdit, Edit, Needs, Resolution, ShownFill, Supplied
from counterfoil.edits.fill_quality import MOST
from counterfoil.edits.scene import USUAL, relight
from counterfoil.edits.subject import Subject
from counterfoil.edits.texture import RANDOM, check_texture, choose_texture, tile_texture
from counterfoil.errors import Unusable, UserError
from counterfoil.types import Attribute, DonorRule, Picture

Bytes = NDArray[np.uint8]
_LEVELS_OF_GREY = {"black": 0, "white": 255, "transparent": 255}


@dataclass(frozen=True)
class BackgroundSwap(ComposedEdit):
    """Put the object before the background of another photo, whose own object is removed and filled."""

    attribute: ClassVar[Attribute] = "background"
    version: ClassVar[int] = 5  # 5, 4, 3: other fills and limits; 2: the fill is judged, the shadow leaves too
    later: ClassVar[tuple[str, ...]] = ("grounded", "window")
    words: ClassVar[str] = "swapping it"
    donors: DonorRule = "other"
    blend: bool = False  # adapt the object's light and colour, and cast its contact shadow; its pixels then change
    grounded: bool = False  # blended, before the part of the photo where it stands on ground and hides the fill
    window: tuple[float, float, float, float] | None = None  # that part: left, top, width, height as shares; chosen

    @property
    def needs(self) -> Needs:
        """The photo whose background is taken."""
        return Needs(donor=self.donors)

    @property
    def picture_version(self) -> int:
        """Blended pictures are newer: colour and contact shadow were added to brightness."""
        return self.version + self.blend

    @property
    def level(self) -> str:
        """The donor's class: other, same or next."""
        return f"{self.donors}, blended" if self.blend else self.donors

    def check_subject(self, subject: Subject) -> None:
        """Raises `Unusable` where part of the object, or what it hangs on, would be missing."""
        if self.grounded:
            check_whole(subject)
            check_cutout(subject)
            check_dry(subject)

    def check_donor(self, donor: Subject) -> None:
        """Raises `Unusable` where the donor's background is not filled well or shows another object."""
        if self.grounded:  # the rest depends on what the object hides, see `check_fit`
            check_whole(donor)
        else:
            check_donor_background(donor)

    def check_fit(self, subject: Subject, donor: Subject, exposed: bool = False) -> None:
        """Raises `Unusable` where the object would not stand on the donor's ground, or what is seen is not good."""
        if self.grounded:
            check_scene(subject, donor, exposed)

    @property
    def shows_fill(self) -> bool:
        """The donor's background is filled where its own object was."""
        return True

    def find_shown_fill(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> ShownFill | None:
        """The donor's: the object's own hole is not seen."""
        if not self.grounded:
            return ShownFill.of(supplied.donor)
        scene = self._find_scene(subject, supplied.donor)
        return ShownFill(supplied.donor.fill.name, scene.visible) if scene.visible > 0 else None

    def resolve(self, subject: Subject, supplied: Supplied) -> Resolution:
        """Choose the window of the donor's photo, so that the settings alone reproduce the variant."""
        if not self.grounded or self.window is not None:
            return Resolution(self)
        left, top, width, height = fit_scene(subject, supplied.donor).window
        return Resolution(replace(self, window=(left, top, width, height)))

    def _find_scene(self, subject: Subject, donor: Subject) -> SceneFit:
        if self.window is None:
            return fit_scene(subject, donor)
        return SceneFit.of(subject, donor, SceneWindow(*self.window))

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Take the donor's background, scaled to cover, or the window of it that was chosen."""
        background = self.behind(subject, supplied)
        if not self.grounded:
            return relight(subject, background) if self.blend else subject.compose_on(Plane(background))
        return relight(subject, background, USUAL if classify_support(subject) == "ground" else 0.0)

    def behind(self, subject: Subject, supplied: Supplied) -> Bytes:
        """The donor's background."""
        if not self.grounded:
            return _donor_background(subject, supplied.donor)
        return show_scene(subject, supplied.donor, self._find_scene(subject, supplied.donor))


@dataclass(frozen=True)
class BackgroundWorst(Edit):
    """Put the object before the one of several photos' backgrounds that makes a surrogate doubt the truth most."""

    attribute: ClassVar[Attribute] = "background"
    version: ClassVar[int] = 5  # 5, 4, 3: other fills and limits; 2: the fill is judged, the shadow leaves too
    donors: DonorRule = "other"
    candidates: int = 8
    surrogate: str = "embedded:efficientnet-lite0"  # address of the model

    def __post_init__(self) -> None:
        if self.candidates < 2:
            raise UserError(f"candidates: expected at least 2 backgrounds to choose from, got {self.candidates}")

    @property
    def level(self) -> str:
        """The number of candidates: "worst of 8"."""
        return f"worst of {self.candidates}"

    @property
    def needs(self) -> Needs:
        """Several donors, and the surrogate that chooses among them."""
        return Needs(donor=self.donors, candidates=self.candidates, surrogate=self.surrogate)

    def check_donor(self, donor: Subject) -> None:
        """Raises `Unusable` where the donor's background is not filled well or shows another object."""
        check_donor_background(donor)

    @property
    def shows_fill(self) -> bool:
        """The donor's background is filled where its own object was."""
        return True

    def find_shown_fill(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> ShownFill | None:
        """The donor's: the object's own hole is not seen."""
        return ShownFill.of(supplied.donor)

    def resolve(self, subject: Subject, supplied: Supplied) -> Resolution:
        """Choose the donor whose background leaves the true label the least probability."""
        places, images = [], []
        for place, donor in enumerate(supplied.donors):
            try:
                images.append(self.apply(subject, np.random.default_rng(0), Supplied(donors=(donor,))).image)
            except Unusable:
                continue
            places.append(place)
        if not places:
            raise Unusable(f"none of {len(supplied.donors)} donors has a background to lend")
        return Resolution(self, donor=places[int(np.argmin(supplied.true_scores(images)))])

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Put the object before the chosen donor's background."""
        return BackgroundSwap(self.donors).apply(subject, rng, supplied)


def _donor_background(subject: Subject, donor: Subject) -> Bytes:
    """The donor's filled background, scaled to cover the subject's picture."""
    try:
        return cover(donor.visible_background, subject.picture.alpha.shape)
    except Unusable as error:
        raise Unusable(f"the donor has no background to lend: {error}") from error


def check_donor_background(donor: Subject) -> None:
    """Raises `Unusable` where a donor's background is not filled well, or shows an object besides the removed one."""
    covered = float(donor.hard_object.mean())
    if donor.tools.fills.judged and covered > MOST.hole_share:  # known from the mask: nothing has to be filled
        raise Unusable(
            f"the donor's object covers {covered:.0%} of its photo, at most {MOST.hole_share:.0%} can be filled"
        )
    _ = donor.visible_background
    share = donor.once(_measure_other_objects)
    if share > OTHER_OBJECTS:
        raise Unusable(f"the donor's background shows another object, on {share:.1%} of the picture")


def _measure_other_objects(donor: Subject) -> float:
    """The share of a photo without its object that a network finds salient; 0 where fills are not judged."""
    find_salience = donor.tools.fills.find_salience
    if find_salience is None:
        return 0.0
    background = donor.visible_background
    return donor.once_stored(("other objects", background), lambda: float((find_salience(background) > SALIENT).mean()))


@dataclass(frozen=True)
class BackgroundPlain(ComposedEdit):
    """Put the object on a plain colour, drawn at random unless one is given."""

    attribute: ClassVar[Attribute] = "background"
    words: ClassVar[str] = "a plain one instead"
    colour: tuple[int, int, int] | None = None

    def __post_init__(self) -> None:
        if self.colour is not None and not all(0 <= value <= 255 for value in self.colour):
            raise UserError(f"colour: expected three numbers from 0 to 255 (red, green, blue), got {self.colour}")

    @property
    def level(self) -> str:
        """The colour as in HTML, or "random"."""
        return "random" if self.colour is None else "#{:02x}{:02x}{:02x}".format(*self.colour)

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Fill everything but the object with the colour."""
        colour = rng.integers(0, 256, 3) if self.colour is None else self.colour
        red, green, blue = (int(value) for value in colour)
        return subject.compose_on(Flat((red, green, blue), subject.picture.alpha.shape))


@dataclass(frozen=True)
class BackgroundBlur(GaussianBlur):
    """Blur the background by a Gaussian; `faithful` blurs the photo with its object, whose colours spread."""

    attribute: ClassVar[Attribute] = "background"
    words: ClassVar[str] = "blurring it"

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Blur the filled background, so that the object's colours do not spread into it."""
        if not self.faithful:
            return subject.compose_on(Smoothed(Plane(subject.background), self.kernel, self.sigma))
        image, inside = subject.picture.image, subject.hard_object[..., None]
        blurred = np.where(inside, image, self.blur(image))
        return Composition(Plane(blurred.astype(np.uint8)), subject.cutout.alpha)


@dataclass(frozen=True)
class BackgroundAdditive(Edit):
    """Add another photo's background to the object on black, as XImageNet-12 does: the object shines through."""

    attribute: ClassVar[Attribute] = "background"
    version: ClassVar[int] = 5  # 5, 4, 3: other fills and limits; 2: the fill is judged, the shadow leaves too
    donors: DonorRule = "other"

    @property
    def needs(self) -> Needs:
        """The photo whose background is taken."""
        return Needs(donor=self.donors)

    def check_donor(self, donor: Subject) -> None:
        """Raises `Unusable` where the donor's background is not filled well or shows another object."""
        check_donor_background(donor)

    @property
    def shows_fill(self) -> bool:
        """The donor's background is filled where its own object was."""
        return True

    def find_shown_fill(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> ShownFill | None:
        """The donor's: the object's own hole is not seen."""
        return ShownFill.of(supplied.donor)

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Sum the levels, clipped at white."""
        alone = subject.on_background(np.zeros_like(subject.picture.image))
        mixed = cv2.add(alone.image, _donor_background(subject, supplied.donor))
        return Picture(np.asarray(mixed, np.uint8), alone.alpha)


@dataclass(frozen=True)
class BackgroundTexture(ComposedEdit):
    """Put the object before a texture, in the mean colour of the background that was there."""

    attribute: ClassVar[Attribute] = "background"
    texture: str = RANDOM  # a name from the pool, or "random" for any drawn texture
    keep_colour: bool = True  # if off, the texture keeps its own colours

    def __post_init__(self) -> None:
        check_texture(self.texture, None)

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Tile a swatch as wide as the shorter side, from a random offset."""
        swatch = choose_texture(self.texture, None, rng)
        height, width = subject.picture.alpha.shape
        side = min(height, width)
        left, top = rng.integers(side, size=2)
        places = np.dstack(np.meshgrid(np.arange(width) + left, np.arange(height) + top)).astype(np.float32)
        texture = tile_texture(swatch, places, side)
        toned = _shift_tone(texture, subject.background) if self.keep_colour else texture
        return subject.compose_on(Plane(toned))


def _shift_tone(texture: Bytes, behind: Bytes) -> Bytes:
    """The texture shifted to the mean colour of the old background, so that only the texture changes."""
    step = np.rint(np.array(cv2.mean(behind)[:3]) - np.array(cv2.mean(texture)[:3]))
    table = np.clip(np.arange(256)[:, None] + step, 0, 255).astype(np.uint8)
    return np.asarray(cv2.LUT(texture, table[None]), np.uint8)


@dataclass(frozen=True)
class Segmented(ComposedEdit):
    """Leave the object alone on black or white; transparent is shown on white, as readers show transparent pictures."""

    attribute: ClassVar[Attribute] = "background"
    ground: Literal["black", "white", "transparent"] = "black"

    @property
    def picture_version(self) -> int:
        """One more where transparent, which was shown on black before."""
        return self.version + (self.ground == "transparent")

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """Fill everything but the object with the colour."""
        level = _LEVELS_OF_GREY[self.ground]
        return subject.compose_on(Flat((level, level, level), subject.picture.alpha.shape))
