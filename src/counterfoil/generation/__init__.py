"""Whole pictures from prompts, and their quality control."""
