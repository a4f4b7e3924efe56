"""The whole way, start to end; `way.py` is the file to read first."""

from counterfoil.pipeline.building import build_job, png
from counterfoil.pipeline.collected import Evaluation, collection_at, evaluate_collection, run_evaluation
from counterfoil.pipeline.demo import demo_job, paint_demo
from counterfoil.pipeline.job import Job, source_at
from counterfoil.pipeline.rebuilding import rebuild
from counterfoil.pipeline.result import Result
from counterfoil.pipeline.way import run, run_job

__all__ = [
    "Evaluation", "Job", "Result", "build_job", "collection_at", "demo_job", "evaluate_collection", "paint_demo", "png",
    "rebuild", "run", "run_evaluation", "run_job", "source_at",
]  # fmt: skip
