"""Which pictures the gallery shows where no original stands beside them: some that went wrong, a few that did not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse import Answers
from counterfoil.pipeline.recorded.examples import Pick, Room, in_turn, lot, variants_of
from counterfoil.pipeline.recorded.pictures import Album
from counterfoil.pipeline.recorded.study import Study
from counterfoil.report import Example, Reply

_WRONG, _RIGHT = Room(60, 18), Room(16, 4)
_POOL = 72  # pictures of an attribute from which those shown are chosen
_MOST_LOTS = 20_000  # answers that take part in the draw, spread over all of them


def lone_examples(study: Study, album: Album) -> Iterator[Example]:
    """The chosen pictures with what every model said, attributes in turn."""
    failed = _failed(study.answers)
    shown: Counter[str] = Counter()
    picks = [
        *in_turn(_drawn(study.answers, failed), _WRONG, shown),
        *in_turn(_drawn(study.answers, ~failed & study.answers.scored), _RIGHT, shown),
    ]
    variants = variants_of(study.manifest, set(picks))
    wanted = {variant.id for variant, _ in variants.values()}
    said = {model: table.first_answers(wanted) for model, table in study.predictions.items()}
    for pick in picks:
        variant, pixels = variants[pick]
        replies = [Reply(model, "", 0.0, *told[variant.id]) for model, told in said.items() if variant.id in told]
        yield Example(
            *pick.condition, pick.sample_id, variant.label, None, album.picture(variant, pixels), tuple(replies),
            paired=False,
        )  # fmt: skip


def _failed(answers: Answers) -> NDArray[np.bool_]:
    """Of each answer whether some model got its picture wrong."""
    shape = (len(answers.conditions), len(answers.samples), int(answers.replicate.max(initial=0)) + 1)
    picture = np.ravel_multi_index((answers.condition, answers.sample, answers.replicate), shape)
    wrong = np.zeros(int(np.prod(shape)), bool)
    wrong[picture[answers.scored & ~answers.correct]] = True
    return np.asarray(wrong[picture], bool)


def _drawn(answers: Answers, rows: NDArray[np.bool_]) -> list[Pick]:
    """A few pictures of each attribute, by lot."""
    groups: defaultdict[str, set[Pick]] = defaultdict(set)
    found = np.flatnonzero(rows)
    for row in found[:: 1 + len(found) // _MOST_LOTS]:
        condition = answers.conditions[answers.condition[row]]
        pick = Pick(answers.samples[answers.sample[row]], condition, int(answers.replicate[row]))
        groups[condition.attribute].add(pick)
    return [pick for picks in groups.values() for pick in sorted(picks, key=lot)[:_POOL]]
