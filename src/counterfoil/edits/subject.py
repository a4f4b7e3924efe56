"""A photo ready to edit: its alpha, cutout and filled background, computed once and on demand."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import Any, TypeVar
from weakref import ref

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.attachments import Attachments, find_attachments, measure_missing
from counterfoil.edits.background_remains import trim_remains
from counterfoil.edits.composition import Composition, LayerPart, ObjectLayer, Pasted, PictureLayer, Plane, Repainted
from counterfoil.edits.cutout import Cutout, copy_read_only, cut_out, paste, repaint
from counterfoil.edits.fill import MARGIN, check_background, close_islands, fill_hole, find_hole, grow
from counterfoil.edits.fill_choice import Fill, FillName, Fills, FillTask
from counterfoil.edits.fill_quality import FillQuality
from counterfoil.edits.matting import LARGEST, is_graded, soft_alpha
from counterfoil.edits.object_traces import find_dark_reflection, find_traces
from counterfoil.edits.patch_match import Moves, OpenPicture, match_patches
from counterfoil.edits.photo_border import Side, find_cut_sides
from counterfoil.errors import Unusable
from counterfoil.object_mask import UNKNOWN, Flags, MaskOrigin, ObjectMask, as_mask, hard_object
from counterfoil.store.result_cache import NO_CACHE, ResultCache, Stored, name_result
from counterfoil.types import Picture

Bytes = NDArray[np.uint8]
Result = TypeVar("Result")
MASK_CHANGE = 0.02  # by which a mask is grown or shrunk to see what its edge matters


@dataclass(frozen=True, kw_only=True)
class Tools:
    """How holes are filled, and what is refused."""

    fills: Fills = field(default_factory=Fills)
    second_of: Subject | None = None  # with the first fill, where a second one is made as a check of it
    same_as: Subject | None = None  # with the unchanged mask, where this mask was grown or shrunk
    cache: ResultCache = field(default=NO_CACHE, compare=False)  # of fills and measures, on disk
    allow_cut: bool = False  # move objects that the photo's border cuts, as the papers do: the cut becomes visible
    refine: bool = False  # take what is background out of cut-outs, and refuse those that cannot be shown elsewhere


PLAIN_TOOLS = Tools()


class Subject:
    """A photo at its own size and the picture at working size that edits change.

    Alpha, cutout and background are computed on first use and kept with the subject. Several threads may use one
    subject.

    Example:
        >>> import numpy as np
        >>> mask = np.zeros((60, 80), np.uint8)
        >>> mask[20:40, 30:50] = 255
        >>> subject = Subject(Picture(np.full((60, 80, 3), 200, np.uint8), mask))
        >>> subject.cutout is subject.cutout
        True
    """

    def __init__(
        self,
        photo: Picture,
        picture: Picture | None = None,
        *,
        origin: MaskOrigin | None = None,
        doubt: str = "",
        tools: Tools = PLAIN_TOOLS,
    ) -> None:
        self.photo = photo  # at its own size
        self.picture = photo if picture is None else picture  # at working size
        self.origin = origin  # of the mask; None where its values tell
        self.doubt = doubt  # why the mask is not to be used; "" where it is
        self.tools = tools
        self._lock = RLock()
        self._results: dict[Hashable, Any] = {}

    @property
    def mask(self) -> ObjectMask:
        """The mask as given or found, at working size; raises `Unusable` where it is doubtful."""
        if self.doubt:
            raise Unusable(f"the mask is doubtful: {self.doubt}")
        values = self.picture.alpha
        return as_mask(values) if self.origin is None else ObjectMask(values, self.origin)

    @property
    def hard_object(self) -> Flags:
        """The pixels of the mask that are the object, (height, width), without soft edges."""
        return hard_object(self.mask.values)

    @property
    def alpha(self) -> Bytes:
        """The object's alpha with soft edges, (height, width), read-only."""
        return self.once(_estimate_alpha)

    @property
    def cutout(self) -> Cutout:
        """The object alone; raises `Unusable` where it is too small."""
        return self.once(_cut_out)

    def check_object(self) -> None:
        """Raises `Unusable` where the object is too small."""
        self.once(_cut_out)

    @property
    def background(self) -> Bytes:
        """The picture with its object removed and filled, read-only; raises `Unusable` without enough background.

        For edits that paste the object back over the hole; one that shows the hole takes `visible_background`.
        """
        return self.once(_fill_background)

    @property
    def hole(self) -> Flags:
        """What the fill of a removed or moved object replaces."""
        return self.once(_find_hole)

    @property
    def fill(self) -> Fill:
        """The chosen fill of the hole with its faults; raises `Unusable` without enough background."""
        return self.once(_choose_fill)

    @property
    def attachments(self) -> Attachments:
        """What touches the object, stands out with it and is not in its mask; nothing where fills are not judged."""
        return self.once(_find_attachments)

    def check_attachments(self) -> None:
        """Raises `Unusable` where something that the object is attached to would stay behind."""
        # A changed mask, and a picture that an edit made, are those of a photo that was checked.
        if self.tools.same_as is None and not _knows_background(self) and self.attachments.reason:
            raise Unusable(self.attachments.reason)

    @property
    def visible_background(self) -> Bytes:
        """The filled background for pictures that show it, read-only; raises `Unusable` where no fill is good."""
        self.check_attachments()
        fill = self.fill
        if fill.reason:
            raise Unusable(fill.reason)
        return fill.image

    @property
    def bare_background(self) -> Bytes:
        """The filled background for pictures in which nothing stands before it; raises `Unusable` more often."""
        self.check_attachments()  # before the hole is filled, which costs more
        quality = self.fill.quality
        if quality is not None and quality.bare_reason:
            raise Unusable(quality.bare_reason)
        return self.visible_background

    def fill_elsewhere(self, hole: Flags, avoid: Flags) -> Fill:
        """The fill of another hole of the picture, chosen as for the object's; nothing is copied from `avoid`."""
        return self.once(_OtherHole(_OpenElsewhere(hole.tobytes(), avoid.tobytes())))

    @property
    def cut_sides(self) -> tuple[Side, ...]:
        """The borders of the photo that cut the object; empty where cut objects are moved like others."""
        return () if self.tools.allow_cut else self.once(_find_cut_sides)

    @property
    def at_full_size(self) -> Subject:
        """The same photo at full size, for an edit whose `needs` ask for the photo."""
        return self if self.photo is self.picture else self.once(_without_reduction)

    @property
    def with_second_fill(self) -> Subject:
        """The same photo, its background filled in another way."""
        return self.once(_fill_again)

    @property
    def with_grown_mask(self) -> Subject:
        """The same photo, its mask grown by 2 % of the object's size."""
        return self.once(_grow_mask)

    @property
    def with_shrunk_mask(self) -> Subject:
        """The same photo, its mask shrunk by 2 % of the object's size; raises `Unusable` where nothing is left."""
        return self.once(_shrink_mask)

    def derive(
        self,
        picture: Picture,
        behind: Bytes | None = None,
        cut: Cutout | None = None,
        known: Mapping[Hashable, Any] | None = None,
    ) -> Subject:
        """A subject of another picture, such as one that an edit made.

        Args:
            picture: The other picture.
            behind: What its object hides, where that is known.
            cut: Its object, where that need not be cut out of it.
            known: Results that need not be computed, by the function that `once` would call.
        """
        derived = Subject(picture, tools=self.tools)
        derived._results.update(known or {})
        if cut is not None:
            derived._results |= {_soften_mask: cut.alpha, _estimate_alpha: cut.alpha, _cut_out: cut}
        if behind is not None:
            derived._results[_choose_fill] = Fill(copy_read_only(behind), "known")
        return derived

    def once(self, work: Callable[[Subject], Result]) -> Result:
        """The cached result of a pure function of this subject; raises `Unusable` again where the first call did."""
        with self._lock:
            if work not in self._results:
                self._results[work] = _try(lambda: work(self))
            result = self._results[work]
        return _unpack(result)  # type: ignore[no-any-return]

    def once_with(self, other: Subject, work: Callable[[Subject, Subject], Result]) -> Result:
        """The cached result of a pure function of this subject and another, such as its donor; `Unusable` as `once`.

        The lock is not held meanwhile: two subjects may be each other's donors, in two threads.
        """
        key = work, ref(other)  # not the subject itself, which may be let go of before this one
        if key not in self._results:
            result = _try(lambda: work(self, other))
            with self._lock:
                self._results[key] = result
        return _unpack(self._results[key])  # type: ignore[no-any-return]

    def once_stored(
        self, about: tuple[object, ...], make: Callable[[], Result], store: Callable[[Result], Stored] = Stored,
        restore: Callable[[Stored], Result] = lambda stored: stored.facts,
    ) -> Result:  # fmt: skip
        """The result of a slow pure function of this picture and of what it is `about`, from the cache on disk.

        By default the result is a number or text.
        """
        cache = self.tools.cache
        if cache.folder is None:
            return make()
        key = name_result(self.once(_hash_picture), self.tools.fills.record, *about)
        return cache.once(key, make, store, restore)

    def check_background(self) -> None:
        """Raises `Unusable` where the picture shows hardly anything but its object."""
        check_background(self.cutout.background_share)

    def on_background(self, background: Bytes) -> Picture:
        """The object at its place before another background."""
        self.check_background()
        return Picture(paste(self.cutout, background), self.cutout.alpha.copy())

    def repaint(self, colours: Bytes) -> Picture:
        """The object at its place in other colours, (height, width, 3) of its window; the background stays."""
        return Picture(repaint(self.picture.image, self.cutout, colours), self.cutout.alpha.copy())

    @property
    def object_layer(self) -> ObjectLayer:
        """The object alone, for a picture as data; raises `Unusable` where it is too small."""
        return ObjectLayer.of(self.cutout)

    @property
    def object_colours(self) -> PictureLayer:
        """The object's own colours in its window."""
        cut = self.object_layer
        return LayerPart(cut.colours, cut.window)

    def compose_on(self, background: PictureLayer) -> Composition:
        """The object at its place before another background, as data."""
        self.check_background()
        return Composition(Pasted(self.object_layer, background), self.cutout.alpha)

    def compose_repainted(self, colours: PictureLayer) -> Composition:
        """The object at its place in other colours, those of its window; the background stays."""
        cut = self.object_layer
        return Composition(Repainted(Plane(self.picture.image), cut, colours), cut.alpha)

    @property
    def nbytes(self) -> int:
        """Bytes of all planes held now, shared planes counted once."""
        return sum({id(plane): plane.nbytes for plane in self._planes()}.values())

    def _planes(self) -> Iterator[NDArray[Any]]:
        yield from (*self.photo, *self.picture)
        for result in list(self._results.values()):
            yield from _planes_of(result)


