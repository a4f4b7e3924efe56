"""ImageNet-E's tables: accuracies by folder, drops against the originals and their mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from counterfoil.published.condition_scores import (
    collect_notes,
    describe_missing,
    drop_empty,
    present_kinds,
    score_top1,
)
from counterfoil.published.imagenet_e.reader import KINDS
from counterfoil.report.content import PaperTable
from counterfoil.statistics.drops import mean_drops
from counterfoil.study.runs import Study

COLUMNS = {  # the paper's columns, by folder
    "ori": "original", "rec": "Inver", "20_smooth": "lambda -20", "20_hard": "lambda 20", "20_adv": "lambda 20-adv",
    "random_bg": "random background", "full": "full", "01": "size 0.1", "008": "size 0.08", "005": "size 0.05",
    "rp": "random position", "rd": "random direction",
}  # fmt: skip
_NO_DROP = {"original", "control"}
_SEED = 0  # of the resampled interval: the same answers give the same table


def tables(study: Study) -> Sequence[PaperTable]:
    """Accuracies by folder, and the drops."""
    return [_accuracies(study), _drops(study)]


def _accuracies(study: Study) -> PaperTable:
    scores, kinds = score_top1(study), present_kinds(study, KINDS)
    rows = [(model, *(scores.accuracy(model, [kind]) for kind in kinds.values())) for model in study.files]
    return PaperTable(
        title="ImageNet-E, accuracy",
        rule="Top-1 in percent over the pictures of each folder.",
        columns=("model", *(COLUMNS[name] for name in kinds)),
        rows=tuple(rows),
        footnotes=collect_notes(study),
    )


def _drops(study: Study) -> PaperTable:
    kinds = {name: kind for name, kind in present_kinds(study, KINDS).items() if name != "ori"}
    drops = {(row.model, row.edit, row.level): row.drop for row in study.drops}
    means = {row.model: row.drop for row in mean_drops(study.answers, np.random.default_rng(_SEED), leave_out=_NO_DROP)}
    rows = [
        (
            model,
            *(drops.get((model, kind.edit, kind.level)) for kind in kinds.values()),
            means[model].value, means[model].ci_low, means[model].ci_high,
        )
        for model in study.files
    ]  # fmt: skip
    return PaperTable(
        title="ImageNet-E, drops",
        rule="Drop = top-1 on ori minus top-1 on the kind, over the same pictures, in points; the mean is over all"
        " kinds but Inver (rec), which shows what the editing tool itself costs.",
        columns=(
            "model",
            *(f"drop, {COLUMNS[name]}" for name in kinds),
            "mean drop",
            "mean drop, low",
            "mean drop, high",
        ),
        rows=tuple(rows),
        footnotes=drop_empty(describe_missing(study, KINDS, "the mean")),
    )
