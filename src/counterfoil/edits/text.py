"""A word on the object or beside it: another class's name, the object's own, or a word that names nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from counterfoil.edits.cutout import Cutout, place
from counterfoil.edits.edit_protocol import Edit, Needs, RecipeEdit, Resolution, Supplied
from counterfoil.edits.geometry import object_box
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable, UserError
from counterfoil.labels.label_space import imagenet1k
from counterfoil.object_mask import hard_object, object_trace
from counterfoil.types import Attribute, EditLevel, Picture

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

NEUTRAL = ("today", "number", "welcome", "seven", "always", "notice", "please", "second", "north", "spring")
DRAWN = 96  # pixels of the letters' height as drawn, before the tag is reduced
MARGIN = 0.35  # around the words, in heights of a letter
PAPER, INK = (247, 245, 238), (24, 24, 28)  # RGB
FEWEST_PIXELS = 10.0  # letters of less height cannot be read
LEAST_HEIGHT = 1 / 26  # of the picture's shorter side, so that they can be read at a classifier's 224 pixels too
ON_OBJECT = (0.9, 0.6)  # share of a tag that lies on the object: where it need not shrink further, and the least
MOST_HIDDEN = 1 / 3  # of the object's area, that a tag on it takes unless more is asked for: else it is an occluder
WIDEST = 0.9  # of the picture's width or height that a tag may take
LEAN = 5.0  # degrees by which the tag may be turned either way
TURNED = 1.12  # times its sides that a tag turned so far reaches
LOWER = 0.15  # of the object's height: how far below its middle a tag on it is tried first
SHADE = 0.35  # of the light, under the tag's lower edge
_WORDS = {"other": "another class's word", "neutral": "a neutral word", "right": "the right word"}
_PLACES = {"on": "on the object", "beside": "beside the object"}


@dataclass(frozen=True)
class Text(Edit):
    """Write a word on a paper tag on the object or beside it: another class's name, a neutral word or the right one."""

    attribute: ClassVar[Attribute] = "text"
    version: ClassVar[int] = 3  # 3: never hides most of a small object; 2: letters are a 26th of the shorter side
    word: Literal["other", "neutral", "right", "given"] = "other"
    place: Literal["on", "beside"] = "on"
    share: float = 0.1  # area of the tag as a share of the object's
    text: str = ""  # the word itself; chosen by `word` unless that is "given"

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise UserError(
                f"share: expected a share of the object's area, more than 0 and at most 1, got {self.share:g}"
            )
        if self.word == "given" and not self.text.strip():
            raise UserError("text: expected the words to write where `word` is 'given', got none")

    @property
    def level(self) -> str:
        """Which word, and where: "other on"; given words as they are."""
        return f"{self.text if self.word == 'given' else self.word} {self.place}"

    @property
    def needs(self) -> Needs:
        """A photo of the class that is named, where that is another one."""
        return Needs(donor="other" if self.word == "other" else None)

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence."""
        word, _, place = level.rpartition(" ")
        if place not in _PLACES:
            return f"a word ({level})" if level else "a word in the picture"
        return f"{_WORDS.get(word, f'the text “{word}”')} {_PLACES[place]}"

    @classmethod
    def reference(cls, level: str) -> EditLevel | None:
        """A neutral word at the same place: the difference is what the word says."""
        word, _, place = level.rpartition(" ")
        return EditLevel("text", f"neutral {place}") if word in ("other", "right") and place in _PLACES else None

    @property
    def required_edits(self) -> tuple[RecipeEdit, ...]:
        """A neutral word at the same place."""
        if self.word not in ("other", "right"):
            return ()
        return (RecipeEdit("text", {"word": "neutral", "place": self.place}),)

    def resolve(self, subject: Subject, supplied: Supplied) -> Resolution:
        """Choose the word, so that the settings name it."""
        if self.text:
            return Resolution(self)
        return Resolution(replace(self, text=self._choose_word(supplied)))

    def _choose_word(self, supplied: Supplied) -> str:
        if self.word == "neutral":
            return NEUTRAL[np.random.default_rng(supplied.seed).integers(len(NEUTRAL))]
        labels = (supplied.label,) if self.word == "right" else tuple(supplied.donor_labels[:1])
        if not any(labels):
            raise Unusable("the photo has no label that could be written: give the words as `text`")
        return name_label(labels[0])

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Draw the tag, reduce it to its share of the object's area and lay it on the picture."""
        words = self.text or self._choose_word(supplied)
        alpha = subject.cutout.alpha
        height, width = alpha.shape
        tag = draw_tag(words)
        scale = float(self.share * np.count_nonzero(hard_object(alpha)) / tag.alpha.size) ** 0.5
        scale = max(scale, _readable_scale(alpha))
        scale = min(scale, WIDEST * width / tag.alpha.shape[1], WIDEST * height / tag.alpha.shape[0])
        angle = float(rng.uniform(-LEAN, LEAN))
        if self.place == "on":
            centre, scale = _find_place_on(alpha, tag, scale)
            _check_hidden(alpha, scale**2 * tag.alpha.size, max(MOST_HIDDEN, self.share))
        else:
            subject.check_background()
            centre, scale = _find_free_place(alpha, tag, scale, rng)
        return Picture(_attach(subject.picture.image, tag, (centre, scale, angle)), alpha.copy())


def name_label(label: str) -> str:
    """A class as one would write it: ImageNet's first name for a WordNet id, else the label itself."""
    known = imagenet1k()
    name = known.name_of(label) if label in known else label
    return name.partition(",")[0].replace("_", " ").strip().lower()


class _Tag(NamedTuple):
    image: Bytes  # (height, width, 3)
    alpha: Bytes  # (height, width), 255: a tag covers what is under it


