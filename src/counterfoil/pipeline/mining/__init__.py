"""Shared failures, from a workspace to what is kept of it."""

from counterfoil.pipeline.mining.job import MiningJob
from counterfoil.pipeline.mining.mining import Mining, run_mining

__all__ = ["Mining", "MiningJob", "run_mining"]
