"""How much faster the whole job is, twenty edits per photo and one network, than edits to files and the torch loop.

`python bench/job.py [FOLDER [MASKS]]`: photos as <label>/<name>.jpg, masks as <label>/<name>.png; without masks
U2-Netp makes them for both sides beforehand; without a folder, the demo photos. Prints ratios and shares only, first
for fills that are not judged, as the usual way has them, then for those that are.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from functools import partial
from pathlib import Path

from figures import note_figure
from pairing import Turn, in_turns, line_of, ratios, turn
from photos import demo_folder, first_photos, jpeg_files, segmented_folder
from run_cost import ASKED, cost_of_network

BATCH_SIZE = 32
FILLS = ("unjudged", "judged")
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
        for fills in FILLS:
            for suffix in SUFFIXES:
                _compare((images, masks), suffix, fills, given.repetitions)
            _print_shares(images, masks, fills)


def _photos(folder: Path | None, masks: Path | None, temporary: Path) -> tuple[Path, Path]:
    if folder is None:
        return demo_folder(temporary)
    return segmented_folder(folder, temporary) if masks is None else (folder, masks)


def _compare(photos: tuple[Path, Path], suffix: str, fills: str, repetitions: int) -> None:
    usual = partial(turn, "file_job.py", *photos, suffix, BATCH_SIZE)
    pairs = in_turns(usual, partial(turn, "our_job.py", *photos, fills), repetitions)
    found = ratios(pairs)
    print(line_of(f"{fills} fills, against {suffix} files", found))
    note_figure(f"{fills} fills, against {suffix} files, by the clock", found.wall)
    note_figure(f"{fills} fills, against {suffix} files, CPU time", found.cpu)
    print(f"  pictures answered: {pairs[0][0].found} by the usual way, {pairs[0][1].found} by ours")
    _compare_with_network([ours for _, ours in pairs], fills)


def _compare_with_network(turns: list[Turn], fills: str) -> None:
    """Our CPU time beside that of the network alone, which is asked about as many ready tensors."""
    alone = cost_of_network(ASKED).alone
    times = statistics.median(ours.cpu_seconds / (ours.found * alone) for ours in turns)
    print(f"  {times:.1f} times the CPU time of the network alone")
    note_figure(f"{fills} fills, CPU time / network alone", times, "x", "lower")


def _print_shares(images: Path, masks: Path, fills: str) -> None:
    print(f"where our time goes with {fills} fills:")
    for part, share in turn("our_job.py", images, masks, fills, "shares").found.items():
        print(f"  {share:5.1f} %  {part}")


if __name__ == "__main__":
    main()
