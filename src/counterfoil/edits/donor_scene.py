"""The part of a donor's photo that an object is put before: ground under its foot, the donor's own object not shown.

The object keeps its size and place. The window of the donor's photo is moved and enlarged until the object hides the
donor's hole, or the hole lies outside, and until the object's foot comes to where the donor's photo has ground.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.fill_quality import MOST
from counterfoil.edits.geometry import object_box
from counterfoil.edits.photo_border import find_cut_sides
from counterfoil.edits.scene import find_ground_line, find_support, measure_contact_shadow
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable
from counterfoil.object_mask import object_trace
from counterfoil.store.result_cache import Stored

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]
Support: TypeAlias = Literal["ground", "below", "air"]  # what holds an object: ground that is seen, or not, or nothing

ZOOMS = (1.0, 1.12, 1.25, 1.4)  # of the donor's photo, beyond what covers the picture; more would look soft
STEPS = 9  # places of a window along each side
GRAIN = 48  # shorter side in pixels at which holes and objects are compared
ZOOM_COST = 0.03  # share of visible hole that a doubled size is worth
FOOT_COST = 0.05  # and a foot that is a whole height of the photo away from where the donor's own object stood
HIDDEN = 0.004  # share of the picture: so little of the hole may show whatever its fill is like
SEEN = 0.1  # of a small pixel that is hole from which the pixel counts
OTHER_OBJECTS = 0.01  # share of the picture that may be salient beside the object: a sign, not a bottle or a bow
SALIENT = 0.5
AT_BORDER = 0.97  # of the height: an object whose foot is lower stands below the picture
CLEAR_SHADOW = 0.12  # of the light: a contact shadow of this strength shows that something stands on smooth ground
TILE = 16  # pixels of a square of background
ROUGH_TILE = 3.0  # levels by which the pixels of rough ground differ from their mean around
MOSTLY, SELDOM = 0.6, 0.3  # shares of rough squares: of rough ground at least, of open air at most
KIND = 18.0  # levels of CIE Lab by which a square of another kind of ground differs from the usual one
MOST_OTHER: Mapping[Support, float] = {"ground": 0.1, "air": 0.1, "below": 0.35}  # share of such squares in a window
FEWEST = 4  # squares that tell what ground is like
NEAR_OBJECT = (0.02, 0.05)  # of the shorter side: how far from an object something that it hangs on is looked for
TOUCHED = 3.0  # levels of L* a pixel: something beside an object in the air that is no sky
EVEN, EVEN_AIR = 9.0, 15.0  # levels of CIE Lab by which the squares of smooth ground and of open air differ
DARKEST_AIR = 12.0  # L* of CIE Lab: a black studio is no air
BLUE = -6.0  # b* of CIE Lab below which ground is water
RIPPLED = (0.25, 0.3, 0.4)  # of the object's size above and below its foot, and to its sides: where ripples are seen
GREY, CLEAR_RIPPLES, MORE_DOWN = 10.0, 1.8, 1.5  # levels of CIE Lab, levels a pixel, and the ratio of both slopes
BESIDE_FOOT = 0.15  # of the height: how far above and below an object's foot water is looked for
MOST_WATER = 0.3  # share of rough blue squares in a photo from which it shows water
LEAST_LENT = 0.03  # share of its photo that a donor's own object covers: less is a far view, or skin under a tick
MOST_SCALED = 6.0  # times the share of its photo that the donor's own object covers that an object may cover, or less
FLAT, FRAME_STEP = 5.0, 12.0  # levels: deviation along a line of a frame around the photo, and step at its edge
WIDEST_FRAME, ALONG = 0.2, 0.7  # shares of the photo that a frame takes on one side, and of its edge with that step


class SceneWindow(NamedTuple):
    """A rectangle of a donor's photo, as shares of its width and height."""

    left: float
    top: float
    width: float
    height: float

    def crop(self, image: NDArray[np.generic], shape: tuple[int, int]) -> NDArray[np.generic]:
        """What the window shows of a plane or picture, scaled to this shape (height, width)."""
        rows, columns = image.shape[:2]
        left, top = round(self.left * columns), round(self.top * rows)
        right = max(left + 1, round((self.left + self.width) * columns))
        bottom = max(top + 1, round((self.top + self.height) * rows))
        part = image[top:bottom, left:right]
        method = cv2.INTER_AREA if shape[0] < part.shape[0] else cv2.INTER_CUBIC
        return np.asarray(cv2.resize(np.ascontiguousarray(part), shape[::-1], interpolation=method))


