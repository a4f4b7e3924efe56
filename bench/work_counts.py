"""How often a command does each kind of work: hashes, decoded pictures, tables read, calls of our own functions.

python bench/work_counts.py run --images demo: --model embedded:efficientnet-lite0 --limit 12 --workers 1 --out OUT

Counts do not depend on the machine, so they show repeated work that timings would hide.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import counterfoil
from counterfoil.cli import commands
from counterfoil.store.result_cache import VARIABLE

_HASHES = {"openssl_sha256", "openssl_sha1", "openssl_md5"}
_DECODERS = {"imdecode"}
_SHOWN = 60  # of the functions called most
_OURS = str(Path(counterfoil.__file__).parent)

counts: Counter[str] = Counter()
functions: Counter[str] = Counter()


def _note(frame: FrameType, event: str, about: Any) -> None:
    """Python calls this at every call; `about` is the function where it is not written in Python."""
    if event == "c_call":
        name = getattr(about, "__name__", "")
        if name in _HASHES or name in _DECODERS:
            kind = "decoded" if name in _DECODERS else "hashed"
            counts[f"{kind} by {Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}"] += 1
    elif event == "call" and frame.f_code.co_filename.startswith(_OURS):
        name = frame.f_code.co_name
        functions[f"{Path(frame.f_code.co_filename).stem}.{name}"] += 1
        path = frame.f_locals.get("path")
        if name == "read_dictionary_table" and isinstance(path, Path):
            counts[f"read {path.name}"] += 1


def main() -> None:
    """Run the command under the counter, then print what was counted."""
    threading.setprofile(_note)
    sys.setprofile(_note)
    try:
        commands(sys.argv[1:], standalone_mode=False)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        for title, table in (("work", counts), ("functions", functions)):
            print(f"\n{title}")
            for name, times in table.most_common(_SHOWN):
                print(f"{times:8d}  {name}")


if __name__ == "__main__":
    os.environ.setdefault(VARIABLE, "0")  # work that an earlier run stored would not be counted
    main()
