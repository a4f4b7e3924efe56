"""Words for a picture: a template filled with a category and a value."""

from __future__ import annotations

_VOWELS = "aeiou"


def with_article(name: str) -> str:
    """A name with "a" or "an" before it."""
    return f"{'an' if name[:1].lower() in _VOWELS else 'a'} {name}"


def prompt_of(template: str, category: str, value: str = "") -> str:
    """The template with the category and the value in their places, each with its article where that is asked for."""
    return template.format(
        category=category, a_category=with_article(category), value=value, a_value=with_article(value)
    )


def spoken(name: str) -> str:
    """A label's name as one says it: "pop_can" is "pop can"."""
    return " ".join(name.replace("_", " ").split())
