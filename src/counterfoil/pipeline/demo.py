"""The demo: real photos and real networks out of the package index."""

from __future__ import annotations

from counterfoil.pipeline.job import Job
from counterfoil.source import DemoSource

MODELS = ("embedded:efficientnet-lite0", "embedded:efficientnet-lite2", "embedded:pp-lcnetv2")


def demo_job(limit: int | None, workers: int | None, command: str) -> Job:
    """Three networks of two families over the demo photos."""
    return Job(DemoSource(), MODELS, "attributes", limit, workers, command=command)
