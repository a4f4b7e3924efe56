"""Verification of pictures by people: the web service, assignment of pictures, decisions, export and import.

The web framework and the database come with the extra `web` and are imported only when a command needs them.
"""
