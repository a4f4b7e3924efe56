"""Attributes in the words of a headline: what costs points, and when they are lost."""

from __future__ import annotations

from typing import NamedTuple

from counterfoil.report.words import capitalize_first, name_attribute
from counterfoil.types import Attribute


class AttributeWords(NamedTuple):
    """The words on one attribute: "Small objects cost A most", "A loses most when the object is small"."""

    subject: str
    when: str
    is_plural: bool = False

    @property
    def costs(self) -> str:
        """The verb after the subject."""
        return "cost" if self.is_plural else "costs"


_BROAD: frozenset[Attribute] = frozenset({"corruption", "light"})
_WORDS = {
    "background": AttributeWords("another background", "when the background changes"),
    "size": AttributeWords("small objects", "when the object is small", is_plural=True),
    "position": AttributeWords("moving the object", "when the object is moved"),
    "direction": AttributeWords("turning the object", "when the object is turned"),
    "colour": AttributeWords("losing colour", "when colour changes"),
    "blur": AttributeWords("blur", "when the object is blurred"),
    "texture": AttributeWords("another texture", "when the object's texture is replaced"),
    "material": AttributeWords("another material", "when the object's material is replaced"),
    "occlusion": AttributeWords("covered objects", "when the object is partly covered", is_plural=True),
    "shape": AttributeWords("silhouettes", "when only the object's shape is left", is_plural=True),
    "corruption": AttributeWords("corruption", "when the picture is corrupted"),
    "presence": AttributeWords("removing the object", "when the object is removed"),
    "combination": AttributeWords("two edits at once", "when two attributes change at once", is_plural=True),
}


def describe_attribute(attribute: Attribute) -> AttributeWords:
    """Return the words on an attribute; one of another package is called by its name."""
    name = name_attribute(attribute)
    return _WORDS.get(attribute, AttributeWords(name, f"to {name}"))


def is_broad(attribute: Attribute) -> bool:
    """Whether an attribute's words name many edits at once: noise is a corruption, and says nothing of the others."""
    return attribute in _BROAD


def capital_subject(attribute: Attribute) -> str:
    """Return the subject of a sentence on an attribute."""
    return capitalize_first(describe_attribute(attribute).subject)
