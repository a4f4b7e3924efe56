from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.statistics.agreement import Ratings, collect_ratings
from counterfoil.statistics.annotators import (
    UNDECIDED,
    DecisionRule,
    ExclusionRule,
    RuleName,
    dawid_skene,
    decide_pictures,
    exclude_annotators,
    rate_annotators,
)
from counterfoil.types import Decision, Verdict

KEEP_IF = {"seen": "yes", "only": "yes"}


def said(variant: str, seen: str, only: str = "") -> list[Verdict]:
    """One letter per annotator: y, n or u for unsure; a dot where there is no answer."""
    words = {"y": "yes", "n": "no", "u": "unsure"}
    texts = {"seen": seen, "only": only or "y" * len(seen)}
    return [
        Verdict(variant_id=variant, annotator=f"a{place}", question=question, answer=words[letter], seconds=2.0)
        for question, letters in texts.items()
        for place, letter in enumerate(letters)
        if letter != "."
    ]


def decided(rows: list[Verdict], name: RuleName = "majority", *, fewest: int = 1) -> dict[str, Decision]:
    return {row.variant_id: row for row in decide_pictures(rows, KEEP_IF, DecisionRule(name, fewest))}


def test_a_majority_keeps_where_every_question_is_answered_as_wanted() -> None:
    rows = [*said("good", "yyn"), *said("hidden", "nny"), *said("several", "yyy", "nnu")]
    found = decided(rows)
    assert [found[name].kept for name in ("good", "hidden", "several")] == [True, False, False]
    assert found["several"].decided == {"seen": "yes", "only": "no"}
    assert found["several"].answers == {"seen": {"yes": 3}, "only": {"no": 2, "unsure": 1}}


def test_ties_and_too_few_answers_stay_undecided_and_are_not_kept() -> None:
    rows = [*said("tie", "yn"), *said("split", "ynu"), *said("few", "yy"), *said("enough", "yyy")]
    assert decided(rows)["tie"].decided["seen"] == UNDECIDED
    assert decided(rows)["split"].decided["seen"] == UNDECIDED
    assert decided(rows)["few"].kept
    strict = decided(rows, fewest=3)
    assert strict["few"].decided == {"seen": UNDECIDED, "only": UNDECIDED}
    assert [name for name, row in strict.items() if row.kept] == ["enough"]


def test_unanimity_needs_every_annotator() -> None:
    found = decided([*said("all", "yyy"), *said("most", "yyn")], "unanimity")
    assert found["all"].kept
    assert found["most"].decided["seen"] == UNDECIDED


def test_hidden_controls_are_no_pictures_of_the_work() -> None:
    rows = [
        *said("picture", "yyy"),
        Verdict(variant_id="known", annotator="a0", question="seen", answer="no", seconds=1.0, control="bad"),
    ]
    assert list(decided(rows)) == ["picture"]


def test_a_question_that_keeps_nothing_is_decided_all_the_same() -> None:
    rows = [
        *said("picture", "yyy"),
        *(
            Verdict(variant_id="picture", annotator=f"a{i}", question="sharp", answer="no", seconds=2.0)
            for i in range(3)
        ),
    ]
    assert decided(rows)["picture"].kept
    assert decided(rows)["picture"].decided["sharp"] == "no"


def test_impossible_rules_are_refused() -> None:
    with pytest.raises(UserError, match="majority, unanimity, dawid-skene"):
        DecisionRule("loudest")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="at least 1 answer"):
        DecisionRule(fewest=0)
    with pytest.raises(UserError, match=r"certainty from 0\.5"):
        DecisionRule(certainty=1.0)