def _try(work: Callable[[], Any]) -> Any:
    """What the work returns, or the `Unusable` that it raises."""
    try:
        return work()
    except Unusable as error:
        return Unusable(*error.args)  # without its traceback, whose frames hold pictures


def _unpack(result: Any) -> Any:
    if isinstance(result, Unusable):
        raise Unusable(*result.args)  # a new one: raising one object in two threads would mix their tracebacks
    return result


def _planes_of(result: object) -> Iterator[NDArray[Any]]:
    if isinstance(result, np.ndarray):
        yield result
    elif isinstance(result, Subject):
        yield from result._planes()
    elif isinstance(result, FillTask):
        yield from result.planes()
    elif isinstance(result, tuple):
        for part in result:
            yield from _planes_of(part)


def _estimate_alpha(subject: Subject) -> Bytes:
    alpha, mask = subject.once(_soften_mask), subject.mask
    if not subject.tools.refine or is_graded(mask):
        return alpha
    unknown = mask.values == UNKNOWN if mask.origin == "trimap" else None
    return copy_read_only(trim_remains(subject.picture.image, alpha, unknown))


def _soften_mask(subject: Subject) -> Bytes:
    """All of the mask with soft edges, from which holes are made: what is left in the alpha is less."""
    return copy_read_only(soft_alpha(subject.picture.image, subject.mask))


