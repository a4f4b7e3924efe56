"""The whole way, start to end; `way.py` is the file to read first."""

from counterfoil.pipeline.demo import demo_job
from counterfoil.pipeline.job import Job
from counterfoil.pipeline.rebuilding import rebuild
from counterfoil.pipeline.result import Result
from counterfoil.pipeline.way import run, run_job

__all__ = ["Job", "Result", "demo_job", "rebuild", "run", "run_job"]
