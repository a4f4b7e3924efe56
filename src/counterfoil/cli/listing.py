"""What there is: edits, recipes, models, sources, and the version."""

from __future__ import annotations

from collections.abc import Callable

import click

from counterfoil import __version__
from counterfoil.edit import EDITS
from counterfoil.models import model_schemes
from counterfoil.paint.address import painter_schemes
from counterfoil.recipes import load_recipe, recipe_names
from counterfoil.recipes.painting import load_painting, painting_names
from counterfoil.source import source_schemes

_LISTS: dict[str, Callable[[], list[tuple[str, str]]]] = {
    "edits": lambda: [(name, (edit.__doc__ or "").split("\n")[0]) for name, edit in EDITS.items()],
    "recipes": lambda: [
        *((name, load_recipe(name).about) for name in recipe_names()),
        *((name, f"[paint] {load_painting(name).about}") for name in painting_names()),
    ],
    "models": lambda: [(f"{scheme}:", about) for scheme, about in model_schemes().items()],
    "painters": lambda: [(f"{scheme}:", about) for scheme, about in painter_schemes().items()],
    "sources": lambda: list(source_schemes().items()),
}


@click.command(name="list")
@click.argument("what", type=click.Choice(list(_LISTS)))
def list_(what: str) -> None:
    """List the edits, recipes, models, painters or sources there are."""
    rows = _LISTS[what]()
    width = max(len(name) for name, _ in rows)
    for name, about in rows:
        click.echo(f"{name:<{width}}  {about}")


@click.command()
def version() -> None:
    """Print the version."""
    click.echo(__version__)
