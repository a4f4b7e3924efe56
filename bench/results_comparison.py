"""What got slower between two files of `suite.py`.

    python bench/results_comparison.py BEFORE.json AFTER.json [--tolerance 10]

Each figure of both files, with its change in percent towards the better; those that got worse by more than the
tolerance come first, and the exit status is then 1. A warning says where machines differ, or one run was quick.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple


class Change(NamedTuple):
    """One figure in both files."""

    name: str
    before: float
    after: float
    unit: str
    better: str

    @property
    def gain(self) -> float:
        """The change towards the better, in percent."""
        ratio = self.after / self.before if self.better == "higher" else self.before / self.after
        return 100 * (ratio - 1)


def main() -> int:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--tolerance", type=float, default=10.0, help="percent")
    given = parser.parse_args()
    before, after = (_read(parser, path) for path in (given.before, given.after))
    for line in list_differences(before, after):
        print(f"warning: {line}")
    changes = sorted(compare(before, after), key=lambda change: change.gain)
    worse = [change for change in changes if change.gain < -given.tolerance]
    for change in changes:
        mark = "SLOWER" if change in worse else ""
        figures = f"{change.before:10.3f} -> {change.after:10.3f} {change.unit}"
        print(f"{change.gain:+7.1f} %  {figures:34} {change.name}  {mark}")
    print(f"{len(worse)} of {len(changes)} figures got worse by more than {given.tolerance:g} %")
    return 1 if worse else 0


def _read(parser: argparse.ArgumentParser, path: Path) -> dict[str, Any]:
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        parser.error(f"expected a file of suite.py, got {path}: {error}")
    if not isinstance(results, dict) or not isinstance(results.get("benchmarks"), dict):
        parser.error(f"expected a file of suite.py, got {path}, which has no benchmarks")
    return results


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """The figures that both files have."""
    old, new = _figures(before), _figures(after)
    return [
        Change(name, row["value"], new[name]["value"], row["unit"], row["better"])
        for name, row in old.items()
        if name in new and row["value"] > 0 and new[name]["value"] > 0
    ]


def _figures(results: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{name}: {row['name']}": row
        for name, benchmark in results["benchmarks"].items()
        for row in benchmark.get("figures", ())
    }


def list_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Why the two files can hardly be compared, and what only one of them has."""
    lines = [
        f"{key} differs: {before.get('machine', {}).get(key)} and {after.get('machine', {}).get(key)}"
        for key in ("model", "cores", "features", "python", "runtimes")
        if before.get("machine", {}).get(key) != after.get("machine", {}).get(key)
    ]
    if before.get("quick") != after.get("quick"):
        lines.append("one of them is a quick run")
    for name, results in (("after", after), ("before", before)):
        lines += [
            f"{place} failed {name}" for place, benchmark in results["benchmarks"].items() if benchmark.get("status")
        ]
    lines += [f"only one of them has {name}" for name in sorted(_figures(before).keys() ^ _figures(after).keys())]
    return lines


if __name__ == "__main__":
    sys.exit(main())
