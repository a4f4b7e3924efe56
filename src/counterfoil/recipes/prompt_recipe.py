"""Recipes of prompts: the values of an attribute and the templates that put them into words."""

from __future__ import annotations

import csv
import hashlib
import math
import re
import string
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from counterfoil.errors import UserError

PLACEHOLDERS = ("category", "a_category", "value", "a_value")
_FOLDER = "prompts"
_FOLDER_NAME = re.compile(r"\w[\w.+-]{0,99}")  # of a template: its pictures lie in a folder of that name
_LAMBDA = "lambda {value}"  # the template for pixel models, which read no text
_LONGEST_VALUE = 200  # bytes: a value is also a folder name


class PaintedAttribute(BaseModel):
    """One attribute of a painting recipe: its values, and the templates that put them into words."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    attribute: Literal["background", "texture", "material"]
    values: str | tuple[str, ...] | dict[str, tuple[str, ...]]  # a CSV file beside the recipe, a list, lists by class
    templates: dict[str, str] = Field(min_length=1)  # the edit's name in the tables -> the prompt

    @field_validator("templates")
    @classmethod
    def _known_placeholders(cls, templates: dict[str, str]) -> dict[str, str]:
        for name, text in templates.items():
            if not _FOLDER_NAME.fullmatch(name):
                raise ValueError(f"a template is named by letters, digits, '.', '+' and '-', got '{name}'")
            _check_placeholders(text)
        return templates

    def values_of(self, label: str) -> tuple[str, ...]:
        """The values for a class; in a loaded recipe they are no longer a file name."""
        if isinstance(self.values, str):
            raise ValueError(f"the values of {self.attribute} were not read from {self.values}")
        return self.values.get(label, ()) if isinstance(self.values, dict) else self.values


class PromptRecipe(BaseModel):
    """A recipe of `counterfoil paint`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    about: str = ""
    paints: Literal["pictures", "backgrounds"]
    classes: str  # a label space by name, or a classes.json
    plain: str = "a photo of {a_category}"  # prompt of the counterpart, where whole pictures are painted
    negative: str = ""
    words: dict[str, str] = Field(default_factory=dict)  # names of classes in prompts, where they differ
    working_size: int | None = Field(default=None, ge=16)  # of photos, where backgrounds are painted
    attributes: tuple[PaintedAttribute, ...] = Field(min_length=1)

    @field_validator("plain")
    @classmethod
    def _without_value(cls, plain: str) -> str:
        _check_placeholders(plain)
        if "value}" in plain:
            raise ValueError("the plain prompt has no {value}: it is the counterpart that shows none")
        return plain

    @model_validator(mode="after")
    def _each_template_once(self) -> PromptRecipe:
        names = [name for attribute in self.attributes for name in attribute.templates]
        if len(names) > len(set(names)) or "original" in names:
            raise ValueError("each template needs a name of its own, and 'original' is taken")
        return self

    @property
    def digest(self) -> str:
        """Hash of everything that changes a prompt."""
        return hashlib.sha256(self.model_dump_json(exclude={"name", "about"}).encode()).hexdigest()


def list_prompt_recipes() -> list[str]:
    """The painting recipes that come with Counterfoil."""
    return sorted(find_shipped_recipes(_FOLDER))


def load_prompt_recipe(name_or_file: str) -> PromptRecipe:
    """A shipped painting recipe by name, or a user's YAML file; raises `UserError` for faults."""
    if name_or_file in list_prompt_recipes():
        return _parse_recipe(find_shipped_recipes(_FOLDER)[name_or_file], name_or_file)
    path = Path(name_or_file)
    if path.suffix in (".yaml", ".yml") and path.is_file():
        return _parse_recipe(path, name_or_file)
    known = ", ".join(list_prompt_recipes())
    raise UserError(f"expected a painting recipe ({known}) or a YAML file, got '{name_or_file}'")