def _cut_out(subject: Subject) -> Cutout:
    return cut_out(subject.picture.image, subject.alpha)


def _hash_picture(subject: Subject) -> str:
    return name_result(subject.picture.image)


def _fill_background(subject: Subject) -> Bytes:
    image, hole = subject.picture.image, find_hole(subject.once(_soften_mask))
    check_background(1 - np.count_nonzero(hole) / hole.size)
    return _once_filled(
        subject, ("quick", hole), lambda: Fill(fill_hole(image, hole, subject.once(_match_patches)), "exemplar")
    ).image


def _match_patches(subject: Subject) -> tuple[Moves, ...] | None:
    """The patches of the object's hole; None where a picture is reduced to be filled."""
    hole = find_hole(subject.once(_soften_mask))
    return None if hole.size > LARGEST else tuple(match_patches(OpenPicture(subject.picture.image, hole)))


def _find_hole(subject: Subject) -> Flags:
    """The object with its margin, shadow and reflection, and small things attached to it."""
    hole, attached = subject.once(_find_own_hole), subject.attachments
    if attached.reason or not attached.region.any():
        return hole
    return close_islands(np.asarray(hole | grow(attached.region, max(1, round(MARGIN * min(hole.shape))))))


def _find_own_hole(subject: Subject) -> Flags:
    """The object with its margin, and the shadow and reflection that would stay behind."""
    image, alpha = subject.picture.image, subject.once(_soften_mask)
    hole, traces = find_hole(alpha), find_traces(image, alpha)
    if subject.tools.fills.judged:  # the papers' recipes keep the holes that they had
        traces |= find_dark_reflection(image, alpha)
    if traces.any():
        hole = np.asarray(hole | grow(traces, max(1, round(MARGIN * min(hole.shape) / 2))))
    return close_islands(hole)


