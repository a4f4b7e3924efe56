"""A finished run read back, each table once."""