def is_prompt_recipe(name_or_file: str) -> bool:
    """Whether a recipe needs a painter; other recipes edit photos."""
    if name_or_file in list_prompt_recipes():
        return True
    path = Path(name_or_file)
    if path.suffix not in (".yaml", ".yml") or not path.is_file():
        return False
    content = _read_yaml(path, name_or_file)
    return isinstance(content, dict) and "paints" in content


def _check_placeholders(text: str) -> None:
    try:
        fields = [field for field in string.Formatter().parse(text) if field[1] is not None]
    except ValueError as error:
        raise ValueError(f"the template '{text}' cannot be read: {error}") from error
    for _, name, form, conversion in fields:
        if name not in PLACEHOLDERS or form or conversion:
            raise ValueError(f"the template '{text}' has {{{name}}}; expected {', '.join(PLACEHOLDERS)} as they are")


def find_shipped_recipes(folder: str = "") -> dict[str, Path]:
    """The package's recipe files by name: general ones, and those beside their published benchmark."""
    package = Path(str(resources.files("counterfoil")))
    places = [package / "recipes", *sorted((package / "published").iterdir())]
    return {path.stem: path for place in places for path in sorted((place / folder).glob("*.yaml"))}


def _read_yaml(path: Any, where: str) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, OSError, ValueError, RecursionError) as error:  # ValueError: no text, an invalid date
        raise UserError(
            f"expected a painting recipe in YAML, got {where}: {' '.join(str(error).split())[:200]}"
        ) from error


def _parse_recipe(path: Any, where: str) -> PromptRecipe:
    content = _read_yaml(path, where)
    if not isinstance(content, dict):
        raise UserError(f"expected a painting recipe with the keys {_keys()}, got {where}, which holds no keys")
    try:
        recipe = PromptRecipe.model_validate({"name": Path(where).stem, **content})
    except ValidationError as error:
        raise UserError(f"painting recipe {where}: {_first_fault(error)}") from error
    folder = path.parent
    return recipe.model_copy(update={"attributes": tuple(_read_values(one, folder) for one in recipe.attributes)})


def _read_values(attribute: PaintedAttribute, folder: Any) -> PaintedAttribute:
    if not isinstance(attribute.values, str):
        return _check_values(attribute)
    file = folder.joinpath(attribute.values)
    try:
        rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
        values = tuple(row["value"] or "" for row in rows)
    except (OSError, UnicodeDecodeError, KeyError, csv.Error) as error:
        raise UserError(
            f"expected a CSV file with the column 'value' for {attribute.attribute}, got {file}: {error}"
        ) from error
    return _check_values(attribute.model_copy(update={"values": values}))


def _check_values(attribute: PaintedAttribute) -> PaintedAttribute:
    """The attribute; raises `UserError` where values repeat or cannot be folder names."""
    lists = attribute.values.values() if isinstance(attribute.values, dict) else [attribute.values]
    for values in lists:
        twice = [value for value, count in Counter(values).items() if count > 1]
        if twice:
            raise UserError(f"expected each value of {attribute.attribute} once, got '{twice[0]}' twice")
        for value in values:
            if not re.search(r"\w", value) or len(value.encode()) > _LONGEST_VALUE:
                expected = f"expected values of 1 to {_LONGEST_VALUE} bytes with a letter or digit"
                raise UserError(f"{expected} for {attribute.attribute}, got '{value[:60]}'")
            if _LAMBDA in attribute.templates.values() and not _is_number(value):
                raise UserError(f"expected numbers for the template '{_LAMBDA}', got '{value[:60]}'")
    return attribute


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _first_fault(error: ValidationError) -> str:
    """One fault in one line; a misspelt key comes before a missing one."""
    fault = min(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
    place = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"unknown key '{place}'; expected {_keys()}"
    message = fault["msg"].removeprefix("Value error, ")
    where = f"'{place}': " if place else ""
    return f"{where}{message[0].lower()}{message[1:]}"


def _keys() -> str:
    return ", ".join(PromptRecipe.model_fields)
