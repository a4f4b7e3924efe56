"""Results of pure functions kept on disk between runs: fills, what networks said of a photo, masks that were found.

A result is stored under a hash of all that it depends on: pixels, settings, the code that makes it, the libraries and
the processor. A file is checked by its hash when it is read, and those used longest ago are removed. Several threads
and processes may use one folder; a process that is killed leaves no half a result.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from counterfoil import __version__
from counterfoil.errors import Unusable, UserError
from counterfoil.store.files import is_half_written, write_atomically

VARIABLE = "COUNTERFOIL_RESULTS_MB"  # how much is kept; 0 turns the cache off
DEFAULT_MB = 2048
RESULT_CODE = (  # what results are made by
    "assets", "edits", "mask_quality.py", "models", "object_mask.py", "painters", "rendered_pictures.py", "runner.py",
    "segmentation.py", "sources", "store/prediction_tables.py", "stored_outcomes.py", "study/thumbnails.py", "types.py",
    "variant_renderer.py",
)  # fmt: skip
_LIBRARIES = ("numpy", "opencv-python-headless", "onnxruntime", "pillow")
_HASH_BYTES = 32
_LOOKS = 64  # how often the folder is measured while as much is written as may be kept
_KEPT = 0.9  # of what may be kept, where something has to go
_ABANDONED = 3600  # seconds after which a half-written file is one of a killed process
_UNUSABLE = "unusable"  # the fact of a result that is an error: why there is none
Result = TypeVar("Result")


class Stored(NamedTuple):
    """A result as it is stored: facts as JSON, and planes of numbers or flags."""

    facts: Any
    planes: Sequence[NDArray[Any]] = ()


class ResultCache:
    """A folder of results; without a folder nothing is kept.

    Example:
        >>> import tempfile
        >>> cache, key = ResultCache(Path(tempfile.mkdtemp())), name_result("square", 3)
        >>> cache.once(key, lambda: 9, Stored, lambda stored: stored.facts)
        9
        >>> cache.recall(key)
        Stored(facts=9, planes=[])
    """

    def __init__(self, folder: Path | None = None, most_bytes: int = DEFAULT_MB * 2**20) -> None:
        self.folder, self.most_bytes = folder, most_bytes
        self.is_of_run = False  # whether the folder goes with the run that fills it
        self._unmeasured: int | None = None  # bytes written since the folder was measured; None: never measured
        self._lock = threading.Lock()

    @property
    def is_lasting(self) -> bool:
        """Whether later runs find what is stored now."""
        return self.folder is not None and not self.is_of_run

    def open_for_run(self, folder: Path) -> None:
        """Share results with the other workers of a run, in a folder that goes with it."""
        self.folder, self.is_of_run = folder, True

    def __getstate__(self) -> tuple[Path | None, int]:
        return self.folder, self.most_bytes

    def __setstate__(self, state: tuple[Path | None, int]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def once(
        self, key: str, make: Callable[[], Result], store: Callable[[Result], Stored],
        restore: Callable[[Stored], Result],
    ) -> Result:  # fmt: skip
        """The result that was stored, or a new one; `Unusable` is a result too, and raised again."""
        if self.folder is None:
            return make()
        stored = self.recall(key)
        if stored is not None:
            if isinstance(stored.facts, dict) and _UNUSABLE in stored.facts:
                raise Unusable(stored.facts[_UNUSABLE])
            return restore(stored)
        try:
            result = make()
        except Unusable as error:
            self.keep(key, Stored({_UNUSABLE: str(error)}))
            raise
        self.keep(key, store(result))
        return result

    def recall(self, key: str) -> Stored | None:
        """What was stored under a key; None where nothing is, or what is there is damaged."""
        if self.folder is None:
            return None
        path = self._path(self.folder, key)
        try:
            content = path.read_bytes()
            body = content[_HASH_BYTES:]
            if hashlib.sha256(body).digest() != content[:_HASH_BYTES]:
                path.unlink(missing_ok=True)
                return None
            os.utime(path)  # used now
        except OSError:
            return None
        return _decode(body)

    def keep(self, key: str, stored: Stored) -> None:
        """Store a result; a folder that cannot be written keeps nothing."""
        if self.folder is None:
            return
        body = _encode(stored)
        if len(body) > self.most_bytes / _LOOKS:
            return
        try:
            path = self._path(self.folder, key)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, hashlib.sha256(body).digest() + body, durable=False)
        except (OSError, UserError):  # a full disk, or a folder of another user: the work goes on without
            self.folder = None
            return
        self._count(len(body))

    def _count(self, written: int) -> None:
        with self._lock:
            first = self._unmeasured is None
            self._unmeasured = written + (self._unmeasured or 0)
            if not first and self._unmeasured < self.most_bytes / _LOOKS:
                return
            self._unmeasured = 0
        self.trim()

    def trim(self) -> None:
        """Remove what was used longest ago where there is too much, and what killed processes left."""
        files = sorted(self._list_files())
        there = sum(size for _, size, _ in files)
        if there <= self.most_bytes:
            return
        for _, size, path in files:
            if there <= _KEPT * self.most_bytes:
                return
            with contextlib.suppress(OSError):  # another process removed it
                os.unlink(path)
            there -= size

    def _list_files(self) -> Iterator[tuple[float, int, str]]:
        """When each file was used last, its bytes, and where it lies."""
        now = time.time()
        folders = [] if self.folder is None else [entry for entry in _scan(self.folder) if len(entry.name) == 2]
        for entry in (entry for folder in folders for entry in _scan(folder)):
            try:
                about = entry.stat()
                if not is_half_written(entry.name):
                    yield about.st_mtime, about.st_size, entry.path
                elif now - about.st_mtime > _ABANDONED:
                    os.unlink(entry)
            except OSError:  # another process removed it
                continue

    def _path(self, folder: Path, key: str) -> Path:
        return folder / key[:2] / key


NO_CACHE = ResultCache()


def open_result_cache(cache_folder: Path) -> ResultCache:
    """The cache of this machine, in the folder of fetched files; closed where the variable says 0."""
    given = os.environ.get(VARIABLE, "").strip() or str(DEFAULT_MB)
    if not given.isdecimal():
        raise UserError(f"{VARIABLE}: expected a whole number of megabytes, 0 to keep nothing, got {given!r}")
    return ResultCache(cache_folder / "results", int(given) * 2**20) if int(given) else ResultCache()


def name_result(*about: object) -> str:
    """The key of a result: planes count by their pixels, everything else by its text."""
    digest = hashlib.sha256(_describe_maker().encode())
    for part in about:
        if isinstance(part, np.ndarray):
            digest.update(f"\n{part.dtype} {part.shape}\n".encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(f"\n{part!r}\n".encode())
    return digest.hexdigest()


@cache
def _describe_maker() -> str:
    """What results depend on besides their input: the code, the libraries, and the processor's instructions."""
    package, digest = Path(__file__).parents[1], hashlib.sha256()
    for place in (package / name for name in RESULT_CODE):
        files = sorted(place.rglob("*.*")) if place.is_dir() else [place]
        for file in files:
            if file.is_file() and file.suffix != ".pyc":
                digest.update(file.name.encode())
                with file.open("rb") as opened:  # a network of the package is 25 MB
                    for block in iter(partial(opened.read, 1 << 20), b""):
                        digest.update(block)
    return " ".join((__version__, digest.hexdigest(), *map(_find_version, _LIBRARIES), *_describe_processor()))


