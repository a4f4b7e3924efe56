"""Work done once per photo and remembered for its other edits."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

import numpy as np

from counterfoil.errors import Unusable
from counterfoil.types import Picture

LIMIT_BYTES = 256 * 2**20  # of photos whose results are kept; a result takes about as much

Result = TypeVar("Result")


class PerPicture(Generic[Result]):
    """A pure function of a picture that answers again without working again; safe in threads."""

    # Pictures are told apart by their content: an array that was changed in place, or another one that was given the
    # address of one that is gone, never gets a stale answer.

    def __init__(self, work: Callable[[Picture], Result]) -> None:
        self._work = work
        self._lock = Lock()
        self._known: OrderedDict[bytes, tuple[int, Future[Result]]] = OrderedDict()
        self._bytes = 0

    def __call__(self, picture: Picture) -> Result:
        """The result for this picture, or the reason why there is none."""
        key = _fingerprint(picture)
        future, mine = self._future(key, picture.image.nbytes)
        if mine:
            self._fulfil(key, future, picture)
        error = future.exception()
        if isinstance(error, Unusable):
            raise Unusable(*error.args)  # a fresh one: raising one object in two threads would mix their tracebacks
        return future.result()

    def _future(self, key: bytes, size: int) -> tuple[Future[Result], bool]:
        """The place for the result, and whether the caller is the one to fill it."""
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key][1], False
            future: Future[Result] = Future()
            self._known[key] = (size, future)
            self._bytes += size
            while self._bytes > LIMIT_BYTES and len(self._known) > 1:
                self._bytes -= self._known.popitem(last=False)[1][0]
            return future, True

    def _fulfil(self, key: bytes, future: Future[Result], picture: Picture) -> None:
        try:
            future.set_result(self._work(picture))
        except BaseException as error:  # whoever waits must hear of it, an interrupt too
            future.set_exception(error)
            if not isinstance(error, Unusable):
                self._forget(key)
                raise

    def _forget(self, key: bytes) -> None:
        with self._lock:
            size, _ = self._known.pop(key, (0, None))
            self._bytes -= size


def _fingerprint(picture: Picture) -> bytes:
    """A digest of the pixels, their arrangement and the alpha."""
    digest = hashlib.sha1(repr(picture.image.shape).encode(), usedforsecurity=False)
    for plane in picture:
        digest.update(np.ascontiguousarray(plane).data)
    return digest.digest()
