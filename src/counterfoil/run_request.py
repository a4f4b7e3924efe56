"""What a Python caller asks for, as objects, made into the configuration of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from counterfoil.edits.edit_selection import choose_recipe
from counterfoil.labels.label_space import list_class_names
from counterfoil.models.model_objects import ModelHints, Transform, as_models, name_object
from counterfoil.recipes.edit_recipe import Recipe
from counterfoil.run_config import RunConfig
from counterfoil.sources.object_source import find_class_names
from counterfoil.sources.source_loaders import as_source
from counterfoil.types import Source


def make_run_config(
    images: Any,
    models: Any = (),
    *,
    masks: str | Path | None = None,
    edits: Any = None,
    recipe: str | Recipe | None = None,
    labels: Sequence[str] | None = None,
    transform: Transform | None = None,
    **settings: Any,
) -> RunConfig:
    """The configuration of a run over these objects; raises `UserError` for what cannot be used."""
    names = list_class_names(labels)
    chosen = choose_recipe(edits, recipe)
    source = as_source(images, masks, names)
    hints = ModelHints(
        labels=names, transform=transform, classes=_list_classes(images), photo_labels=tuple(source.labels),
        options=settings.get("options"),
    )  # fmt: skip
    return RunConfig(
        source=source,
        models=as_models(models, hints),
        recipe=chosen,
        command=_describe_call(source, models, chosen),
        **settings,
    )


def _list_classes(images: Any) -> Sequence[str]:
    """The class names of a data set in the order of their numbers; none of a folder."""
    return () if isinstance(images, str | Path) else find_class_names(images) or ()


def _describe_call(source: Source, models: Any, recipe: str | Recipe) -> str:
    """The call as a line for the record; objects stand there by their names."""
    named = models if isinstance(models, dict) else None
    given = list(models) if isinstance(models, list | tuple | set | dict) else [models]
    words = [repr(thing) if isinstance(thing, str) else name_object(thing) for thing in given]
    shown = f"{{{', '.join(words)}}}" if named else f"[{', '.join(words)}]"
    edits = f"recipe={recipe!r}" if isinstance(recipe, str) else f"edits=[{', '.join(_list_edits(recipe))}]"
    return f"counterfoil.run(images={str(source.images)!r}, models={shown}, {edits})"


def _list_edits(recipe: Recipe) -> list[str]:
    return list(dict.fromkeys(repr(step.edit) for step in recipe.edits))
