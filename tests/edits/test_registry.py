"""Edits by name: ours, wrong ones, and those of other packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from counterfoil.edits.registry import OURS, edit_named, name_of, settings_of
from counterfoil.errors import UserError

PLUGIN = """
from dataclasses import dataclass
from typing import ClassVar

@dataclass(frozen=True)
class Mirror:
    attribute: ClassVar[str] = "direction"
    times: int = 1

    @property
    def level(self):
        return str(self.times)

    def __call__(self, picture, rng):
        return picture
"""


@pytest.mark.parametrize("name", OURS)
def test_name_and_settings_rebuild_the_edit(name: str) -> None:
    edit = edit_named(name, {})
    assert name_of(edit) == name
    again = edit_named(name, json.loads(json.dumps(settings_of(edit))))
    assert again == edit
    assert hash(again) == hash(edit)


def test_a_list_from_yaml_becomes_the_colour_it_means() -> None:
    edit = edit_named("background-plain", {"colour": [1, 2, 3]})
    assert settings_of(edit) == {"colour": [1, 2, 3]}
    assert edit == edit_named("background-plain", settings_of(edit))


def test_an_unknown_edit_is_answered_with_the_nearest_names() -> None:
    with pytest.raises(UserError, match=r"no edit is named 'background-swop'.*background-swap"):
        edit_named("background-swop", {})


def test_an_unknown_setting_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UserError, match="edit size: unknown setting 'ratio'; expected rate, faithful"):
        edit_named("size", {"ratio": 0.1})


@pytest.mark.parametrize(
    ("name", "settings", "key"),
    [
        ("size", {"rate": "huge"}, "rate"),
        ("size", {"faithful": "yes"}, "faithful"),
        ("direction", {"low": 0.5}, "low"),
        ("background-swap", {"donors": "cousin"}, "donors"),
        ("background-plain", {"colour": [1, 2]}, "colour"),
        ("background-blur", {"kernel": "15"}, "kernel"),
    ],
)
def test_a_setting_of_the_wrong_kind_is_named(name: str, settings: dict[str, object], key: str) -> None:
    with pytest.raises(UserError, match=f"edit {name}: setting {key}: .*, got {settings[key]!r}".replace("[", r"\[")):
        edit_named(name, settings)


def test_a_class_that_nobody_registered_has_no_name() -> None:
    with pytest.raises(UserError, match="not a registered edit"):
        name_of(object())  # type: ignore[arg-type]


def _installed(folder: Path, name: str) -> dict[str, str]:
    """An environment in which a package offers PLUGIN's edit under `name`."""
    (folder / "mirror_plugin.py").write_text(PLUGIN)
    about = folder / "mirror_plugin-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mirror-plugin\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[counterfoil.edits]\n{name} = mirror_plugin:Mirror\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}


def _asked(environment: dict[str, str], code: str) -> subprocess.CompletedProcess[str]:
    code = f"from counterfoil.edits.registry import *\n{code}"
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_another_packages_edit_comes_in_by_its_entry_point(tmp_path: Path) -> None:
    code = "edit = edit_named('mirror', {'times': 2}); print(name_of(edit), edit.level, len(EDITS))"
    answer = _asked(_installed(tmp_path, "mirror"), code)
    assert answer.stdout.split() == ["mirror", "2", str(len(OURS) + 1)], answer.stderr


def test_two_edits_of_one_name_are_refused(tmp_path: Path) -> None:
    answer = _asked(_installed(tmp_path, "size"), "edit_named('control', {})")
    assert answer.returncode != 0
    assert "two edits are named 'size'" in answer.stderr
