"""Finished pictures shown to models as they are: a workspace, a frozen benchmark, a published archive."""

from counterfoil.pipeline.collected.evaluating import evaluate_collection, run_evaluation
from counterfoil.pipeline.collected.opening import collection_at
from counterfoil.pipeline.collected.preparing import Evaluation
from counterfoil.pipeline.collected.workspace import WorkspaceCollection

__all__ = ["Evaluation", "WorkspaceCollection", "collection_at", "evaluate_collection", "run_evaluation"]
