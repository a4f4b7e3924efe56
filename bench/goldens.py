"""Record what the command line writes, and compare two recordings: a check for refactorings that must change nothing.

    python bench/goldens.py record CHECKOUT OUT [--only NAME ...]
    python bench/goldens.py compare OUT_BEFORE OUT_AFTER
    python bench/goldens.py digest OUT
    python bench/goldens.py list

`record` runs named scenarios (`list` names them) with the source of CHECKOUT and the interpreter that runs this file.
Every scenario writes into OUT/NAME; what its commands print is kept in OUT/NAME/steps. With `--only`, the scenarios
that the chosen ones build on are recorded too, where OUT does not hold them yet. OUT/digests.json then holds two
hashes of each file: of its bytes, and of its content. The content of a Parquet file is its columns and values, of a
SQLite file its sorted rows, of a picture its pixels, of an archive its members; times, secrets, versions and absolute
paths are left out. OUT/times.json holds the seconds of each scenario. `digest` computes the hashes of a recording
again, for when the rules of this file about content have changed.

`compare` lists files that are missing, new or of other content, with the first line that differs, and apart from them
the files whose bytes differ while their content is equal. It exits with 1 where content differs. Scenarios that only
one of the two recordings holds are named and not compared.

The first recording on a machine downloads the networks and photos of `counterfoil demo`. No GPU and no terminal is
needed; a full recording takes about twelve minutes of CPU time.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import resource
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from golden_files import Reader, content_digest
from golden_inputs import write_inputs
from golden_scenarios import SCENARIOS, Recorder


def record(checkout: Path, out: Path, only: Sequence[str]) -> int:
    """Record scenarios and write their digests; gives back the exit status."""
    out.mkdir(parents=True, exist_ok=True)
    write_inputs(checkout, out / "inputs")
    reader = Reader.of(str(checkout), out)
    faults: list[str] = []
    for name in _with_needs(only, set(_read_json(out / "times.json", {}))):
        recorder = Recorder(checkout, out, name)
        seconds, cpu = _record_one(recorder)
        faults += [f"{name}: {fault}" for fault in recorder.faults]
        note = f"  faults: {len(recorder.faults)}" if recorder.faults else ""
        print(f"{name:20} {seconds:7.1f} s, CPU {cpu:7.1f} s{note}", flush=True)
        _merge(out / "digests.json", {"checkout": str(checkout), name: dict(_digests(reader, out, name))})
        _merge(out / "times.json", {name: {"seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1)}})
    total = sum(row["cpu_seconds"] for row in _read_json(out / "times.json", {}).values())
    print(f"all scenarios of {out}: CPU {total:.0f} s", flush=True)
    for fault in faults:
        print(f"fault: {fault}", flush=True)
    return 1 if faults else 0


def digest(out: Path) -> int:
    """Compute the digests of everything that was recorded again, as after a change of what counts as content."""
    before = _read_json(out / "digests.json", {})
    reader = Reader.of(before["checkout"], out)
    for name in _read_json(out / "times.json", {}):
        before[name] = dict(_digests(reader, out, name))
    (out / "digests.json").write_text(json.dumps(before, indent=1) + "\n")
    return 0


def _merge(path: Path, further: Mapping[str, Any]) -> None:
    """Add entries to a JSON file that another recording may have changed meanwhile."""
    path.write_text(json.dumps({**_read_json(path, {}), **further}, indent=1) + "\n")


def _with_needs(only: Sequence[str], recorded: set[str]) -> list[str]:
    """All scenarios, or those chosen and what they need and is not recorded, in the order of their definition."""
    chosen: set[str] = set()
    waiting = list(only or SCENARIOS)
    while waiting:
        name = waiting.pop()
        if name not in chosen:
            chosen.add(name)
            waiting += [need for need in SCENARIOS[name].needs if need not in recorded or not only]
    return [name for name in SCENARIOS if name in chosen]


def _record_one(recorder: Recorder) -> tuple[float, float]:
    """Record one scenario; gives back its seconds and the CPU seconds of its processes."""
    shutil.rmtree(recorder.folder, ignore_errors=True)
    recorder.folder.mkdir(parents=True)
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        SCENARIOS[recorder.name].record(recorder)
    except (OSError, RuntimeError, ValueError) as error:  # the other scenarios are recorded all the same
        recorder.faults.append(f"{type(error).__name__}: {error}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - began, cpu


def _digests(reader: Reader, out: Path, scenario_name: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The hashes of a scenario's files, by their path in OUT."""
    for path in sorted((out / scenario_name).rglob("*")):
        if path.is_file() and "work" not in path.relative_to(out).parts:  # how the work was cut and by whom
            file = path.relative_to(out).as_posix()
            data = path.read_bytes()
            content = content_digest(reader.lines(file, data), data)
            yield file, {"sha256": hashlib.sha256(data).hexdigest(), "content": content}


