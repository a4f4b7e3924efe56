"""Recipes: which edits at which levels, and which prompts."""
