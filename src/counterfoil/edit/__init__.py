"""One file per attribute; the catalogue knows them all by name."""

from counterfoil.edit.catalogue import EDITS, edit_named, name_of, settings_of
from counterfoil.edit.matting import soft_alpha

__all__ = ["EDITS", "edit_named", "name_of", "settings_of", "soft_alpha"]
