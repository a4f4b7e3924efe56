"""Torch models: from the libraries that make them to a classifier on a CPU or a GPU."""
