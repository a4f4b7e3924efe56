"""What is installed is what was locked: every line of a lock has hashes, the build backend is pinned, audits say so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from locations import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LOCKS = sorted((ROOT / "requirements").glob("lock-*.txt"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_package_of_a_lock_has_one_version_and_hashes(lock: Path) -> None:
    entries = lock.read_text().replace("\\\n", " ").splitlines()
    packages = [line for line in entries if line.strip() and not line.lstrip().startswith("#")]
    assert len(packages) > 100
    assert [
        line[:60] for line in packages if not re.match(r"[\w.\-\[\],]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line)
    ] == []


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [
        *project["dependencies"],
        *(line for name in ("web", "postgres", "figures", "dev") for line in extras[name]),
    ]
    names = {re.split(r"[\[<>=;! ]", line)[0].lower().replace("_", "-") for line in wanted} - {"counterfoil"}
    locked = {line.partition("==")[0].lower() for line in LOCKS[0].read_text().splitlines() if "==" in line}
    assert {name for name in names if name not in locked} == set()


def test_the_build_backend_is_pinned() -> None:
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert all("==" in line for line in requires)


@pytest.mark.parametrize(
    ("said", "status", "line"),
    [
        ("connection refused", 3, "cannot be reached, nothing was audited"),
        ('{"dependencies": [{"name": "a", "skip_reason": "not found"}]}', 3, "not audited, since"),
        ('{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}', 0, "1 of 1 packages audited, 0 known"),
        (
            '{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "X-1", "fix_versions": ["2"]}]}]}',
            1,
            "a 1: X-1, fixed in 2",
        ),
    ],
)
def test_an_audit_says_what_it_could_not_ask(said: str, status: int, line: str, tmp_path: Path) -> None:
    program = tmp_path / "pip-audit"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{said}\nEND\n")
    program.chmod(0o755)
    (tmp_path / "lock-3.11.txt").write_text("")
    command = [sys.executable, str(ROOT / "requirements" / "audit.py"), str(program), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert line in done.stdout