def simulated(seed: int, pictures: int = 600) -> tuple[Ratings, NDArray[np.intp], NDArray[np.float64]]:
    """Two careful annotators and three who mostly say yes, answers missing at random; truth and errors are known."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(pictures) < 0.4).astype(np.intp)
    careful, lazy = [[0.95, 0.05], [0.08, 0.92]], [[0.9, 0.1], [0.75, 0.25]]
    errors = np.array([careful, careful, lazy, lazy, lazy])
    codes = (rng.random((pictures, 5)) < errors[:, truth, 1].T).astype(np.intp)
    codes[rng.random(codes.shape) < 0.1] = -1
    names = tuple(f"p{i}" for i in range(pictures))
    return Ratings(names, tuple(f"a{i}" for i in range(5)), ("yes", "no"), codes), truth, errors


def test_dawid_and_skene_find_the_planted_shares_and_beat_the_majority() -> None:
    ratings, truth, _ = simulated(5, 4000)
    beliefs = dawid_skene(ratings)
    np.testing.assert_allclose(beliefs.mean(axis=0), [0.6, 0.4], atol=0.05)
    by_model = (beliefs.argmax(axis=1) == truth).mean()
    by_majority = (ratings.counts.argmax(axis=1) == truth).mean()
    assert by_model > 0.93
    assert by_majority < 0.85


def test_the_decision_by_dawid_and_skene_follows_the_careful_annotators() -> None:
    ratings, truth, _ = simulated(6)
    rows = [
        Verdict(variant_id=picture, annotator=annotator, question="seen", answer=ratings.answers[code], seconds=2.0)
        for picture, codes in zip(ratings.pictures, ratings.codes, strict=True)
        for annotator, code in zip(ratings.annotators, codes, strict=True)
        if code >= 0
    ]
    found = decide_pictures(rows, {"seen": "yes"}, DecisionRule("dawid-skene"))
    right = [row.kept == (truth[int(row.variant_id[1:])] == 0) for row in found]
    assert np.mean(right) > 0.93
    doubtful = decide_pictures(rows, {"seen": "yes"}, DecisionRule("dawid-skene", certainty=0.999))
    assert any(row.decided["seen"] == UNDECIDED for row in doubtful)


def test_two_annotators_who_always_contradict_each_other_leave_dawid_and_skene_undecided() -> None:
    found = decided([row for i in range(6) for row in said(f"p{i}", "yn", "yn")], "dawid-skene")
    assert {row.decided["seen"] for row in found.values()} == {UNDECIDED}


@pytest.mark.parametrize("seed", range(3))
def test_dawid_and_skene_name_answers_as_most_of_the_answers_do(seed: int) -> None:
    """Two careful annotators and three who mostly say the opposite: EM settles where the truth is turned round."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(400) < 0.35).astype(np.intp)
    right = np.array([0.98, 0.9, 0.2, 0.2, 0.3])
    codes = np.where(rng.random((400, 5)) < right, truth[:, None], 1 - truth[:, None])
    found = dawid_skene(Ratings(tuple(map(str, range(400))), tuple("abcde"), ("yes", "no"), codes))
    assert (found.argmax(axis=1) == truth).mean() > 0.95


@pytest.mark.parametrize("answers", ["y", "yy", "nnn", "uu"])
def test_dawid_and_skene_believe_one_annotator_and_those_who_always_say_the_same(answers: str) -> None:
    found = decided([row for i in range(4) for row in said(f"p{i}", answers, answers)], "dawid-skene")
    told = {"y": "yes", "n": "no", "u": "unsure"}[answers[0]]
    assert {row.decided["seen"] for row in found.values()} == {told}
    assert {row.kept for row in found.values()} == {told == "yes"}


def test_exclusion_by_controls_looks_at_nothing_that_agreement_is_measured_on() -> None:
    """Whoever disagrees with everybody, but judges the controls rightly, stays; the other way round, goes."""
    rows = [*controls("loner", "yyy", "nnn"), *controls("follower", "nnn", "yyy"), *controls("third", "yyy", "nnn")]
    rows += [
        Verdict(
            variant_id=f"v{i}", annotator=name, question="seen", answer="no" if name == "loner" else "yes", seconds=2.0
        )
        for i in range(6)
        for name in ("loner", "follower", "third")
    ]
    out = exclude_annotators(rate_annotators(rows, KEEP_IF), ExclusionRule(control_accuracy=0.7))
    assert set(out) == {"follower"}
    work = [row for row in rows if not row.control]
    assert collect_ratings(rows, "seen").codes.tolist() == collect_ratings(work, "seen").codes.tolist()


def believed_by_hand(codes: NDArray[np.intp], answers: int, rounds: int) -> list[list[float]]:
    """Dawid and Skene's equations, answer by answer in plain loops."""
    beliefs = [[sum(code == true for code in row) / sum(code >= 0 for code in row) for true in range(answers)]
               for row in codes]  # fmt: skip
    for _ in range(rounds):
        often = [sum(row[true] for row in beliefs) / len(beliefs) for true in range(answers)]
        errors = {
            (who, true, said): sum(row[true] for row, given in zip(beliefs, codes, strict=True) if given[who] == said)
            / max(1e-10, sum(row[true] for row, given in zip(beliefs, codes, strict=True) if given[who] >= 0))
            for who in range(codes.shape[1]) for true in range(answers) for said in range(answers)
        }  # fmt: skip
        for row, given in zip(beliefs, codes, strict=True):
            likely = [
                often[true] * math.prod(errors[who, true, said] for who, said in enumerate(given) if said >= 0)
                for true in range(answers)
            ]
            row[:] = [value / sum(likely) for value in likely]
    return beliefs


