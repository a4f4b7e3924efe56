"""Runs read back from their folders: reports made again, comparisons, without model or photo."""
