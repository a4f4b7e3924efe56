"""Finished runs read back; each table is read once."""