class _Tiles(NamedTuple):
    """Squares of a photo's background: one row of values per square that is clear of the object."""

    middle: Floats  # row of the square's middle, as a share of the height
    across: Floats  # its column, as a share of the width
    fine: Floats  # levels by which its pixels differ from their mean around
    colour: Floats  # (squares, 3), CIE Lab


def classify_support(subject: Subject) -> Support:
    """What the object of a photo stands on, as far as its foot and the ground beside it tell."""
    return subject.once(_classify_support)


def _classify_support(subject: Subject) -> Support:
    foot = find_foot(subject)
    if foot >= AT_BORDER or "bottom" in find_cut_sides(subject.hard_object):
        return "below"
    if subject.once(measure_contact_shadow) > 0 or subject.once(find_ground_line) is not None:
        return "ground"
    tiles = subject.once(_measure_tiles)
    return "air" if len(tiles.fine) and float((tiles.fine > ROUGH_TILE).mean()) <= SELDOM else "ground"


def is_in_water(subject: Subject) -> bool:
    """Whether what is beside and below the object's foot is water: what swims stands nowhere else.

    It has the colour of water or, where cut-outs are refined, grey ripples.
    """
    return _has_colour_of_water(subject) or (subject.tools.refine and subject.once(_shows_ripples))


def _shows_ripples(subject: Subject) -> bool:
    """Whether the ground at the foot is grey and its light changes clearly, and more from row to row than across."""
    alpha, box = subject.cutout.alpha, object_box(subject.cutout.alpha)
    size, foot = float(np.sqrt(box.width * box.height)), box.top + box.height
    rows = slice(max(0, round(foot - RIPPLED[0] * size)), round(foot + RIPPLED[1] * size))
    columns = slice(max(0, round(box.left - RIPPLED[2] * size)), round(box.left + box.width + RIPPLED[2] * size))
    image, clear = subject.picture.image[rows, columns], (~object_trace(alpha[rows, columns])).astype(np.uint8)
    ground = np.asarray(cv2.erode(clear, np.ones((5, 5)))) > 0
    if classify_support(subject) != "ground" or np.count_nonzero(ground) < 50:
        return False
    smooth = cv2.GaussianBlur(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32), (0, 0), 1.2)
    across, down = (np.abs(cv2.Sobel(smooth, cv2.CV_32F, *way)[ground]) / 8 for way in ((1, 0), (0, 1)))
    lab = cv2.cvtColor(image.astype(np.float32) / np.float32(255), cv2.COLOR_RGB2LAB)[ground]
    grey = float(np.median(np.hypot(lab[:, 1], lab[:, 2]))) < GREY
    steep = float(np.median(down))
    return grey and steep > CLEAR_RIPPLES and steep + 0.05 > MORE_DOWN * (float(np.median(across)) + 0.05)


def _has_colour_of_water(subject: Subject) -> bool:
    tiles, foot = subject.once(_measure_tiles), find_foot(subject)
    near = (tiles.middle > foot - BESIDE_FOOT) & (tiles.middle < foot + BESIDE_FOOT)
    return bool(near.any()) and float(np.median(tiles.colour[near, 2])) < BLUE


def shows_water(donor: Subject) -> bool:
    """Whether much of a photo is water: blue as the sky, but rough."""
    tiles = donor.once(_measure_tiles)
    water = (tiles.colour[:, 2] < BLUE) & (tiles.fine > ROUGH_TILE)
    return bool(len(water)) and float(water.mean()) > MOST_WATER


