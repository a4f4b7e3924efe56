"""A photo ready to edit: cutout, alpha and background computed once, on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import RLock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.cutout import Cutout, cut_out, paste, read_only, repaint
from counterfoil.edits.fill import check_background, filled_background
from counterfoil.edits.matting import soft_alpha
from counterfoil.errors import Unusable
from counterfoil.types import Picture

Bytes = NDArray[np.uint8]
Result = TypeVar("Result")


class Subject:
    """A photo at its own size and the picture at working size that edits change.

    Cut-out, alpha and background are computed when first asked for and held as long as the subject is; several
    threads may use one subject.

    Example:
        >>> import numpy as np
        >>> mask = np.zeros((60, 80), np.uint8)
        >>> mask[20:40, 30:50] = 255
        >>> subject = Subject(Picture(np.full((60, 80, 3), 200, np.uint8), mask))
        >>> subject.cutout is subject.cutout
        True
    """

    def __init__(self, photo: Picture, picture: Picture | None = None) -> None:
        self.photo = photo  # at its own size
        self.picture = photo if picture is None else picture  # at working size
        self._lock = RLock()
        self._results: dict[Callable[[Subject], Any], Any] = {}

    @property
    def alpha(self) -> Bytes:
        """The object's alpha with soft edges, (height, width), read-only."""
        return self.once(_alpha)

    @property
    def cutout(self) -> Cutout:
        """The object alone; raises `Unusable` where there is hardly any."""
        return self.once(_cutout)

    def check_object(self) -> None:
        """Raise `Unusable` where there is hardly any object."""
        self.once(_cutout)

    @property
    def background(self) -> Bytes:
        """The picture without its object, filled, read-only; raises `Unusable` where too little is left to copy."""
        return self.once(_background)

    @property
    def at_full_size(self) -> Subject:
        """The same photo with nothing reduced, for an edit whose `needs` ask for the photo."""
        return self if self.photo is self.picture else self.once(_at_full_size)

    def once(self, work: Callable[[Subject], Result]) -> Result:
        """What a pure function makes of this subject; a second call gets the first one's result or `Unusable`."""
        with self._lock:
            if work not in self._results:
                try:
                    self._results[work] = work(self)
                except Unusable as error:
                    self._results[work] = error
            result = self._results[work]
        if isinstance(result, Unusable):
            raise Unusable(*result.args)  # a fresh one: raising one object in two threads would mix their tracebacks
        return result  # type: ignore[no-any-return]

    @property
    def nbytes(self) -> int:
        """Bytes of all planes that are held now; a plane that is used twice counts once."""
        return sum({id(plane): plane.nbytes for plane in self._planes()}.values())

    def _planes(self) -> Iterator[NDArray[Any]]:
        yield from (*self.photo, *self.picture)
        for result in list(self._results.values()):
            yield from _planes_of(result)

    def on_background(self, background: Bytes) -> Picture:
        """The object where it was, before another background."""
        check_background(self.cutout.background_share)
        return Picture(paste(self.cutout, background), self.cutout.alpha.copy())

    def repainted(self, colours: Bytes) -> Picture:
        """The object where it was in other colours, (height, width, 3) of its window; no background is filled."""
        return Picture(repaint(self.picture.image, self.cutout, colours), self.cutout.alpha.copy())


def _planes_of(result: object) -> Iterator[NDArray[Any]]:
    if isinstance(result, np.ndarray):
        yield result
    elif isinstance(result, Subject):
        yield from result._planes()
    elif isinstance(result, tuple):
        for part in result:
            yield from _planes_of(part)


def _alpha(subject: Subject) -> Bytes:
    return read_only(soft_alpha(subject.picture.image, subject.picture.alpha))


def _cutout(subject: Subject) -> Cutout:
    return cut_out(subject.picture.image, subject.alpha)


def _background(subject: Subject) -> Bytes:
    return read_only(filled_background(subject.picture.image, subject.alpha))


def _at_full_size(subject: Subject) -> Subject:
    return Subject(subject.photo)
