"""Does the headline stay when photos are dropped one by one?

    python bench/headline_stability.py RUN      # a finished run, such as that of `counterfoil demo`
    python bench/headline_stability.py planted  # models whose losses are known, over simulated photos

For every model, every photo is left out in turn and the verdicts are made anew. A case is decided where the full table
names one attribute that nothing ties with; then the same attribute must lead without any one photo.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from counterfoil.statistics.answers import Answers, Condition
from counterfoil.statistics.attribute_verdicts import judge_attributes
from counterfoil.statistics.drops import measure_drops
from counterfoil.study.runs import open_runs
from counterfoil.types import EditLevel

PHOTOS = (60, 120, 240, 480)
SEEDS = 10
LOSSES = {  # of a planted model, in points: the first clearly more than the others, or near them
    "one large": {"size": 35, "background": 12, "direction": 8, "colour": 4, "blur": 2, "position": 0},
    "two alike": {"size": 28, "background": 25, "direction": 8, "colour": 4, "blur": 2, "position": 0},
    "none": {"size": 0, "background": 0, "direction": 0, "colour": 0, "blur": 0, "position": 0},
}


class Headline(NamedTuple):
    """What the headline of one model says, numbers apart."""

    leads: str  # the attribute that costs most, "" where none is clear
    ties: frozenset[str]

    @property
    def is_decided(self) -> bool:
        """Whether one attribute leads and nothing ties with it."""
        return bool(self.leads) and not self.ties


class Count(NamedTuple):
    """Photos left out, and how often the headline stayed."""

    cases: int
    same_lead: int
    same_words: int


def read_headlines(answers: Answers, main: Mapping[str, EditLevel]) -> dict[str, Headline]:
    verdicts = judge_attributes(answers, measure_drops(answers), main)
    headlines = {}
    for model in answers.models:
        own = [row for row in verdicts if row.model == model]
        leads = next((row.attribute for row in own if row.is_costliest), "")
        headlines[model] = Headline(leads, frozenset(row.attribute for row in own if row.ties_costliest))
    return headlines


def leave_out(answers: Answers, photo: int) -> Answers:
    kept = answers.sample != photo
    columns = {
        name: getattr(answers, name)[kept]
        for name in ("model", "condition", "replicate", "correct", "scored", "object_share")
    }
    sample = answers.sample[kept]
    return replace(
        answers,
        samples=(*answers.samples[:photo], *answers.samples[photo + 1 :]),
        sample=sample - (sample > photo),
        **columns,
    )


def count_changes(answers: Answers, main: Mapping[str, EditLevel]) -> dict[str, tuple[Headline, Count]]:
    full = read_headlines(answers, main)
    without = [read_headlines(leave_out(answers, photo), main) for photo in range(len(answers.samples))]
    return {
        model: (
            headline,
            Count(
                len(without),
                sum(row[model].leads == headline.leads for row in without),
                sum(row[model] == headline for row in without),
            ),
        )
        for model, headline in full.items()
    }


def plant(losses: Mapping[str, float], photos: int, rng: np.random.Generator) -> Answers:
    """Answers of one model that is right on 85 % of the photos; each attribute flips that share of its right ones."""
    conditions = (Condition("original", "original", ""), *(Condition(name, name, "") for name in losses))
    right = rng.random(photos) < 0.85
    rows = [right, *(right & (rng.random(photos) >= loss / 85) for loss in losses.values())]
    n = photos * len(conditions)
    return Answers(
        models=("planted",),
        conditions=conditions,
        samples=tuple(str(photo) for photo in range(photos)),
        model=np.zeros(n, np.intp),
        condition=np.repeat(np.arange(len(conditions)), photos),
        sample=np.tile(np.arange(photos), len(conditions)),
        replicate=np.zeros(n, np.intp),
        correct=np.concatenate(rows),
        scored=np.ones(n, bool),
        object_share=np.full(n, np.nan),
    )


def study_run(folder: str) -> None:
    study = open_runs([folder])
    for model, (headline, count) in count_changes(study.checked_answers, study.main_edits).items():
        state = "decided" if headline.is_decided else f"tied with {len(headline.ties)}" if headline.leads else "no lead"
        print(
            f"{model}: {headline.leads or 'nothing clear'} ({state}), {count.cases} photos left out one by one: same"
            f" attribute leads in {count.same_lead} ({100 * count.same_lead / count.cases:.1f} %), same words in"
            f" {count.same_words} ({100 * count.same_words / count.cases:.1f} %)"
        )


def study_planted() -> None:
    print("losses       photos  decided runs  same attribute  same words | other runs  same attribute")
    for name, losses in LOSSES.items():
        main = {attribute: EditLevel(attribute, "") for attribute in losses}
        for photos in PHOTOS:
            found = [
                count_changes(plant(losses, photos, np.random.default_rng(seed)), main)["planted"]
                for seed in range(SEEDS)
            ]
            decided = [count for headline, count in found if headline.is_decided]
            others = [count for headline, count in found if not headline.is_decided]
            print(
                f"{name:12} {photos:6} {len(decided):9} of {SEEDS} {share(decided, 1):>14} {share(decided, 2):>11} |"
                f" {len(others):10} {share(others, 1):>15}"
            )


def share(counts: list[Count], field: int) -> str:
    cases = sum(count.cases for count in counts)
    return f"{100 * sum(count[field] for count in counts) / cases:.1f} %" if cases else "-"


if __name__ == "__main__":
    study_planted() if sys.argv[1:] == ["planted"] else study_run(sys.argv[1])
