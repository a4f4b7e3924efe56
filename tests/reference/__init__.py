"""How the reference data of the tests was made."""
