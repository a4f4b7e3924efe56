"""What cutting, pasting and filling cost, pooled over runs and their models, and whether a limit is shown.

    python bench/editing_cost.py RUN [RUN ...] [--edits control fill-control] [--most 2] [--masks accepted]

Points of accuracy against the unedited photo. A photo is one unit, however many models answered it, so the answers of
several models narrow the interval only as far as they differ. `shown`: the whole interval is at most the limit;
`contradicted`: the whole interval is above it. `--masks accepted` leaves out photos whose found mask a test doubts.
`--measure certainty`: points of certainty of the right class instead, which few photos tell better than flips do.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import Answers
from counterfoil.statistics.intervals import score_interval
from counterfoil.store.parquet import read_table
from counterfoil.store.prediction_tables import locate_predictions
from counterfoil.study.runs import open_runs

ORIGINAL = "original"


def main() -> None:
    """Print one line per edit and model, and one per edit for all models."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--edits", nargs="+", default=["control", "fill-control"])
    parser.add_argument("--most", type=float, default=2.0, help="points that an edit may cost")
    parser.add_argument("--masks", choices=["all", "accepted", "doubtful"], default="all")
    parser.add_argument("--measure", choices=["accuracy", "certainty"], default="accuracy")
    asked = parser.parse_args()
    print(f"| edit | model | photos | lost, won | points | 95 % | at most {asked.most:g} |")
    print("|---|---|--:|---|--:|---|---|")
    for edit in asked.edits:
        tables = [read_losses(run, edit, asked.masks, asked.measure) for run in asked.runs]
        models = sorted({model for table in tables for model in table})
        pooled = []
        for model in models:
            losses = np.concatenate([table[model] for table in tables if model in table])
            print(describe(edit, model, losses, asked.most))
        for table in tables:
            pooled.append(np.nanmean(np.stack(list(table.values())), axis=0) if table else np.empty(0))
        if len(models) > 1:
            print(describe(edit, "all", np.concatenate(pooled), asked.most))


def read_losses(run: Path, edit: str, masks: str, measure: str = "accuracy") -> dict[str, NDArray[np.float64]]:
    """By model, the loss of each photo that has the edit: right (or certain of it) before, minus after."""
    study = open_runs([str(run)])
    answers, verdicts = study.checked_answers, {mask.sample: mask.verdict for mask in study.masks}
    edits = [condition.edit for condition in answers.conditions]
    if edit not in edits:
        return {}
    if measure == "accuracy":
        before, after = answers.rates[:, edits.index(ORIGINAL)], answers.rates[:, edits.index(edit)]
    else:
        before, after = (read_certainty(run, answers, name) for name in (ORIGINAL, edit))
    losses = before - after
    wanted = np.array([masks == "all" or verdicts.get(sample) == masks for sample in answers.samples])
    used = wanted & np.isfinite(losses).all(axis=0)
    return {model: row[used] for model, row in zip(answers.models, losses, strict=True)}


def read_certainty(run: Path, answers: Answers, edit: str) -> NDArray[np.float64]:
    """The certainty of the right class under an edit, (models, samples); NaN where there is none."""
    places = {sample: place for place, sample in enumerate(answers.samples)}
    certainty = np.full((len(answers.models), len(places)), np.nan)
    for model, path in enumerate(locate_predictions(run, answers.models).values()):
        table = read_table(path, ["sample_id", "edit", "true_score"])
        rows = zip(*(table[name].tolist() for name in ("sample_id", "edit", "true_score")), strict=True)
        for sample, name, score in rows:
            if name == edit:
                certainty[model, places[sample]] = score
    return certainty


def describe(edit: str, model: str, losses: NDArray[np.float64], most: float) -> str:
    """One row of the table."""
    low, high = score_interval(losses).scaled(100)
    verdict = "shown" if high <= most else "contradicted" if low > most else "not shown"
    one_sided = score_interval(losses, confidence=0.9).high * 100
    return (
        f"| {edit} | {model} | {len(losses)} | {_count(losses > 0)}, {_count(losses < 0)} | {100 * losses.mean():.1f} |"
        f" [{low:.1f}, {high:.1f}] | {verdict}; one-sided up to {one_sided:.1f} |"
    )


def _count(flags: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(flags))


if __name__ == "__main__":
    main()
