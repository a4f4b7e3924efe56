"""How much faster a network is evaluated over JPEG files than by the usual torch loop; the answers must be the same.

`python bench/evaluate.py [FOLDER]`: the photos in a folder of class folders; without one, the demo photos.
Prints ratios only, and exits with 1 when a single top-1 answer differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

from pairing import Turn, in_turns, line_of, ratios, turn
from photos import demo_folder, jpeg_files

WANTED_PICTURES = 500
BATCH_SIZES = (8, 32)


def main() -> int:
    """Measure and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, nargs="?", help="photos as <label>/<name>.jpg")
    parser.add_argument("--repetitions", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="counterfoil-bench-") as temporary:
        files = jpeg_files(given.folder or demo_folder(Path(temporary))[0])
        if not files:
            parser.error(f"expected photos as <label>/<name>.jpg under {given.folder}, found none")
        files *= max(1, round(WANTED_PICTURES / len(files)))
        listed = Path(temporary) / "files.txt"
        listed.write_text("\n".join(map(str, files)))
        print(f"EfficientNet-Lite0 over {len(files)} JPEG files, {given.repetitions} pairs in turns")
        differing = sum(_compare(listed, batch_size, given.repetitions) for batch_size in BATCH_SIZES)
    return 1 if differing else 0


def _compare(listed: Path, batch_size: int, repetitions: int) -> int:
    """Print the ratios of one batch size; gives back how many answers differ."""
    usual = partial(turn, "torch_loop.py", listed, batch_size)
    pairs = in_turns(usual, partial(turn, "our_loop.py", listed, batch_size), repetitions)
    print(line_of(f"batch {batch_size}", ratios(pairs)))
    differing = sum(_differing(usual, ours) for usual, ours in pairs)
    total = sum(len(ours.found) for _, ours in pairs)
    print(f"  top-1 identical on {total - differing} of {total} pictures")
    return differing


def _differing(usual: Turn, ours: Turn) -> int:
    return sum(one != other for one, other in zip(usual.found, ours.found, strict=True))


if __name__ == "__main__":
    sys.exit(main())
