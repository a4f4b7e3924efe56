"""How much faster a network is evaluated over JPEG files than by the usual torch loop; the answers must be the same.

`python bench/evaluate.py [FOLDER]`: the photos in a folder of class folders; without one, the demo photos.
Prints ratios only, and exits with 1 when a single top-1 answer differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from figures import note_figure
from pairing import Turn, in_turns, line_of, ratios, turn
from photos import demo_folder, jpeg_files

WANTED_PICTURES = 500
BATCH_SIZES = (8, 32)


def main() -> int:
    """Measure and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, nargs="?", help="photos as <label>/<name>.jpg")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--pictures", type=int, default=WANTED_PICTURES, help="about so many, repeated or left out")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="counterfoil-bench-") as temporary:
        files = jpeg_files(given.folder or demo_folder(Path(temporary))[0])
        if not files:
            parser.error(f"expected photos as <label>/<name>.jpg under {given.folder}, found none")
        files = (files * max(1, round(given.pictures / len(files))))[: 2 * given.pictures]
        listed = Path(temporary) / "files.txt"
        listed.write_text("\n".join(map(str, files)))
        print(f"EfficientNet-Lite0 over {len(files)} JPEG files, {given.repetitions} pairs in turns")
        differing = sum(_compare(listed, batch_size, given.repetitions) for batch_size in BATCH_SIZES)
        _compare_floor(listed, given.repetitions)
    return 1 if differing else 0


def _compare(listed: Path, batch_size: int, repetitions: int) -> int:
    """Print the ratios of one batch size; gives back how many answers differ."""
    usual = partial(turn, "torch_loop.py", listed, batch_size)
    ours = partial(turn, "our_loop.py", listed, batch_size)
    pairs = in_turns(usual, ours, repetitions)
    found = ratios(pairs)
    print(line_of(f"batch {batch_size}", found))
    note_figure(f"batch {batch_size}, by the clock", found.wall)
    note_figure(f"batch {batch_size}, CPU time", found.cpu)
    _compare_bare(f"batch {batch_size}", partial(turn, "bare_loop.py", listed, batch_size), ours, repetitions)
    differing = sum(_differing(*pair) for pair in pairs)
    total = sum(len(pair[1].found) for pair in pairs)
    print(f"  top-1 identical on {total - differing} of {total} pictures")
    return differing


def _compare_floor(listed: Path, repetitions: int) -> None:
    """Print how near ours comes to the network asked one picture at a time, and how near decoding lets it come."""
    alone = partial(turn, "bare_loop.py", listed, 1)
    ours = partial(turn, "our_loop.py", listed, BATCH_SIZES[0])
    _compare_bare("one picture a call", alone, ours, repetitions)
    _compare_bare("decoding and the network", alone, partial(turn, "bare_loop.py", listed, 1, "decode"), repetitions)


def _compare_bare(name: str, bare: Callable[[], Turn], work: Callable[[], Turn], repetitions: int) -> None:
    """Print how near some work comes to the network alone on ready tensors."""
    found = ratios(in_turns(bare, work, repetitions))
    print(f"  {name}: {100 * found.wall:.0f} % of the network alone by the clock, {100 * found.cpu:.0f} % in CPU time")
    note_figure(f"{name}, share of the network alone, by the clock", 100 * found.wall, "%")
    note_figure(f"{name}, share of the network alone, CPU time", 100 * found.cpu, "%")


def _differing(usual: Turn, ours: Turn) -> int:
    return sum(one != other for one, other in zip(usual.found, ours.found, strict=True))


if __name__ == "__main__":
    sys.exit(main())
