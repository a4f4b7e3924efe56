"""The table of fidelity: its page is current, its files are there, and the defaults that it names are the code's."""

from __future__ import annotations

import dataclasses
import importlib
import runpy
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from counterfoil.edits.registry import EDITS
from counterfoil.recipes.edit_recipe import load_recipe
from locations import ROOT

SCRIPT = runpy.run_path(str(ROOT / "docs" / "fidelity" / "make_page.py"))
PAPERS = SCRIPT["load"]()
ROWS = [(paper, row) for paper, content in PAPERS.items() for row in content["rows"]]
CHECKS = [check for _, row in ROWS for check in row.get("checks", ())]


def plain(value: Any) -> Any:
    """Tuples as lists, as YAML has them."""
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


def default_of(kind: Any, name: str) -> Any:
    """The default of a field of a dataclass or a pydantic model."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind.model_fields[name].default
    return next(field.default for field in dataclasses.fields(kind) if field.name == name)


def value_of(subject: str) -> Any:
    """What the code has for the left side of a check."""
    what, *names = subject.split()
    if what == "edit":
        return default_of(EDITS[names[0]], names[1])
    if what == "recipe-key":
        return vars(load_recipe(names[0]))[names[1]]
    if what == "recipe":
        recipe, edit, setting = names
        (step,) = [step for step in load_recipe(recipe).edits if step.edit == edit]
        return step.levels.get(setting, step.settings.get(setting))
    module, _, name = names[0].partition(":")
    counted = name.endswith("#")
    owner, _, field = name.rstrip("#").partition(".")
    value = vars(importlib.import_module(module))[owner]
    value = default_of(value, field) if field else value
    return len(value) if counted else value


@pytest.mark.parametrize("check", CHECKS)
def test_a_default_that_the_table_names_is_the_codes(check: str) -> None:
    subject, _, expected = check.partition(" = ")
    assert plain(value_of(subject)) == yaml.safe_load(expected), "change the row of docs/fidelity/fidelity.yaml with it"


def test_the_page_is_made_from_the_data() -> None:
    text = SCRIPT["PAGE"].read_text(encoding="utf-8")
    assert text == SCRIPT["render"](PAPERS), "make it again: python docs/fidelity/make_page.py"


def test_every_row_is_complete_and_its_files_are_there() -> None:
    for paper, row in ROWS:
        name = f"{paper}: {row['topic']}"
        assert {"topic", "known", "said", "ours", "where", "verdict"} <= row.keys() <= {
            "topic", "known", "said", "ours", "where", "verdict", "why", "checks",
        }, name  # fmt: skip
        assert row["verdict"] in SCRIPT["MEANING"], name
        assert row["known"] in SCRIPT["KNOWN"], name
        assert row["verdict"] == "same" or row.get("why"), f"{name} says that it differs and not why"
        assert all((ROOT / path).exists() for path in row["where"]), f"{name}: {row['where']}"


def test_no_row_stands_twice_and_every_paper_has_rows() -> None:
    names = [(paper, row["topic"]) for paper, row in ROWS]
    assert len(set(names)) == len(names)
    assert {"imagenet-e", "imagenet-d", "ximagenet-12", "neighbours", "choices"} == set(PAPERS)
