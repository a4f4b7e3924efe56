"""One file per attribute; the catalogue knows them all by name."""

from counterfoil.edit.base import Edit, Needs, Resolution, Subject, Supplied
from counterfoil.edit.catalogue import EDITS, describe_edit, edit_named, name_of, settings_of
from counterfoil.edit.matting import soft_alpha

__all__ = [
    "EDITS", "Edit", "Needs", "Resolution", "Subject", "Supplied", "describe_edit", "edit_named", "name_of",
    "settings_of", "soft_alpha",
]  # fmt: skip
