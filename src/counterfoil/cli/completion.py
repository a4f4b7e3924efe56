"""What a shell offers for an option's value: models, recipes, edits, attributes, sources, published archives.

Everything is imported when a shell asks, since the help must not wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem

_FILES = CompletionItem("", type="file")  # the shell's own completion of paths


def complete_model(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Offer the embedded networks and the schemes of addresses, also after NAME=."""
    from counterfoil.assets.embedded_networks import NETWORKS
    from counterfoil.models.model_loaders import list_model_schemes

    schemes = list_model_schemes()
    name, equals, address = typed.rpartition("=")
    embedded = [(f"embedded:{network}", "embedded network") for network in NETWORKS]
    offered = [*embedded, *((f"{scheme}:", about) for scheme, about in schemes.items() if scheme != "embedded")]
    return [CompletionItem(f"{name}{equals}{word}", help=about) for word, about in offered if word.startswith(address)]


def complete_recipe(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Offer the recipes by name, then files."""
    from counterfoil.recipes.edit_recipe import list_recipes
    from counterfoil.recipes.prompt_recipe import list_prompt_recipes

    return _begin_with(typed, [*list_recipes(), *list_prompt_recipes()]) or [_FILES]


def complete_edit(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Offer attributes and edits, each with the = that a bound follows."""
    from counterfoil.edits.registry import EDITS

    attributes = [str(edit.attribute) for edit in EDITS.values() if edit.attribute]
    return _begin_with(typed, [f"{name}=" for name in dict.fromkeys([*attributes, *EDITS, "any"])])


def complete_attribute(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Offer the attributes that edits change."""
    from counterfoil.edits.registry import EDITS

    return _begin_with(typed, dict.fromkeys(str(edit.attribute) for edit in EDITS.values() if edit.attribute))


def complete_source(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Offer the formats of photos, then folders."""
    from counterfoil.sources.source_loaders import list_source_schemes

    names = [name.partition(" ")[0] for name in list_source_schemes()]
    return _begin_with(typed, [f"{name.partition(':')[0]}:" for name in names if ":" in name]) or [_FILES]


def _begin_with(typed: str, words: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(word) for word in words if word.startswith(typed)]
