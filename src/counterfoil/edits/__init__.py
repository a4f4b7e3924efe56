"""Edits: one file per attribute, a registry of all by name."""
