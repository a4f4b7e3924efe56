"""Painters: models that make pictures or backgrounds from requests."""
