"""Answers of networks that were asked about the same pictures before, from the cache of results.

Only ONNX networks in full precision that ONNX Runtime runs on the CPU: they are asked one picture at a time and answer
the same picture with the same bits. Endpoints, Python functions and networks in other libraries are always asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.models.inference import predict
from counterfoil.models.onnx_classifier import OnnxClassifier, OnnxRun
from counterfoil.models.reloadable_model import release_beyond_group
from counterfoil.models.setup_trials import TrialPhoto, check_setups
from counterfoil.store.prediction_tables import RenderedVariant, parse_sanity
from counterfoil.store.result_cache import ResultCache, Stored, name_result
from counterfoil.types import Model, Prediction, Sample, SanityRecord


def gives_same_bits(model: Model) -> bool:
    """Whether a model answers a picture the same whenever it is asked, so that its answer may be stored."""
    if model.retryable or model.usage is not None or not model.gives_scores or model.note:
        return False
    base = model.base
    return isinstance(base, OnnxClassifier) and base.how == OnnxRun() and base.original is None


def predict_once(
    model: Model, shown: Sequence[RenderedVariant], images: Sequence[NDArray[np.uint8]], batch_size: int,
    cache: ResultCache,
) -> list[Prediction]:  # fmt: skip
    """The model's answers to these pictures, in order; asked, or stored when it was."""
    variants = [one.variant for one in shown]
    if not (cache.is_lasting and gives_same_bits(model)):
        return predict(model, variants, images, batch_size)
    return cache.once(
        _name_answers(model, shown), lambda: predict(model, variants, images, batch_size),
        _store_answers, lambda stored: _read_answers(stored, shown),
    )  # fmt: skip


def recall_answers(model: Model, shown: Sequence[RenderedVariant], cache: ResultCache) -> list[Prediction] | None:
    """The stored answers of a model that gives the same bits to these pictures; None where it has to be asked."""
    stored = cache.recall(_name_answers(model, shown))
    return None if stored is None else _read_answers(stored, shown)


def _name_answers(model: Model, shown: Sequence[RenderedVariant]) -> str:
    return name_result("answers", model.identity, [(one.sha256, one.variant.label) for one in shown])


def _read_answers(stored: Stored, shown: Sequence[RenderedVariant]) -> list[Prediction]:
    return [
        Prediction(one.variant.id, tuple(ranked), tuple(scores), *rest)
        for one, (ranked, scores, *rest) in zip(shown, stored.facts, strict=True)
    ]


def _store_answers(predictions: Sequence[Prediction]) -> Stored:
    rows = [[row.ranked, row.scores, row.true_score, row.outcome, row.text] for row in predictions]
    return Stored(rows)


def check_setups_once(
    models: Sequence[Model], photos: Sequence[TrialPhoto], samples: Sequence[Sample], cache: ResultCache,
    threads: int = 1,
) -> dict[str, SanityRecord]:  # fmt: skip
    """What other set-ups of each model give on the photos of these samples; tried, or stored when they were."""
    records: dict[str, SanityRecord] = {}
    about = [(sample.digest, sample.label) for sample in samples]
    for model in models:
        if not (cache.is_lasting and gives_same_bits(model)):
            records |= check_setups([model], photos, threads)
            release_beyond_group(models)
            continue
        stored = cache.once(
            name_result("set-ups", model.identity, about), partial(_try_setups, model, photos, threads),
            Stored, lambda stored: stored.facts,
        )  # fmt: skip
        records[model.name] = parse_sanity(stored)
        release_beyond_group(models)
    return records


def _try_setups(model: Model, photos: Sequence[TrialPhoto], threads: int) -> dict[str, Any]:
    return asdict(check_setups([model], photos, threads)[model.name])
