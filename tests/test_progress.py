"""Progress counts what the user has, whatever the work is cut into."""

from __future__ import annotations

import pytest

from counterfoil.progress import Extent, show_progress


def test_pieces_of_several_pictures_are_told_in_pictures_per_second(capsys: pytest.CaptureFixture[str]) -> None:
    chunks = [range(32), range(32), range(6)]
    assert list(show_progress(chunks, Extent(30, 100, " pictures"), len)) == chunks
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("100% 100/100 [")
    assert line.endswith(" pictures/s]")
