"""The edit of docs/edit.md is whole, and registered by the line that stands below it."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

import counterfoil as cf
from edit_pictures import PICTURES
from locations import ROOT

PAGE = (ROOT / "docs" / "edit.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    match = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert match
    return match[1]


def test_the_edit_of_the_page_keeps_the_contract_under_its_registration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registration = re.fullmatch(r'\[project.entry-points."counterfoil.edits"\]\n(.*) = "(.*):(.*)"\n', block("toml"))
    assert registration
    name, module, kind = registration.groups()
    (tmp_path / f"{module}.py").write_text(block("python"), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, module, raising=False)
    edit = getattr(importlib.import_module(module), kind)(width=5)
    assert (name, edit.level, edit.describe(edit.level)) == ("background-stripes", "5", "stripes instead (5)")
    assert cf.check_edit(edit, [make() for make in PICTURES.values()]) > 0
    with pytest.raises(cf.UserError, match="width"):
        type(edit)(width=0)


def test_an_edit_without_settings_must_name_its_level() -> None:
    class Nothing(cf.Edit):
        attribute = "background"

        def apply(self, subject: cf.Subject, rng: object, supplied: cf.Supplied) -> cf.Picture:
            return subject.picture

    from dataclasses import dataclass

    with pytest.raises(NotImplementedError, match="define `level`"):
        dataclass(frozen=True)(Nothing)().level  # noqa: B018
