"""How much faster the whole job is, twenty edits per photo and one network, than edits to files and the torch loop.

`python bench/job.py [FOLDER [MASKS]]`: photos as <label>/<name>.jpg, masks as <label>/<name>.png; without masks
U2-Netp makes them for both sides beforehand; without a folder, the demo photos. Prints ratios and shares only.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path

from figures import note_figure
from pairing import in_turns, line_of, ratios, turn
from photos import demo_folder, first_photos, jpeg_files, segmented_folder

BATCH_SIZE = 32
SUFFIXES = ("png", "jpg")


def main() -> None:
    """Measure, then look where our time goes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, nargs="?", help="photos as <label>/<name>.jpg")
    parser.add_argument("masks", type=Path, nargs="?", help="masks as <label>/<name>.png")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--limit", type=int, help="so many photos at most")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="counterfoil-bench-") as temporary:
        images, masks = _photos(given.folder, given.masks, Path(temporary))
        if given.limit is not None:
            images = first_photos(images, Path(temporary) / "first", given.limit)
        count = len(jpeg_files(images))
        print(f"{count} photos, 20 edits each, {given.repetitions} pairs in turns for each kind of file")
        for suffix in SUFFIXES:
            _compare(images, masks, suffix, given.repetitions)
        _print_shares(images, masks)


def _photos(folder: Path | None, masks: Path | None, temporary: Path) -> tuple[Path, Path]:
    if folder is None:
        return demo_folder(temporary)
    return segmented_folder(folder, temporary) if masks is None else (folder, masks)


def _compare(images: Path, masks: Path, suffix: str, repetitions: int) -> None:
    usual = partial(turn, "file_job.py", images, masks, suffix, BATCH_SIZE)
    pairs = in_turns(usual, partial(turn, "our_job.py", images, masks), repetitions)
    found = ratios(pairs)
    print(line_of(f"against {suffix} files", found))
    note_figure(f"against {suffix} files, by the clock", found.wall)
    note_figure(f"against {suffix} files, CPU time", found.cpu)
    print(f"  pictures answered: {pairs[0][0].found} by the usual way, {pairs[0][1].found} by ours")


def _print_shares(images: Path, masks: Path) -> None:
    print("where our time goes:")
    for part, share in turn("our_job.py", images, masks, "shares").found.items():
        print(f"  {share:5.1f} %  {part}")


if __name__ == "__main__":
    main()
