"""A recipe made of edits given to Python: names, edit objects and functions."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from counterfoil.edits.edit_functions import FunctionEdit, renew_version
from counterfoil.edits.edit_functions import edit as edit_from_function
from counterfoil.edits.edit_protocol import Edit
from counterfoil.edits.registry import EDITS, edit_named, name_of, register_edit, settings_of
from counterfoil.errors import UserError, did_you_mean, expect_kind, expect_path
from counterfoil.recipes.edit_recipe import Recipe, Step, load_recipe

OWN = "own edits"  # the name of such a recipe in the record of a run
CONTROL = "control"
_DEFAULT = "attributes"  # the recipe whose working size and checks are taken, and whose steps an attribute stands for


def choose_recipe(edits: Any, recipe: str | Path | Recipe | None) -> str | Recipe:
    """The recipe of these edits, else the one named, else the default."""
    if edits is None:
        if recipe is None:
            return _DEFAULT
        expect_kind(recipe, (str, Path, Recipe), "recipe= as a name, a YAML file or a Recipe")
        return recipe if isinstance(recipe, Recipe) else str(expect_path(recipe, "recipe="))
    if recipe is not None:
        raise UserError("expected edits= or recipe=, got both; give one of them")
    return make_recipe(edits)


def make_recipe(edits: Any) -> Recipe:
    """A recipe of these edits, with the control and what each is compared with added."""
    steps = list_steps(edits)
    base = load_recipe(_DEFAULT)
    return Recipe(
        name=OWN,
        about="Edits given to Python.",
        working_size=base.working_size,
        tool_checks=base.tool_checks,
        edits=tuple(_with_required([Step(edit=CONTROL), *steps])),
    )


def list_steps(edits: Any) -> list[Step]:
    """The steps of these edits alone, without what they are compared with; raises `UserError` where there is none."""
    given = list(edits) if isinstance(edits, list | tuple) else [edits]
    if not given:
        raise UserError("expected at least one edit, got none; give edits=['size'], or leave edits out")
    functions: dict[str, Callable[..., Any]] = {}
    things = [_as_edit(thing) for thing in given]
    for thing in things:
        if isinstance(thing, FunctionEdit):
            _check_function(thing, functions)
    own = [step for thing in things if not isinstance(thing, str) for step in _steps(thing)]
    made = {(step.edit, edit_named(step.edit, step.settings).level) for step in own}
    steps = [step for thing in things for step in _steps(thing)]
    return _drop_repeated([step for each in steps for step in ([each] if each in own else _without(each, made))])


def _as_edit(thing: Any) -> Any:
    """An edit for a class or a function; names and anything else stay as they are."""
    if isinstance(thing, type) and issubclass(thing, Edit):
        return _make_default(thing)
    if callable(thing) and not isinstance(thing, Edit | str):
        return edit_from_function(thing)()
    return thing


def _check_function(edit: FunctionEdit, functions: dict[str, Callable[..., Any]]) -> None:
    """Make the function known by its name; raises `UserError` where another of these edits has the name."""
    function = type(edit).function
    if functions.setdefault(edit.name, function) is not function:
        raise UserError(
            f"expected a name for each edit, got two functions named '{edit.name}'; give one @cf.edit(name=...)"
        )
    renew_version(type(edit))
    register_edit(edit.name, type(edit))


def _without(step: Step, made: Collection[tuple[str, str]]) -> list[Step]:
    """The step without the levels that edits given as objects make; as it is where they make none of them."""
    new = [each for each in step.all_settings if (step.edit, edit_named(step.edit, each).level) not in made]
    if len(new) == len(step.all_settings):
        return [step]
    return [step.model_copy(update={"settings": settings, "levels": {}}) for settings in new]


def _drop_repeated(steps: Sequence[Step]) -> list[Step]:
    """The steps, each once: an edit may be given by its name and as one of its attribute."""
    return [step for place, step in enumerate(steps) if step not in steps[:place]]


def _steps(thing: Any) -> Sequence[Step]:
    """The steps that one thing stands for; an attribute stands for all its edits in the default recipe."""
    if isinstance(thing, str):
        return _steps_named(thing)
    if not isinstance(thing, Edit):
        raise UserError(
            f"expected edits as names, edits such as cf.edits.Size(0.1), or functions (image, mask, rng) -> image,"
            f" got {type(thing).__name__}"
        )
    name, settings = name_of(thing), settings_of(thing)
    edit_named(name, settings)  # the settings' types, which a dataclass does not check
    return [Step(edit=name, settings=settings)]


def _make_default(kind: type[Edit]) -> Edit:
    try:
        return kind()
    except TypeError as error:
        raise UserError(f"expected settings for the edit {kind.__name__}, got none: {error}") from error


def _steps_named(name: str) -> Sequence[Step]:
    base = load_recipe(_DEFAULT).edits
    own = [step for step in base if step.edit == name]
    if own:
        return own
    if name in EDITS:
        _make_default(EDITS[name])
        return [Step(edit=name)]
    attributes = {step.edit: EDITS[step.edit].attribute for step in base}
    of_attribute = [step for step in base if attributes[step.edit] == name]
    if of_attribute:
        return of_attribute
    near = did_you_mean(name, [*EDITS, *attributes.values()]) or "; see `counterfoil list edits`"
    raise UserError(f"expected the name of an edit or an attribute, got '{name}'{near}")


def _with_required(steps: Sequence[Step]) -> list[Step]:
    """The steps, each once, with those that an edit is compared with before it."""
    chosen: dict[str, Step] = {}
    for step in steps:
        for settings in step.all_settings:
            for required in edit_named(step.edit, settings).required_edits:
                wanted = Step(edit=required.edit, settings=dict(required.settings))
                if not any(_covers(other, wanted) for other in (*chosen.values(), *steps)):
                    chosen.setdefault(_key(wanted), wanted)
        chosen.setdefault(_key(step), step)
    return list(chosen.values())


def _covers(step: Step, wanted: Step) -> bool:
    """Whether a step makes the edit at the level that another asks for."""
    if step.edit != wanted.edit:
        return False
    level = edit_named(wanted.edit, wanted.settings).level
    return any(edit_named(step.edit, settings).level == level for settings in step.all_settings)


def _key(step: Step) -> str:
    return json.dumps([step.edit, step.settings, step.levels], sort_keys=True)
