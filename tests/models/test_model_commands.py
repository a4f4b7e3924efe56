"""`counterfoil models check`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from counterfoil.cli.model_commands import models
from counterfoil.errors import UserError

MODULE = """
import numpy as np

class Model:
    labels = ["dark", "bright"]
    def __call__(self, images):
        bright = np.array([image.mean() / 255 for image in images])
        return np.stack([1 - bright, bright], axis=1)

class Batchy(Model):
    def __call__(self, images):
        return np.full((len(images), 2), [1 / (1 + len(images)), 1 - 1 / (1 + len(images))])

make, batchy = Model, Batchy
"""


def check(*arguments: str) -> list[str]:
    result = CliRunner().invoke(models, ["check", *arguments], standalone_mode=False)
    if result.exception:
        raise result.exception
    return [line for line in result.stdout.splitlines() if line]


def test_a_model_is_described_asked_and_checked() -> None:
    told = check("embedded:efficientnet-lite0")
    assert told[0] == "model: embedded:efficientnet-lite0"
    about = dict(line.split(": ", 1) for line in told)
    assert about["labels"].startswith("1000 of imagenet1k")
    assert "resize 256, centre crop (224, 224), bicubic" in about["preprocessing"]
    assert int(about["parameters"].replace(",", "")) > 4_000_000
    assert about["contract"].startswith("kept")
    assert about["known answers"].startswith("kept on 4 fixed pictures")
    assert len(about["weights"].removeprefix("sha256 ")) == 64
    photos = [line for line in told if line.startswith("photo of")]
    assert len(photos) == 3
    right = [line for line in photos if line.removeprefix("photo of ").split(":")[0] in line.split(":", 1)[1]]
    assert len(right) >= 2


def test_a_model_whose_answers_depend_on_the_batch_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "checked_model.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    assert any(line.startswith("contract: kept") for line in check("python:checked_model:make"))
    with pytest.raises(UserError, match="breaks the contract of models: scores do not depend on the batch"):
        check("python:checked_model:batchy")


def test_saved_predictions_are_described_without_being_asked(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("file,class\none.jpg,tabby\n")
    assert check(f"predictions:{tmp_path / 'answers.csv'}")[-1].startswith("contract: not run")
