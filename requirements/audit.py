"""Asks a database of known faults about every package of a lock file, and says where it could not be asked.

Run by `make audit`. Exit status: 0 all were asked about and none has a known fault, 1 some have, 3 some or all could
not be asked about, which is no clean result.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

UNKNOWN = 3


def audit(program: str, lock: str) -> int:
    """Ask, and print one line for each fault and one for the whole."""
    command = [program, "--requirement", lock, "--require-hashes", "--disable-pip", "--format", "json"]
    done = subprocess.run([*command, "--progress-spinner", "off"], capture_output=True, text=True, check=False)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        reason = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        print(f"{lock}: the database of known faults cannot be reached, nothing was audited: {reason[:200]}")
        return UNKNOWN
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    faults = [(package, fault) for package in packages for fault in package.get("vulns", ())]
    for package, fault in faults:
        fixed = ", ".join(fault["fix_versions"]) or "no version"
        print(f"{package['name']} {package['version']}: {fault['id']}, fixed in {fixed}")
    print(f"{lock}: {len(packages) - len(skipped)} of {len(packages)} packages audited, {len(faults)} known faults")
    if skipped:
        print(f"not audited, since the database could not be reached or does not know them: {len(skipped)} packages")
    return 1 if faults else UNKNOWN if skipped or not packages else 0


if __name__ == "__main__":
    sys.exit(max(audit(sys.argv[1], lock) for lock in map(str, sorted(Path(sys.argv[2]).glob("lock-*.txt")))))