def test_dawid_and_skene_believe_what_their_equations_say() -> None:
    ratings, _, _ = simulated(1, 60)
    found = dawid_skene(ratings)
    np.testing.assert_allclose(found, believed_by_hand(ratings.codes, 2, 200), atol=5e-3)


@pytest.mark.parametrize("seed", range(3))
def test_dawid_and_skene_believe_what_crowd_kit_believes(seed: int) -> None:
    aggregation = pytest.importorskip("crowdkit.aggregation")
    pandas = pytest.importorskip("pandas")
    ratings, _, _ = simulated(seed, 120)
    rows = [
        (picture, annotator, ratings.answers[code])
        for picture, codes in zip(ratings.pictures, ratings.codes, strict=True)
        for annotator, code in zip(ratings.annotators, codes, strict=True)
        if code >= 0
    ]
    settled = aggregation.DawidSkene(n_iter=300, tol=-np.inf)  # its own rule may stop it early
    model = settled.fit(pandas.DataFrame(rows, columns=["task", "worker", "label"]))
    expected = model.probas_.loc[list(ratings.pictures), list(ratings.answers)].to_numpy()
    np.testing.assert_allclose(dawid_skene(ratings), expected, atol=5e-3)


def controls(annotator: str, good: str, bad: str) -> list[Verdict]:
    """One letter per control picture, the answer to "seen"; "only" is always answered yes."""
    kinds: list[tuple[Literal["good", "bad"], str]] = [("good", good), ("bad", bad)]
    return [
        Verdict(
            variant_id=f"{kind}{place}",
            annotator=annotator,
            question=question,
            answer="no" if letter == "n" and question == "seen" else "yes",
            seconds=2.0,
            control=kind,
        )
        for kind, letters in kinds
        for place, letter in enumerate(letters)
        for question in KEEP_IF
    ]


def test_controls_repeats_and_speed_measure_each_annotator() -> None:
    rows = [
        *controls("ann", "yyn", "nny"),
        Verdict(variant_id="v", annotator="ann", question="seen", answer="yes", seconds=8.0),
        Verdict(variant_id="w", annotator="ann", question="seen", answer="yes", seconds=8.0),
        Verdict(variant_id="v", annotator="ann", question="seen", answer="no", seconds=2.0, control="repeat"),
        Verdict(variant_id="w", annotator="ann", question="seen", answer="yes", seconds=2.0, control="repeat"),
    ]
    (ann,) = rate_annotators(rows, KEEP_IF)
    assert (ann.controls_right, ann.controls, ann.repeats_same, ann.repeats) == (4, 6, 1, 2)
    assert ann.control_accuracy == pytest.approx(2 / 3)
    assert ann.median_seconds == 2.0
    assert ann.answers == 2


def test_annotators_are_excluded_by_rule_and_the_reason_is_told() -> None:
    rows = [*controls("ann", "yyy", "nnn"), *controls("bob", "nnn", "yyn"), *controls("new", "n", "")]
    rows += [
        Verdict(variant_id=f"v{i}", annotator="fast", question="seen", answer="yes", seconds=0.2) for i in range(4)
    ]
    rows += [Verdict(variant_id=f"v{i}", annotator="eve", question="seen", answer="yes", seconds=3.0) for i in range(4)]
    rows += [
        Verdict(variant_id=f"v{i}", annotator="eve", question="seen", answer="no", seconds=3.0, control="repeat")
        for i in range(4)
    ]
    qualities = rate_annotators(rows, KEEP_IF)
    rule = ExclusionRule(control_accuracy=0.7, repeat_consistency=0.7, seconds=0.5)
    assert exclude_annotators(qualities, rule) == {
        "bob": "1 of 6 control pictures judged right",
        "eve": "0 of 4 repeated questions answered as before",
        "fast": "median of 0.2 seconds per answer",
    }
    assert exclude_annotators(qualities, ExclusionRule()) == {}
    with pytest.raises(UserError, match="between 0 and 1, got 70"):
        ExclusionRule(control_accuracy=70)


def test_ratings_of_a_question_nobody_answered_are_empty() -> None:
    assert collect_ratings(said("picture", "y"), "sharp").pictures == ()
