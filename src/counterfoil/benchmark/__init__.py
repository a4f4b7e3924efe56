"""Frozen benchmarks: picture selection, layouts, metadata, integrity check, version comparison."""
