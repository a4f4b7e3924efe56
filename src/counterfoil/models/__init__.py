"""Models, loaded by address and run in batches, and their predictions."""
