"""Runs whose disk fills up, at six sizes of a small file system, then the same command with room.

    python bench/full_disk.py [--photos 60] [--kib 100 200 400 800 1200 1400]

Needs Linux and user namespaces (`unshare`), no rights of root: each size is a tmpfs that this program mounts for
itself alone. The run must end in one line with status 2, or finish; enlarged, the file system must take the same
command, whose tables must be those of a run that never lacked room. The program ends with status 1 where not.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from flips import RECIPE, TABLES
from scale import MODEL, MODEL_CODE, write_tiny_photos

ROOM = "64m"
_ENDED_WELL = (0, 3, 4)  # too few photos, not judged
_INSIDE = "COUNTERFOIL_FULL_DISK"  # set in the namespace of this program's own


def run(folder: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """One run over the photos in a folder, in a process of its own."""
    words = ["run", "--images", folder / "images", "--masks", folder / "masks", "--recipe", folder / "recipe.yaml"]
    words += ["--model", MODEL, "--workers", 1, "--out", out, "--quiet"]
    paths = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(
        [sys.executable, "-m", "counterfoil", *map(str, words)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": paths, "COUNTERFOIL_RESULTS_MB": "0"},
    )  # fmt: skip


def read_tables(out: Path) -> dict[str, bytes]:
    """The tables of a run, by name."""
    return {path.relative_to(out).as_posix(): path.read_bytes() for name in TABLES for path in sorted(out.glob(name))}


def fill(folder: Path, disk: Path, kib: int, whole: dict[str, bytes]) -> bool:
    """One size: the run without room, then with it; prints what came of both and says whether that is right."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(disk)], check=True)
    try:
        full = run(folder, disk / "out")
        said = [line for line in full.stderr.splitlines() if line.startswith("counterfoil: ")]
        halves = [path.name for path in disk.rglob(".*")]
        subprocess.run(["mount", "-o", f"remount,size={ROOM}", str(disk)], check=True)
        again = run(folder, disk / "out")
        same = read_tables(disk / "out") == whole
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    filled = full.returncode == 2 and len(said) == 1 and "Traceback" not in full.stderr
    right = (filled or full.returncode in _ENDED_WELL) and not halves and again.returncode in _ENDED_WELL and same
    words = said[0].replace(f"{disk}/", "")[:90] if said else f"status {full.returncode}"
    print(f"{kib:6,} KiB: {words}; half-written files: {len(halves)}; with room: status {again.returncode},"
          f" {'the same tables' if same else 'OTHER TABLES'}", flush=True)  # fmt: skip
    return right


def main() -> None:
    """Read the command line; enter a namespace in which file systems may be mounted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=int, default=60)
    parser.add_argument("--kib", type=int, nargs="+", default=[100, 200, 400, 800, 1200, 1400])
    asked = parser.parse_args()
    unshare = shutil.which("unshare")
    if not os.environ.get(_INSIDE):
        if unshare is None:
            raise SystemExit("expected the program unshare of util-linux")
        own = [unshare, "--user", "--map-root-user", "--mount", sys.executable, *sys.argv]
        raise SystemExit(subprocess.run(own, check=False, env={**os.environ, _INSIDE: "1"}).returncode)
    with tempfile.TemporaryDirectory() as temporary:
        folder, disk = Path(temporary), Path(temporary) / "disk"
        disk.mkdir()
        write_tiny_photos(folder, asked.photos)
        (folder / "recipe.yaml").write_text(RECIPE)
        (folder / "scale_model.py").write_text(MODEL_CODE)
        if run(folder, folder / "whole").returncode not in _ENDED_WELL:
            raise SystemExit("the run with room failed")
        whole = read_tables(folder / "whole")
        right = [fill(folder, disk, kib, whole) for kib in asked.kib]
    raise SystemExit(0 if all(right) else 1)


if __name__ == "__main__":
    main()