def check_dry(subject: Subject) -> None:
    """Raises `Unusable` where an object is in water: on land it would lack what the water hides."""
    if subject.tools.fills.judged and classify_support(subject) == "ground" and is_in_water(subject):
        raise Unusable("the object may be in water, and another photo shows land")


def check_whole(subject: Subject) -> None:
    """Raises `Unusable` where an object would leave behind what belongs to it or what it hangs on.

    Both are looked for where fills are judged: the papers' recipes move what the mask holds.
    """
    subject.check_attachments()
    if not subject.tools.fills.judged or classify_support(subject) != "air":
        return
    if subject.once(_measure_near_steps) > TOUCHED:
        raise Unusable("the object is in the air beside something that it may hang or stand on")


def _measure_near_steps(subject: Subject) -> float:
    """The strongest steps of light close to the object, in L* a pixel: next to none in the open air."""
    hard = subject.hard_object
    away = np.asarray(cv2.distanceTransform((~hard).astype(np.uint8), cv2.DIST_L2, 3)) / min(hard.shape)
    near = (away > NEAR_OBJECT[0]) & (away < NEAR_OBJECT[1])
    if not near.any():
        return 0.0
    smooth = cv2.GaussianBlur(subject.picture.image, (0, 0), 1.5)
    light = cv2.cvtColor(np.asarray(smooth, np.float32) / np.float32(255), cv2.COLOR_RGB2LAB)[..., 0]
    steps = np.hypot(*(cv2.Sobel(light, cv2.CV_32F, *way) / 8 for way in ((1, 0), (0, 1))))
    return float(np.percentile(steps[near], 98))


def find_foot(subject: Subject) -> float:
    """The row below the object, as a share of the height."""
    box = object_box(subject.cutout.alpha)
    return float(box.top + box.height) / float(subject.cutout.alpha.shape[0])


def find_rest(subject: Subject) -> float:
    """The row of the higher of the two points that the object rests on, as a share of the height."""
    alpha = subject.cutout.alpha
    return float(find_support(alpha)[:, 1].min() + 1) / float(alpha.shape[0])


def find_ground(donor: Subject) -> float | None:
    """The row, as a share of the height, from which on an object can stand in a photo; None where nothing tells."""
    return donor.once(_find_ground)


def _find_ground(donor: Subject) -> float | None:
    line = donor.once(find_ground_line)
    if line is not None:
        return float(line) / float(donor.cutout.alpha.shape[0])
    foot = find_foot(donor)
    if _classify_support(donor) != "ground":
        return None
    tiles = donor.once(_measure_tiles)
    below = tiles.middle > foot
    if not below.any():
        return None
    if float(np.median(tiles.colour[below, 2])) < BLUE:
        return None
    rough = float((tiles.fine[below] > ROUGH_TILE).mean()) >= MOSTLY
    even = float(np.linalg.norm(tiles.colour[below].std(axis=0))) <= EVEN
    stands = even and donor.once(measure_contact_shadow) >= CLEAR_SHADOW
    return find_rest(donor) if rough or stands else None


def is_open_air(donor: Subject) -> bool:
    """Whether a photo shows nothing but an even, smooth background: sky, or what is far out of focus."""
    tiles = donor.once(_measure_tiles)
    if classify_support(donor) == "ground" or donor.once(_find_ground) is not None or not len(tiles.fine):
        return False
    smooth = float((tiles.fine > ROUGH_TILE).mean()) <= SELDOM
    lit = float(np.median(tiles.colour[:, 0])) >= DARKEST_AIR
    return smooth and lit and float(np.linalg.norm(tiles.colour.std(axis=0))) <= EVEN_AIR


