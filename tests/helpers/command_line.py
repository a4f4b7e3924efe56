"""The command as somebody types it, run within this process: the same door without the second that loading takes."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from counterfoil.__main__ import main


@dataclass(frozen=True)
class Ended:
    """What a process would leave behind."""

    returncode: int
    stdout: str
    stderr: str


def counterfoil(*arguments: object, cwd: Path | None = None) -> Ended:
    out, error, status = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(error):
        patch.setattr(sys, "argv", ["counterfoil", *map(str, arguments)])
        if cwd is not None:
            patch.chdir(cwd)
        try:
            main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
    return Ended(status, out.getvalue(), error.getvalue())
