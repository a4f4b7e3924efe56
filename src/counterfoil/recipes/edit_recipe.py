"""Recipes of edits: which edits at which levels, read from YAML and checked."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from counterfoil.errors import UserError, did_you_mean
from counterfoil.recipes.prompt_recipe import find_shipped_recipes, list_prompt_recipes


class Step(BaseModel):
    """One edit of a recipe with its settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    edit: str
    settings: dict[str, Any] = Field(default_factory=dict)
    levels: dict[str, list[Any]] = Field(default_factory=dict)  # several values of one setting: an edit for each
    replicates: int = Field(default=1, ge=1, le=10_000)
    needs: str | None = None  # what this step needs to run, such as "surrogate"
    main: bool = False  # the attribute is judged by this edit first, at its last level, for every model alike

    @model_validator(mode="before")
    @classmethod
    def _take_a_name_alone(cls, step: object) -> object:
        return {"edit": step} if isinstance(step, str) else step

    @model_validator(mode="after")
    def _one_setting_has_levels(self) -> Step:
        if len(self.levels) > 1 or not all(self.levels.values()):
            raise ValueError("levels takes one setting with its list of values")
        return self

    @property
    def all_settings(self) -> list[dict[str, Any]]:
        """The settings of each edit of this step."""
        if not self.levels:
            return [self.settings]
        ((name, values),) = self.levels.items()
        return [{**self.settings, name: value} for value in values]


class Recipe(BaseModel):
    """The edits that a run applies to every photo; original and control are always included."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    about: str = ""
    working_size: int | None = Field(default=None, ge=16)  # shorter side that larger photos are reduced to
    tool_checks: int = Field(default=0, ge=0)  # photos whose pictures are also made with another fill and mask
    judge_fills: bool = True  # refuse pictures whose filled hole would show; off: patches fill every hole, unjudged
    allow_cut: bool = False  # move objects that the photo's border cuts like others, as the papers do
    refine_cutouts: bool = False  # take background out of cut-outs, refuse those that lack a part; off in the papers
    edits: tuple[Step, ...] = Field(min_length=1)

    @property
    def digest(self) -> str:
        """Hash of everything in the recipe that changes a picture."""
        left_out: dict[str, Any] = {"name": True, "about": True, "tool_checks": True, "edits": {"__all__": {"main"}}}
        # Digests of recipes without these keys stay as they were.
        left_out |= {"judge_fills": True} if self.judge_fills else {}
        left_out |= {} if self.allow_cut else {"allow_cut": True}
        left_out |= {} if self.refine_cutouts else {"refine_cutouts": True}
        return hashlib.sha256(self.model_dump_json(exclude=left_out).encode()).hexdigest()


def list_recipes() -> list[str]:
    """The recipes that come with Counterfoil."""
    return sorted(find_shipped_recipes())


def load_recipe(name_or_file: str) -> Recipe:
    """A shipped recipe by name, or a user's YAML file; raises `UserError` for faults."""
    if name_or_file in list_recipes():
        return _parse_recipe(find_shipped_recipes()[name_or_file].read_text(encoding="utf-8"), name_or_file)
    path = Path(name_or_file)
    if path.suffix in (".yaml", ".yml") and path.is_file():
        return _parse_recipe(_read_text(path), name_or_file)
    if name_or_file in list_prompt_recipes():
        raise UserError(_refuse_prompt_recipe(name_or_file))
    known, painted = list_recipes(), list_prompt_recipes()
    raise UserError(
        f"expected a recipe ({', '.join(known)}; for `paint` also {', '.join(painted)}) or a YAML file,"
        f" got '{name_or_file}'{did_you_mean(name_or_file, [*known, *painted])}"
    )


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"expected a recipe in YAML, got {path}, which cannot be read: {error}") from error


def _parse_recipe(text: str, where: str) -> Recipe:
    try:
        content = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: an invalid date
        raise UserError(f"expected a recipe in YAML, got {where}: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise UserError(f"expected a recipe with the keys {_list_keys(Recipe)}, got {where}, which holds no keys")
    if "paints" in content:
        raise UserError(_refuse_prompt_recipe(where))
    try:
        return Recipe.model_validate({"name": Path(where).stem, **content})
    except ValidationError as error:
        raise UserError(f"recipe {where}: {_describe_fault(error)}") from error


def _refuse_prompt_recipe(where: str) -> str:
    return (
        f"expected a recipe of edits, got {where}, which asks a painter for pictures;"
        f" `counterfoil paint --recipe {where} --painter ADDRESS --out WORKSPACE` paints them"
    )


def _describe_fault(error: ValidationError) -> str:
    """One fault in one line; a misspelt key comes before a missing one."""
    fault = min(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
    place = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        model = Recipe if len(fault["loc"]) == 1 else Step
        return f"unknown key '{place}'; expected {_list_keys(model)}"
    if fault["type"] == "model_type":
        return f"'{place}': expected the name of an edit, or the keys {_list_keys(Step)}, got {fault['input']!r}"
    return f"'{place}': {fault['msg'][0].lower()}{fault['msg'][1:]}, got {fault['input']!r}"


def _list_keys(model: type[BaseModel]) -> str:
    return ", ".join(model.model_fields)
