"""Models by address: a name says where the weights are, the model says how it wants its pictures."""

from counterfoil.models.address import ADDRESSES, load_model, model_schemes
from counterfoil.models.options import DEFAULT_TEMPLATES, ModelOptions, Precision, Runtime
from counterfoil.models.prompts import read_templates
from counterfoil.models.scoring import Scoring, scored

__all__ = [
    "ADDRESSES", "DEFAULT_TEMPLATES", "ModelOptions", "Precision", "Runtime", "Scoring", "load_model",
    "model_schemes", "read_templates", "scored",
]  # fmt: skip