def _find_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # another build of the same library
        return ""


def _describe_processor() -> tuple[str, str]:
    """Sums of products may differ in their last bit between instruction sets, and a folder may be shared."""
    try:
        about = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        about = platform.processor()
    flags = next((line for line in about.splitlines() if line.startswith(("flags", "Features"))), "")
    return platform.machine(), hashlib.sha256(flags.encode()).hexdigest()


def _encode(stored: Stored) -> bytes:
    about = [[plane.dtype.str, list(plane.shape)] for plane in stored.planes]
    head = json.dumps({"facts": stored.facts, "planes": about}).encode()
    planes = (np.packbits(plane) if plane.dtype == np.bool_ else np.ascontiguousarray(plane) for plane in stored.planes)
    return b"".join((head, b"\n", *(plane.tobytes() for plane in planes)))


def _decode(body: bytes) -> Stored:
    end = body.index(b"\n") + 1
    about = json.loads(body[:end])
    planes = []
    for kind, shape in about["planes"]:
        dtype, count = np.dtype(kind), int(np.prod(shape))
        if dtype == np.bool_:
            bits = np.frombuffer(body, np.uint8, -(-count // 8), end)
            planes.append(np.unpackbits(bits, count=count).view(np.bool_).reshape(shape))
            end += len(bits)
        else:
            planes.append(np.frombuffer(body, dtype, count, end).reshape(shape))
            end += count * dtype.itemsize
    return Stored(about["facts"], planes)


def _scan(folder: str | Path | os.DirEntry[str]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