def draw_tag(words: str) -> _Tag:
    """The words in dark letters on a paper tag, long ones in two lines."""
    try:
        words.encode("latin-1")
    except UnicodeEncodeError:
        raise Unusable(f"the font has no letters for {words!r}, so that it cannot be written on the object") from None
    font = ImageFont.load_default(DRAWN)
    lines = _break_lines(words)
    boxes = [font.getbbox(line) for line in lines]
    pad, step = round(MARGIN * DRAWN), round(1.15 * DRAWN)
    size = (round(max(box[2] for box in boxes)) + 2 * pad, step * len(lines) + 2 * pad)
    sheet = Image.new("RGB", size, PAPER)
    draw = ImageDraw.Draw(sheet)
    for number, (line, box) in enumerate(zip(lines, boxes, strict=True)):
        draw.text(((size[0] - box[2]) / 2, pad + number * step - 0.1 * DRAWN), line, font=font, fill=INK)
    image = np.asarray(sheet, np.uint8)
    return _Tag(image, np.full(image.shape[:2], 255, np.uint8))


def _break_lines(words: str) -> list[str]:
    """One line, or two of about the same length where a long text has spaces."""
    gaps = [place for place, letter in enumerate(words) if letter == " "]
    if len(words) <= 11 or not gaps:
        return [words]
    middle = min(gaps, key=lambda place: abs(place - len(words) / 2))
    return [words[:middle], words[middle + 1 :]]


def _readable_scale(alpha: Bytes) -> float:
    """The least scale of a tag whose letters can be read."""
    return float(max(FEWEST_PIXELS, LEAST_HEIGHT * min(alpha.shape)) / DRAWN)


def _find_place_on(alpha: Bytes, tag: _Tag, scale: float) -> tuple[tuple[float, float], float]:
    """The centre where most of the tag lies on the object, nearest to its middle, and the scale at which it does."""
    opaque = hard_object(alpha).astype(np.uint8)
    moments = cv2.moments(opaque, binaryImage=True)
    # A little below the middle: faces, dials and handles are mostly above it.
    middle = (moments["m10"] / moments["m00"], moments["m01"] / moments["m00"] + LOWER * object_box(alpha).height)
    down, across = np.mgrid[: alpha.shape[0], : alpha.shape[1]]
    far = np.hypot(across - middle[0], down - middle[1]) / max(alpha.shape)
    least = _readable_scale(alpha)
    while True:
        inside = _cover_shares(opaque, tag, scale)
        row, column = np.unravel_index(np.argmax(inside - np.float32(0.5) * far), alpha.shape)
        if inside[row, column] >= ON_OBJECT[0] or scale <= least:
            break
        scale = max(least, 0.9 * scale)
    if inside[row, column] < ON_OBJECT[1]:
        raise Unusable("the object is too narrow for a text that can be read")
    return (float(column), float(row)), scale


def _check_hidden(alpha: Bytes, area: float, most: float) -> None:
    """Raises `Unusable` where a tag of this area would hide more than this share of the object."""
    hidden = area / np.count_nonzero(hard_object(alpha))
    if hidden > most:
        raise Unusable(
            f"a text that can be read would take {hidden:.0%} of the object's area, at most {most:.0%} may be hidden"
        )


def _cover_shares(plane: Bytes, tag: _Tag, scale: float) -> Floats:
    """For each centre of the tag the share of it that lies on the plane's ones; beyond the picture lie none."""
    size = (max(1, round(tag.alpha.shape[1] * scale)), max(1, round(tag.alpha.shape[0] * scale)))
    return np.asarray(cv2.blur(plane.astype(np.float32), size, borderType=cv2.BORDER_CONSTANT), np.float32)


def _find_free_place(
    alpha: Bytes, tag: _Tag, scale: float, rng: np.random.Generator
) -> tuple[tuple[float, float], float]:
    """A centre where the tag covers background alone, drawn from the half nearer to the object, and its scale."""
    free, least = (~object_trace(alpha)).astype(np.uint8), _readable_scale(alpha)
    while True:
        fits = _cover_shares(free, tag, TURNED * scale) > 0.9999
        if fits.any():
            distance = np.asarray(cv2.distanceTransform(free, cv2.DIST_L2, 3))
            near = np.flatnonzero(fits & (distance <= np.median(distance[fits])))
            row, column = divmod(int(near[rng.integers(len(near))]), alpha.shape[1])
            return (float(column), float(row)), scale
        if scale <= least:
            raise Unusable("no room beside the object for a text that can be read")
        scale = max(least, 0.9 * scale)


def _attach(image: Bytes, tag: _Tag, pose: tuple[tuple[float, float], float, float]) -> Bytes:
    """The tag over the picture at a centre, scale and angle, with a thin shadow below it."""
    centre, scale, angle = pose
    height, width = tag.alpha.shape
    turn = np.asarray(cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), angle, scale), np.float64)
    turn[:, 2] += np.array(centre) - ((width - 1) / 2, (height - 1) / 2)
    laid = place(Cutout(tag.image, tag.alpha, 1.0), turn, image)
    depth = max(1.0, 0.06 * scale * DRAWN)
    shade = cv2.GaussianBlur(laid.alpha, (0, 0), depth)
    down = np.array([[1, 0, 0.5 * depth], [0, 1, 1.2 * depth]], np.float64)
    shade = np.asarray(cv2.warpAffine(shade, down, image.shape[1::-1]), np.float32) / np.float32(255)
    light = 1 - np.float32(SHADE) * shade * (1 - laid.alpha / np.float32(255))
    return np.asarray(np.rint(laid.image * light[..., None]), np.uint8)
