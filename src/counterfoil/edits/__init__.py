"""Edits, about one file per attribute, and a registry of all by name."""