def _read_json(path: Path, default: Any) -> Any:
    return json.loads(path.read_text()) if path.is_file() else default


def compare(first: Path, second: Path) -> int:
    """Print what differs between two recordings; gives back the exit status."""
    before, after = (_read_json(folder / "digests.json", None) for folder in (first, second))
    if before is None or after is None:
        print(f"expected recordings with digests.json, got {first} and {second}; run `record` first", file=sys.stderr)
        return 2
    both = [name for name in before if name in after and name != "checkout"]
    for folder, one in ((first, before), (second, after)):
        lone = [name for name in one if name not in both and name != "checkout"]
        if lone:
            print(f"not compared, only in {folder}: {', '.join(lone)}")
    old, new = ({file: row for name in both for file, row in one[name].items()} for one in (before, after))
    missing, added = sorted(set(old) - set(new)), sorted(set(new) - set(old))
    shared = sorted(set(old) & set(new))
    changed = [file for file in shared if old[file]["content"] != new[file]["content"]]
    bytes_only = [f for f in shared if old[f]["sha256"] != new[f]["sha256"] and old[f]["content"] == new[f]["content"]]
    readers = [Reader.of(one["checkout"], folder) for folder, one in ((first, before), (second, after))]
    for title, files in (("missing", missing), ("new", added)):
        for file in files:
            print(f"{title}: {file}")
    for file in changed:
        print(f"content differs: {file}")
        for line in _first_difference(file, (first, second), readers):
            print(f"    {line}")
    by_ending = Counter(Path(file).suffix or "no ending" for file in bytes_only)
    kinds = ", ".join(f"{count} {ending}" for ending, count in by_ending.most_common())
    print(f"bytes differ, content equal: {len(bytes_only)} files{f' ({kinds})' if kinds else ''}")
    print(
        f"{len(shared)} files compared in {len(both)} scenarios: {len(changed)} of other content,"
        f" {len(missing)} missing, {len(added)} new"
    )
    return 1 if changed or missing or added else 0


def _first_difference(file: str, folders: Sequence[Path], readers: Sequence[Reader]) -> list[str]:
    """The first line that two files do not share, cut to what a terminal shows."""
    read = (reader.lines(file, (folder / file).read_bytes()) for folder, reader in zip(folders, readers, strict=True))
    pairs = itertools.zip_longest(*(lines or () for lines in read), fillvalue="(no such line)")
    for number, (before, after) in enumerate(pairs, 1):
        if before != after:
            same = next((at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0)
            shown = slice(max(0, same - 40), same + 120)
            return [f"line {number}:", f"- {before[shown]}", f"+ {after[shown]}"]
    return []


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="run the scenarios with a checkout's source")
    recording.add_argument("checkout", type=Path)
    recording.add_argument("out", type=Path)
    recording.add_argument("--only", nargs="+", metavar="NAME", default=[], choices=list(SCENARIOS))
    comparing = commands.add_parser("compare", help="list what differs between two recordings")
    comparing.add_argument("first", type=Path)
    comparing.add_argument("second", type=Path)
    digesting = commands.add_parser("digest", help="compute the digests of a recording again")
    digesting.add_argument("out", type=Path)
    commands.add_parser("list", help="name the scenarios")
    chosen = parser.parse_args()
    if chosen.command == "record":
        return record(chosen.checkout.resolve(), chosen.out.resolve(), chosen.only)
    if chosen.command == "compare":
        return compare(chosen.first.resolve(), chosen.second.resolve())
    if chosen.command == "digest":
        return digest(chosen.out.resolve())
    for one in SCENARIOS.values():
        print(one.name, f"(needs {', '.join(one.needs)})" if one.needs else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
