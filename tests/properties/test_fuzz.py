"""The fuzzer's corpus of kept inputs, and a few damaged inputs of every kind; `make fuzz` tries more."""

from __future__ import annotations

from pathlib import Path

import pytest

from counterfoil.errors import UserError
from counterfoil.models.onnx_classifier import open_session
from fuzzer import CORPUS, fuzz, list_corpus, list_targets, mutate, try_input


@pytest.mark.parametrize(
    ("kind", "path"), [pytest.param(*entry, id="/".join(entry[1].parts[-2:])) for entry in list_corpus()]
)
def test_an_input_that_failed_once_is_refused_in_one_line(kind: str, path: Path, tmp_path: Path) -> None:
    assert try_input(kind, path.read_bytes(), tmp_path) == ""


def test_whole_inputs_are_read(tmp_path: Path) -> None:
    for name, (make, target) in list_targets().items():
        target(make(), tmp_path / name)


def test_damaged_inputs_of_every_kind_are_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tried, failures = fuzz(0, 8 * len(list_targets()), seed=20)
    assert tried >= 8 * len(list_targets())
    assert failures == []


def test_mutations_change_the_input() -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    assert sum(mutate(b"0123456789", rng) != b"0123456789" for _ in range(50)) > 40


def test_a_damaged_network_prints_nothing_between_the_results(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError):
        open_session(CORPUS / "onnx" / "name_is_no_text")
    assert capfd.readouterr().out == ""
