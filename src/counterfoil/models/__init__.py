"""Models: loaded by address, asked in batches, answers as predictions."""
