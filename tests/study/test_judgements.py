"""Which models are judged, by their answers to unedited photos alone."""

from __future__ import annotations

import numpy as np
import pytest

from counterfoil.statistics.chance import binomial_tail, compare_with_chance
from counterfoil.study.judgements import (
    Judgement,
    UneditedAnswers,
    judge_chance,
    judge_model,
    judge_unpaired,
    status_of,
)
from counterfoil.types import SanityRecord, SetupTrial

NOTHING = SanityRecord()


def unedited(labels: np.ndarray, answers: np.ndarray, classes: int) -> UneditedAnswers:
    return UneditedAnswers(tuple(f"class {number}" for number in range(classes)), labels, answers)


def test_a_good_model_is_judged_and_a_guessing_one_is_not() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(8), 12)
    good = np.where(rng.random(96) < 0.7, labels, rng.integers(0, 8, 96))
    assert judge_model(unedited(labels, good, 8), NOTHING).verdict == "judged"
    verdicts = [judge_model(unedited(labels, rng.integers(0, 8, 96), 8), NOTHING).verdict for _ in range(50)]
    assert verdicts.count("not judged") >= 45
    assert verdicts.count("judged") <= 2


def test_with_few_photos_the_answer_is_cannot_tell() -> None:
    labels = np.arange(8) % 4
    judgement = judge_model(unedited(labels, np.zeros(8, np.intp), 4), NOTHING)
    assert judgement.verdict == "cannot tell"
    assert "too few photos" in judgement.reason
    assert judge_model(unedited(labels, labels, 4), NOTHING).verdict == "judged"


def test_no_answer_that_counts_is_not_judged_and_ends_with_a_status_of_its_own() -> None:
    nothing = np.zeros(0, np.intp)
    judgement = judge_model(unedited(nothing, nothing, 4), NOTHING)
    assert judgement.verdict == "not judged"
    assert judge_unpaired(np.array(["error", "error"], object)).verdict == "not judged"
    assert judge_unpaired(np.array(["error", "scored"], object)).verdict == "judged"
    guess = judge_model(unedited(np.arange(8) % 4, np.zeros(8, np.intp), 4), NOTHING)
    assert [status_of(rows) for rows in ([Judgement()], [Judgement(), guess], [guess, judgement])] == [0, 3, 4]


def test_labels_shifted_by_one_are_found_although_neighbours_make_some_right() -> None:
    """5 of 480 right by neighbouring breeds: p = 0.0001 against one of a thousand classes."""
    labels = np.repeat(np.arange(24), 20)
    answers = (labels + 1) % 24
    answers[:5] = labels[:5]
    judgement = judge_model(unedited(labels, answers, 24), SanityRecord(classes=1000))
    assert binomial_tail(5, 480, 0.001) < 0.001  # a test against one of a thousand classes alone finds nothing
    assert judgement.verdict == "not judged"
    assert "another order" in judgement.reason


def test_a_class_that_is_always_taken_for_its_neighbour_is_the_models_own_error() -> None:
    labels = np.repeat(np.arange(5), 20)
    answers = labels.copy()
    answers[labels == 3] = 7
    assert judge_model(unedited(labels, answers, 8), NOTHING).verdict == "judged"


def test_an_accuracy_with_nothing_to_lose_is_not_judged_where_drops_are_measured() -> None:
    labels = np.arange(480) % 240
    answers = np.where(np.arange(480) < 8, labels, (labels * 7 + 11) % 240)
    test = compare_with_chance(labels, answers, 1000)
    assert judge_chance(test) == "not judged"
    assert judge_chance(test, edited=False) == "judged"  # better than guessing, and nothing is measured against it


@pytest.mark.parametrize(("gained", "lost", "verdict"), [(30, 0, "not judged"), (4, 3, "judged"), (0, 9, "judged")])
def test_another_set_up_counts_only_where_it_is_far_ahead_and_no_accident(gained: int, lost: int, verdict: str) -> None:
    trial = SetupTrial(change="c", remedy="r", photos=48, gained=gained, lost=lost, right=10 + gained)
    record = SanityRecord(photos=48, right=10 + lost, classes=48, tried=12, trials=(trial,))
    labels = np.arange(48)
    answers = np.where(labels < 10 + lost, labels, 0)
    assert judge_model(unedited(labels, answers, 48), record).verdict == verdict