def _find_attachments(subject: Subject) -> Attachments:
    hole, find_salience = subject.once(_find_own_hole), subject.tools.fills.find_salience
    if find_salience is None:
        return Attachments(np.zeros_like(hole), 0.0)
    hard, alpha = subject.hard_object, subject.once(_soften_mask)  # all of the mask: what was taken out is not missing

    def find() -> Attachments:
        salience = find_salience(subject.picture.image)
        missing, gaps = measure_missing(salience, alpha, hole)
        return find_attachments(salience, hard, hole)._replace(missing=missing, gaps=gaps)

    return subject.once_stored(
        ("attachments", hard, alpha, hole),
        find,
        lambda found: Stored(list(found[1:]), (found.region,)),
        lambda stored: Attachments(stored.planes[0], *stored.facts),
    )


def _knows_background(subject: Subject) -> bool:
    """Whether what the object hides was known and not filled."""
    fill = subject._results.get(_choose_fill)
    return isinstance(fill, Fill) and fill.name == "known"


def _choose_fill(subject: Subject) -> Fill:
    tools, hole = subject.tools, subject.hole
    check_background(1 - np.count_nonzero(hole) / hole.size)
    if tools.second_of is not None:
        first, name = tools.second_of, _name_fill(tools.second_of)
        return _once_filled(
            subject,
            ("second", name, hole),
            lambda: tools.fills.second(_share_tasks(subject, first).once(_open_hole), name),
        )
    if tools.same_as is not None:
        name = _name_fill(tools.same_as)
        return _once_filled(
            subject, ("again", name, hole), lambda: tools.fills.again(FillTask(subject.picture.image, hole), name)
        )
    return _once_filled(subject, ("first", hole), lambda: tools.fills.first(subject.once(_open_hole)))


def _once_filled(subject: Subject, about: tuple[object, ...], make: Callable[[], Fill]) -> Fill:
    """A fill, made or from the cache, which holds the pixels of the hole: the last that it is `about`."""
    image, hole = subject.picture.image, np.asarray(about[-1], np.bool_)

    def store(fill: Fill) -> Stored:
        quality = None if fill.quality is None else [float(value) for value in fill.quality]
        return Stored([fill.name, quality], () if fill.image is image else (fill.image[hole],))

    def restore(stored: Stored) -> Fill:
        name, values = stored.facts
        filled = image.copy()
        if stored.planes:
            filled[hole] = stored.planes[0]
        return Fill(filled, name, None if values is None else FillQuality(*values))

    fill = subject.once_stored(("fill", *about), make, store, restore)
    return fill._replace(image=copy_read_only(fill.image))


def _share_tasks(subject: Subject, first: Subject) -> Subject:
    """The subject that holds what was filled before: the first, but not for another picture that an edit made."""
    return first if first.picture is subject.picture else subject


