"""Shared failures, from a workspace to what is kept of it."""

from counterfoil.pipeline.mining.job import MiningJob
from counterfoil.pipeline.mining.mining import run_mining

__all__ = ["MiningJob", "run_mining"]