def _measure_tiles(subject: Subject) -> _Tiles:
    image, clear = subject.picture.image, (~object_trace(subject.cutout.alpha)).astype(np.float32)
    size = (max(1, image.shape[1] // TILE), max(1, image.shape[0] // TILE))
    gray = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), np.float32)
    fine = np.abs(gray - cv2.GaussianBlur(gray, (0, 0), 2))
    lab = cv2.cvtColor(np.asarray(image, np.float32) / np.float32(255), cv2.COLOR_RGB2LAB)
    small, colours, share = (
        np.asarray(cv2.resize(plane, size, interpolation=cv2.INTER_AREA), np.float32) for plane in (fine, lab, clear)
    )
    rows, columns = np.nonzero(share > 0.9)
    middle, across = (
        np.asarray((line + 0.5) / length, np.float32) for line, length in zip((rows, columns), size[::-1], strict=True)
    )
    return _Tiles(middle, across, small[rows, columns], colours[rows, columns])


class OtherGround(NamedTuple):
    """Counts the squares of a photo's background that are of another kind than its ground, in any window."""

    clear: NDArray[np.int32]  # sums over squares of background, as of `cv2.integral`
    other: NDArray[np.int32]  # and over those of another kind
    top: float  # row of the photo, as a share of its height, from which on squares count

    @classmethod
    def of(cls, donor: Subject, support: Support) -> OtherGround:
        """For an object that stands: below the ground line, where there is one. Else in the whole photo."""
        return donor.once(_FindOtherGround(support))

    def measure(self, window: SceneWindow) -> float:
        """The share of the window's background that is of another kind; 0 where it shows none."""
        high, wide = (length - 1 for length in self.clear.shape)
        top, bottom = (round(high * row) for row in (max(window.top, self.top), window.top + window.height))
        left, right = (round(wide * column) for column in (window.left, window.left + window.width))
        if top >= bottom or left >= right:
            return 0.0
        clear, other = (
            float(sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left])
            for sums in (self.clear, self.other)
        )
        return other / clear if clear else 0.0