def _open_hole(subject: Subject) -> FillTask:
    matched = subject._results.get(_match_patches)  # for a fill that is hidden: it has no shadow
    same = matched is not None and np.array_equal(subject.hole, find_hole(subject.once(_soften_mask)))
    return FillTask(subject.picture.image, subject.hole, levels=matched if same else None)


@dataclass(frozen=True)
class _OpenElsewhere:
    """Another hole of the picture than the object's; a subject keeps it by its pixels."""

    hole: bytes
    avoid: bytes

    def __call__(self, subject: Subject) -> FillTask:
        return FillTask(subject.picture.image, *self.planes(subject))

    def planes(self, subject: Subject) -> tuple[Flags, Flags]:
        """The hole, and what nothing may be copied from."""
        shape = subject.picture.alpha.shape
        hole, avoid = (np.frombuffer(plane, np.bool_).reshape(shape) for plane in (self.hole, self.avoid))
        return hole, avoid


@dataclass(frozen=True)
class _OtherHole:
    """The fill of a hole that is not the object's."""

    opened: _OpenElsewhere

    def __call__(self, subject: Subject) -> Fill:
        """Choose the fill, or another one where the subject is filled again."""
        fills, first = subject.tools.fills, subject.tools.second_of
        lender = subject if first is None else _share_tasks(subject, first)
        hole, avoid = self.opened.planes(subject)
        fill = _once_filled(subject, ("first", avoid, hole), lambda: fills.first(lender.once(self.opened)))
        if first is None:
            return fill
        return _once_filled(
            subject, ("second", fill.name, avoid, hole), lambda: fills.second(lender.once(self.opened), fill.name)
        )


def _find_cut_sides(subject: Subject) -> tuple[Side, ...]:
    return find_cut_sides(subject.hard_object)


def _without_reduction(subject: Subject) -> Subject:
    return _derive(subject, subject.photo)


def _derive(subject: Subject, photo: Picture, picture: Picture | None = None, tools: Tools | None = None) -> Subject:
    """A subject of other pictures with the same origin and doubt of its mask."""
    return Subject(photo, picture, origin=subject.origin, doubt=subject.doubt, tools=tools or subject.tools)


def _fill_again(subject: Subject) -> Subject:
    # The first fill is asked for with the second: an edit that does not show this hole needs neither.
    tools = replace(subject.tools, second_of=subject)
    again = _derive(subject, subject.photo, subject.picture, tools)
    with subject._lock:  # alpha, cutout and hole are the same
        again._results = {work: subject._results[work] for work in _WITHOUT_FILL if work in subject._results}
    return again


_WITHOUT_FILL: tuple[Callable[[Subject], Any], ...] = (
    _soften_mask, _estimate_alpha, _cut_out, _find_own_hole, _find_attachments, _find_hole, _find_cut_sides,
    _fill_background,
)  # fmt: skip


def _grow_mask(subject: Subject) -> Subject:
    return _with_masks(subject, lambda alpha: change_mask(alpha, MASK_CHANGE))


def _shrink_mask(subject: Subject) -> Subject:
    return _with_masks(subject, lambda alpha: change_mask(alpha, -MASK_CHANGE))


def _with_masks(subject: Subject, change: Callable[[Bytes], Bytes]) -> Subject:
    tools = replace(subject.tools, same_as=subject)
    photo = subject.photo._replace(alpha=change(subject.photo.alpha))
    if subject.photo is subject.picture:
        return _derive(subject, photo, tools=tools)
    return _derive(subject, photo, subject.picture._replace(alpha=change(subject.picture.alpha)), tools)


def _name_fill(subject: Subject) -> FillName:
    """Which fill was chosen; raises `Unusable` where it was refused: then there is nothing to double."""
    _ = subject.visible_background
    return subject.fill.name


def change_mask(alpha: Bytes, share: float) -> Bytes:
    """The mask grown, or shrunk where `share` is negative, by this share of the side of a square of equal area."""
    area = np.count_nonzero(hard_object(alpha))
    radius = max(1, round(abs(share) * area**0.5))
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1))
    work = cv2.dilate if share > 0 else cv2.erode
    changed = np.asarray(work(alpha, disc), np.uint8)
    if not hard_object(changed).any():
        raise Unusable(f"the object is too thin to shrink its mask by {radius} pixels")
    return changed
