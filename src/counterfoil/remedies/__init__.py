"""Remedies: make a better model of one that edits break, and judge it on photos that it has not seen."""
