"""Recipes: which edits at which levels make one study; one YAML per published design."""

from counterfoil.recipes.recipe import Recipe, Step, load_recipe, recipe_names

__all__ = ["Recipe", "Step", "load_recipe", "recipe_names"]
