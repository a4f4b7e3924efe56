"""One run and one process per folder: the record in run.json, and locks that are freed when a process ends."""

from __future__ import annotations

import contextlib
import errno
import json
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from counterfoil.errors import UserError
from counterfoil.store.files import MANIFEST, RECORD, is_half_written, make_durable_folder
from counterfoil.store.run_checksums import forget_checksums
from counterfoil.store.sealed_record import read_sealed, write_sealed

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# fields that may differ between sessions of one run
MAY_DIFFER = frozenset({"command", "environment", "samples", "sanity", "notes", "listed", "shown"})
# fields that may hold more than in the session before: models that are added to a run
MAY_GROW = frozenset({"models", "model_digests", "identities", "preprocessing"})
_OLD_JOURNAL = "work/journal.jsonl"
_TRACES = ("run.json", "work/lock", "work/plan.json")  # a folder that holds one of these is ours
_FIELD_NAMES = {  # fields of the record with another name for users
    "images": "source of photos", "masks": "folder of masks", "recipe_digest": "recipe",
    "collection_digest": "collection", "fills": "fill of holes", "allow_cut": "treatment of cut objects",
    "refine_cutouts": "way of cutting out",
    "doubtful_masks": "treatment of doubtful masks", "rendering": "way of making pictures",
    "models": "model", "model_digests": "model", "identities": "model",
}  # fmt: skip
MIGAN_REMEDY = (
    "MI-GAN comes through the npm client or from a file that COUNTERFOIL_MIGAN names, COUNTERFOIL_MIGAN=none does"
    " without it"
)


class FolderClaimedError(UserError):
    """The folder holds another run's results; `different` names the fields that differ."""

    def __init__(self, folder: Path, different: str) -> None:
        super().__init__(
            f"expected an empty folder or this run's own in {folder}, but it holds a run with another {different};"
            " choose another --out or remove the folder"
        )
        self.different = different


def claim_folder(
    folder: Path,
    requested: Mapping[str, object],
    may_differ: Collection[str] = MAY_DIFFER,
    may_grow: Collection[str] = frozenset(),
    keep: bool = False,
) -> None:
    """Record the run in its folder; raises `UserError` where that holds another run's results or a benchmark.

    With `keep` a record that is there already stays as it is.
    """
    _make_work_folder(folder)
    record = json.loads(json.dumps(requested))
    path = folder / "run.json"
    if path.is_file():
        _check_same_run(folder, record, may_differ, may_grow)
        if keep:
            return
    forget_checksums(folder)  # the tables may change from now on
    write_sealed(path, record)


def refuse_other_run(folder: Path, own: Path) -> None:
    """Raises `UserError` where a folder holds another run than that in the folder `own`, whose tables go there."""
    if all((place / "run.json").is_file() for place in (folder, own)):
        _check_same_run(folder, read_sealed(own / "run.json"), MAY_DIFFER, frozenset())


def _check_same_run(
    folder: Path, record: Mapping[str, Any], may_differ: Collection[str], may_grow: Collection[str]
) -> None:
    """Raises `FolderClaimedError` where the record in a folder is not of this run."""
    earlier = read_sealed(folder / "run.json")
    # fields that an older version did not record count as empty
    different = [
        name
        for name in record
        if name not in may_differ
        and (earlier.get(name) or None) != (record[name] or None)
        and not (name in may_grow and _holds_all(record[name], earlier.get(name)))
    ]
    if different:
        names = dict.fromkeys(_FIELD_NAMES.get(name, name.replace("_", " ")) for name in different)
        raise FolderClaimedError(folder, " and ".join(names) + explain_fills(earlier, record))


def _holds_all(now: Any, earlier: Any) -> bool:
    """Whether a list or mapping holds everything that it held earlier."""
    if isinstance(now, dict) and isinstance(earlier, dict):
        return earlier.items() <= now.items()
    return isinstance(now, list) and isinstance(earlier, list) and set(earlier) <= set(now)


def explain_fills(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """What to do, in brackets, where one of two recorded runs had the network MI-GAN and the other had not."""
    has = ["MI-GAN" in str(record.get("fills")) for record in (first, second)]
    return "" if has[0] == has[1] else f" ({MIGAN_REMEDY})"


def refuse_benchmark(folder: Path) -> None:
    """Raises `UserError` where the folder is, or lies in, a frozen benchmark, which must not change."""
    place = folder.resolve()
    for above in (place, *place.parents):
        if (above / RECORD).is_file() and (above / MANIFEST).is_file():
            raise UserError(
                f"expected a folder outside of every frozen benchmark, got '{folder}', which would change the one in"
                f" '{above}'; choose another --out"
            )


@contextlib.contextmanager
def hold_folder(folder: Path, shared: bool = False) -> Iterator[None]:
    """Hold a run's folder for this process; raises `UserError` where another holds it, or where it cannot be used.

    Processes that hold it `shared`, the shards of a run, may hold it at the same time.
    """
    if (folder / _OLD_JOURNAL).is_file():
        raise UserError(
            f"expected an empty folder or a run of this version in {folder}, got one of an earlier version: its tables"
            " can be read, but it cannot be continued; choose another --out"
        )
    _make_work_folder(folder)
    with (folder / "work" / "lock").open("ab") as file:
        if not try_lock(file, shared):
            raise UserError(f"another run is writing into {folder}: wait for it, or choose another --out")
        if not shared:  # nobody else writes here
            _remove_halves(folder)
        yield


def _remove_halves(folder: Path) -> None:
    """Remove the halves of files that a killed process left, in the folders of a run."""
    for place in (folder, folder / "work", folder / "work" / "parts", folder / "predictions", folder / "thumbnails"):
        for path in place.glob(".*") if place.is_dir() else ():
            if is_half_written(path.name):
                path.unlink(missing_ok=True)


def _make_work_folder(folder: Path) -> None:
    refuse_benchmark(folder)
    try:
        _refuse_other_files(folder)
        make_durable_folder(folder / "work")
    except OSError as error:
        leads_nowhere = folder.is_symlink() and not folder.exists()
        reason = "a link to a place that does not exist" if leads_nowhere else error.strerror
        raise UserError(f"expected a folder to write into, got '{folder}': {reason}; choose another --out") from error


def _refuse_other_files(folder: Path) -> None:
    """Raises `UserError` where a folder holds files and none of a run: results among them could overwrite some."""
    if not folder.is_dir() or any((folder / trace).exists() for trace in _TRACES):
        return
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    if names == ["work"] and not any((folder / "work").iterdir()):  # a run was killed at its start
        return
    if names:
        raise UserError(
            f"expected a new folder, an empty one or one of a run, got '{folder}', which holds other files"
            f" ('{names[0]}'{f' and {len(names) - 1} more' if names[1:] else ''}); choose another --out"
        )


def try_lock(file: Any, shared: bool = False) -> bool:
    """Lock a file or a descriptor until this process ends; False where another process holds the lock."""
    if sys.platform == "win32":  # Windows has no such locks: a second run in one folder is not noticed
        return True
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks, such as some kinds of NFS
        return True
    return True


@contextlib.contextmanager
def wait_for_lock(path: Path) -> Iterator[None]:
    """Hold the lock file; wait while another process holds it."""
    with path.open("ab") as file:  # closed by the system when a process is killed, which frees the lock
        if sys.platform == "win32":
            _wait_on_windows(file.fileno())
        else:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


if sys.platform == "win32":

    def _wait_on_windows(descriptor: int) -> None:
        while True:
            try:
                return msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
            except OSError as error:
                if error.errno != errno.EDEADLOCK:  # raised by Windows after ten seconds of waiting
                    raise
