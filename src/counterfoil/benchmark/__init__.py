"""A frozen benchmark: selection, layouts, metadata, integrity, versions."""
