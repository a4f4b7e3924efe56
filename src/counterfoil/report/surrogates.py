"""Models that chose the pictures they are judged by: every report marks them."""

from __future__ import annotations

from counterfoil.types import Run

MARK = "surrogate"
MEANING = "surrogate: chose pictures by failing on them; its accuracy on those is low by construction"

_SHARED_DIGEST = "python:"  # the digest is of the whole file, which may hold several models


def surrogates_among(run: Run) -> tuple[str, ...]:
    """The models of a run that chose its pictures, known by name or by their weights."""
    return tuple(model for model in run.models if _is_surrogate(model, run))


def marked(model: str, surrogates: tuple[str, ...]) -> str:
    """A model's name in plain text, with its mark where it has one."""
    return f"{model} ({MARK})" if model in surrogates else model


def _is_surrogate(model: str, run: Run) -> bool:
    digest = run.model_digests.get(model, "")
    return any(
        _same_name(model, name) or (digest != "" and digest == weights and not _shares_a_file(model, name))
        for name, weights in run.surrogates.items()
    )


def _same_name(model: str, surrogate: str) -> bool:
    """The same address; what stands behind it in brackets says only which columns competed."""
    return model.split(" (")[0] == surrogate.split(" (")[0]


def _shares_a_file(model: str, surrogate: str) -> bool:
    return model.startswith(_SHARED_DIGEST) and surrogate.startswith(_SHARED_DIGEST)