@dataclass(frozen=True)
class _FindOtherGround:
    """The work of `OtherGround.of`."""

    support: Support

    def __call__(self, donor: Subject) -> OtherGround:
        height, width = donor.picture.alpha.shape
        shape = max(1, height // TILE), max(1, width // TILE)
        clear, other = np.zeros(shape, np.uint8), np.zeros(shape, np.uint8)
        tiles, line = donor.once(_measure_tiles), donor.once(find_ground_line)
        usual = tiles.colour[_find_under(donor, tiles)] if self.support == "ground" else tiles.colour
        if len(usual):
            places = (tiles.middle * shape[0]).astype(np.intp), (tiles.across * shape[1]).astype(np.intp)
            clear[places] = 1
            other[places] = np.linalg.norm(tiles.colour - np.median(usual, axis=0), axis=1) > KIND
        top = line / height if self.support == "ground" and line is not None else 0.0
        sums = [np.asarray(cv2.integral(each), np.int32) for each in (clear, other)]
        return OtherGround(sums[0], sums[1], top)


def _find_under(donor: Subject, tiles: _Tiles) -> Flags:
    """Which squares are the ground that a photo's own object stands on, or all ground where too little shows below."""
    ground, box = tiles.middle > (find_ground(donor) or 0.0), object_box(donor.cutout.alpha)
    width = float(donor.cutout.alpha.shape[1])
    under = ground & (np.abs(tiles.across - box.centre[0] / width) <= box.width / width)
    return np.asarray(under if np.count_nonzero(under) >= FEWEST else ground)


class SceneFit(NamedTuple):
    """A window of a donor's photo for one subject."""

    window: SceneWindow
    visible: float  # share of the picture in which the donor's hole shows beside the object

    @classmethod
    def of(cls, subject: Subject, donor: Subject, window: SceneWindow) -> SceneFit:
        """A window that was chosen before."""
        hidden = _reduce(subject.hard_object, _small_shape(subject))
        return cls(window, float((_show_hole(window, donor, hidden) > SEEN).mean()))


def check_scene(subject: Subject, donor: Subject, exposed: bool = False) -> None:
    """Raises `Unusable` where no window of the donor's photo suits, or what it shows is not good.

    `exposed`: all of the window will be seen, also what the object hides now.
    """
    if donor.tools.fills.judged:
        _check_kind(subject, donor)
    fit = fit_scene(subject, donor)
    if fit.visible > HIDDEN or exposed:
        _ = donor.bare_background
    share = subject.once_with(donor, _measure_other_objects)
    if share > OTHER_OBJECTS:
        raise Unusable(f"the donor's background shows another object, on {share:.1%} of the picture")


def _check_kind(subject: Subject, donor: Subject) -> None:
    """Raises `Unusable` where a donor's photo is taken from too near or far, or shows water around what stands."""
    support = classify_support(subject)
    if support == "air":
        return
    if support == "below" and shows_water(donor):
        raise Unusable("the donor's photo shows water")
    own, other = (float(each.hard_object.mean()) for each in (subject, donor))
    if other < LEAST_LENT or max(own / other, other / own) > MOST_SCALED:
        raise Unusable(f"the object covers {own:.0%} of its photo and the donor's {other:.0%}: the scales differ")


def _measure_other_objects(subject: Subject, donor: Subject) -> float:
    """The share of the picture, but for its object, that a network finds salient; 0 where fills are not judged."""
    find_salience = donor.tools.fills.find_salience
    if find_salience is None:
        return 0.0
    scene, hard = show_scene(subject, donor, fit_scene(subject, donor)), subject.hard_object

    def measure() -> float:
        salience = find_salience(scene)
        return float(((salience > SALIENT) * (1 - _reduce(hard, salience.shape))).mean())

    return donor.once_stored(("other objects beside", scene, hard), measure)


def show_scene(subject: Subject, donor: Subject, fit: SceneFit) -> Bytes:
    """What the window shows of the donor's photo without its object, at the size of the subject's picture."""
    try:
        shown = fit.window.crop(_take_background(donor, fit.window), subject.picture.alpha.shape)
    except Unusable as error:
        raise Unusable(f"the donor has no background to lend: {error}") from error
    return np.asarray(shown, np.uint8)


def _take_background(donor: Subject, window: SceneWindow) -> Bytes:
    """The donor's photo filled as well as it can be; unfilled where the window shows nothing of the hole."""
    if not window.crop(donor.hole.astype(np.float32), donor.hole.shape).any():
        return donor.picture.image
    fill = donor.fill
    too_large = fill.quality is not None and fill.quality.hole_share > MOST.hole_share  # not filled at all
    return donor.background if too_large else fill.image


def fit_scene(subject: Subject, donor: Subject) -> SceneFit:
    """The window of the donor's photo that suits the subject best; raises `Unusable` where none does."""
    return subject.once_with(donor, _fit_scene)


def _fit_scene(subject: Subject, donor: Subject) -> SceneFit:
    about = [
        subject.picture.image,
        *(plane for one in (subject, donor) for plane in (one.cutout.alpha, one.hard_object)),
    ]
    return donor.once_stored(
        ("scene of one kind of ground", *about, donor.hole),
        lambda: _choose_window(subject, donor),
        lambda fit: Stored([list(fit.window), fit.visible]),
        lambda stored: SceneFit(SceneWindow(*stored.facts[0]), stored.facts[1]),
    )


def _choose_window(subject: Subject, donor: Subject) -> SceneFit:
    support, ground = classify_support(subject), find_ground(donor)
    if support == "ground" and ground is None:
        raise Unusable("the donor's photo shows no ground that the object could stand on")
    if support == "air" and not donor.once(is_open_air):
        raise Unusable("the object is in the air, the donor's photo shows more than that")
    others = OtherGround.of(donor, support)
    hidden = _reduce(subject.hard_object, _small_shape(subject))
    stood, feet = min(1.0, find_foot(donor)), (find_foot(subject), find_rest(subject))
    best: SceneFit | None = None
    least = np.inf
    for window, zoom in _list_windows(donor, subject.picture.alpha.shape):
        foot, rests = (window.top + window.height * row for row in feet)
        if support == "ground" and ground is not None and rests < ground:
            continue
        if others.measure(window) > MOST_OTHER[support]:
            continue
        seen = _show_hole(window, donor, hidden)
        away = abs(foot - stood) if support == "ground" else 0.0
        cost = float(seen.mean()) + ZOOM_COST * float(np.log2(zoom)) + FOOT_COST * away
        if cost < least:
            least, best = cost, SceneFit(window, float((seen > SEEN).mean()))
    if best is None:
        raise Unusable("the object's foot would not come to the donor's ground, or other things are seen there")
    return best


def _small_shape(subject: Subject) -> tuple[int, int]:
    """The shape at which holes and objects are compared."""
    height, width = subject.picture.alpha.shape
    scale = GRAIN / min(height, width)
    return max(1, round(height * scale)), max(1, round(width * scale))


def _show_hole(window: SceneWindow, donor: Subject, hidden: Floats) -> Floats:
    """How much of each small pixel is the donor's hole, seen in a window beside an object that hides part of it."""
    shown = np.clip(window.crop(donor.once(_reduce_hole), hidden.shape), 0, 1)
    return np.asarray(shown * (1 - hidden), np.float32)


def _reduce_hole(donor: Subject) -> Floats:
    height, width = donor.hole.shape
    scale = 2 * GRAIN / min(height, width)
    return _reduce(donor.hole, (max(1, round(height * scale)), max(1, round(width * scale))))


def _list_windows(donor: Subject, shape: tuple[int, ...]) -> Iterator[tuple[SceneWindow, float]]:
    """Windows of a photo in the aspect of a picture, with how much they enlarge beyond what covers it."""
    height, width = donor.picture.alpha.shape
    inside = donor.once(find_frame)
    cover = max(shape[0] / (inside.height * height), shape[1] / (inside.width * width))
    for zoom in ZOOMS:
        wide = min(inside.width, shape[1] / (cover * zoom * width))
        high = min(inside.height, shape[0] / (cover * zoom * height))
        for top in _spread(inside.height - high):
            for left in _spread(inside.width - wide):
                corner = (inside.left + left, inside.top + top)
                yield SceneWindow(*(round(value, 4) for value in (*corner, wide, high))), zoom


def find_frame(donor: Subject) -> SceneWindow:
    """The photo without a frame of one colour around it."""
    image = donor.picture.image.astype(np.float32)
    top, bottom = (_count_framed(lines) / len(image) for lines in (image, image[::-1]))
    across = image.transpose(1, 0, 2)
    left, right = (_count_framed(lines) / len(across) for lines in (across, across[::-1]))
    return SceneWindow(left, top, 1 - left - right, 1 - top - bottom)


def _count_framed(lines: Floats) -> int:
    """How many lines from the first on belong to a frame: all of one colour, and then a step along the whole line."""
    lively = np.flatnonzero(lines.std(axis=1).max(axis=1) > FLAT)
    flat = int(lively[0]) if len(lively) else 0
    if not 0 < flat <= WIDEST_FRAME * len(lines):
        return 0
    inside = min(flat + 1, len(lines) - 1)  # the line beside a frame is mixed with it
    step = np.abs(lines[inside] - lines[0].mean(axis=0)).max(axis=1) > FRAME_STEP
    return inside if float(step.mean()) > ALONG else 0


def _spread(free: float) -> list[float]:
    """Starts from 0 to what is free, the middle among them; one where nothing is."""
    return [0.0] if free < 1e-3 else [free * step / (STEPS - 1) for step in range(STEPS)]


def _reduce(flags: Flags, shape: tuple[int, ...]) -> Floats:
    return np.asarray(cv2.resize(flags.astype(np.float32), shape[::-1], interpolation=cv2.INTER_AREA), np.float32)
