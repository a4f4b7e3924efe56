"""Where failures concentrate: confusions, biases of the set, confidence, shared errors, other classes."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, NoReturn

import numpy as np

from counterfoil.analysis.evidence import (
    FEWEST_PHOTOS,
    SEED,
    Evidence,
    MeasuredNumber,
    NotJudged,
    Reply,
    join_clauses,
    measured,
    name_condition,
    replace_value,
    select_clear,
)
from counterfoil.mining.estimates import measure_spread
from counterfoil.report.words import format_number, join_words
from counterfoil.statistics.answers import NO_ATTRIBUTE
from counterfoil.statistics.calibration import ConfidenceChange
from counterfoil.statistics.class_variation import FEWEST_CLASSES, ClassPrediction, predict_new_class
from counterfoil.statistics.confusion import Confusion, donor_confusion, error_consistency, list_clear_confusions
from counterfoil.statistics.intervals import Estimate
from counterfoil.statistics.references import attribute_losses
from counterfoil.statistics.significance import SIGNIFICANCE, holm
from counterfoil.study.confidence import FEWEST_ANSWERS, measure_confidences

_MOST_CONFUSIONS = 30
_SINGULAR = {"classes": "class", "nuisances": "nuisance"}


def ask_failure_modes(evidence: Evidence) -> Reply:
    """Confusions with the background's, texture's or material's class, and pairs of classes."""
    evidence.require_originals()
    evidence.require_classes(2)
    evidence.require_attributes()
    wrong = evidence.answers.scored & ~evidence.answers.correct
    if not (evidence.details.answer[wrong] >= 0).any():
        raise NotJudged("what wrong answers say", "add a column `prediction` to the imported table")
    donor_numbers, donors = _name_donors(evidence)
    pairs = _find_pairs(evidence)
    return Reply(
        answer=(
            f"Wrong answers name the donor's class more often than by chance: {join_words(donors)}. "
            if donors
            else "No model was shown to name the donor's class more often than by chance. "
        )
        + (
            f"{len(pairs)} confusions of classes are beyond chance; the clearest: "
            f"{'; '.join(pair.describe(evidence.class_names) for pair in pairs[:3])}."
            if pairs
            else "No confusion of two classes is beyond chance."
        ),
        numbers=(*donor_numbers, *(pair.number(evidence.class_names) for pair in pairs[:_MOST_CONFUSIONS])),
        notes=(
            "Donor: the photo that lends its background or texture; by chance: donors shuffled among the same wrong"
            " answers. A confusion counts photos taken for a wrong class that the original was not taken for; Fisher's"
            " test, Benjamini and Hochberg over all pairs of a model. Donors: Holm over models and attributes.",
        ),
    )


def _name_donors(evidence: Evidence) -> tuple[list[MeasuredNumber], list[str]]:
    """How often wrong answers name the donor's class, and where that is more often than by chance."""
    numbers: list[MeasuredNumber] = []
    words, p_values = [], []
    for model, attribute in itertools.product(evidence.models, evidence.attributes):
        row = donor_confusion(evidence.details, model, attribute)
        if row.share.n < FEWEST_PHOTOS:
            continue
        named = measured(
            f"wrong answers that name the {attribute}'s donor class", model, row.share, "percent", of="wrong answers"
        )
        chance = replace_value(named, f"the same by chance, {attribute}", row.chance)
        numbers += [named, chance]
        words.append(f"{model} under {attribute} ({named.text}, by chance {format_number(row.chance)} %)")
        p_values.append(row.p_value)
    return numbers, [text for text, p in zip(words, holm(p_values), strict=True) if p < SIGNIFICANCE]


class _ConfusedPair(NamedTuple):
    """Two classes that a model confuses under an attribute."""

    model: str
    attribute: str
    confusion: Confusion

    def describe(self, names: Mapping[str, str]) -> str:
        """The confusion with the number of photos, and that by chance."""
        own = self.confusion
        return (
            f"{names[own.label]} for {names[own.answer]} ({self.model}, {self.attribute}: {own.photos} photos,"
            f" {format_number(own.expected)} by chance)"
        )

    def number(self, names: Mapping[str, str]) -> MeasuredNumber:
        """The photos that are confused."""
        own = self.confusion
        measure = f"{names[own.label]} taken for {names[own.answer]}, {self.attribute}"
        return MeasuredNumber(measure, self.model, float(own.photos), n=own.photos, decimals=0)


def _find_pairs(evidence: Evidence) -> list[_ConfusedPair]:
    """The confusions beyond chance, the clearest first."""
    pairs = [
        _ConfusedPair(model, attribute, own)
        for model in evidence.models
        for attribute, own in list_clear_confusions(evidence.details, model, evidence.attributes)
    ]
    return sorted(pairs, key=lambda pair: pair.confusion.p_value)


def ask_set_biases(evidence: Evidence) -> Reply:
    """How evenly the set is spread over classes and nuisances."""
    answers, label = evidence.answers, evidence.details.photo_labels
    numbers: list[MeasuredNumber] = []
    words = []
    conditions = [name_condition(condition) for condition in answers.conditions]
    pictures = np.unique(answers.picture, return_index=True)[1]
    nuisances = [conditions[c] for c in answers.condition[pictures] if answers.conditions[c].attribute != "original"]
    groups = {
        "classes": [evidence.class_names[evidence.details.labels[p]] for p in label if p >= 0],
        "nuisances": nuisances,
    }
    for over, members in groups.items():
        if not members:
            continue
        spread = measure_spread(members, members)
        count = partial(MeasuredNumber, model="", n=len(members), of="pictures")
        numbers += [
            count(f"{over}", value=float(spread.groups), decimals=0),
            count(f"evenness over {over}", value=spread.evenness, decimals=2),
            count(f"effective number of {over}", value=spread.effective),
            count(f"largest of {over}", value=100 * spread.largest, unit="percent"),
        ]
        first, many = Counter(members).most_common(1)[0]
        even = "" if math.isnan(spread.evenness) else f", evenness {format_number(spread.evenness, 2)}"
        words.append(
            f"{spread.groups} {over if spread.groups > 1 else _SINGULAR[over]}{even}, the largest is {first} with"
            f" {format_number(100 * many / len(members))} %"
        )
    if not words:
        raise NotJudged("classes or edits", "add a column `label` to the imported table")
    numbers += _class_range(evidence)
    return Reply(
        answer=f"The set has {'; '.join(words)} (evenness 1: all equal, 0: all in one).",
        numbers=tuple(numbers),
        notes=(
            "Evenness: entropy over its maximum; effective number: its exponential. A mean over an uneven set is mostly"
            " about its large classes. Whether photos are biased in other ways (country, lighting) cannot be seen from"
            " answers.",
        ),
    )


def _class_range(evidence: Evidence) -> list[MeasuredNumber]:
    """The range over classes of the accuracy on unedited photos, for classes of enough photos."""
    label = evidence.details.photo_labels
    numbers = []
    for model, rates in zip(evidence.models, evidence.answers.original_rates, strict=True):
        shares = []
        for place in np.unique(label[label >= 0]):
            own = rates[(label == place) & np.isfinite(rates)]
            shares += [float(own.mean())] if len(own) >= FEWEST_PHOTOS else []
        if len(shares) > 1:
            for name, share in (("worst class, unedited", min(shares)), ("best class, unedited", max(shares))):
                numbers.append(MeasuredNumber(name, model, 100 * share, n=len(shares), of="classes", unit="percent"))
    return numbers


def ask_calibration(evidence: Evidence) -> Reply:
    """How confidence and its error change under the edits."""
    confidences = measure_confidences(evidence.details)
    if not confidences:
        _refuse_calibration(evidence)
    if not confidences.changes:
        raise NotJudged(
            "edited pictures with their originals", "add an edit to the recipe, or a condition to the table"
        )
    by_row = [_measure_confidence(row) for row in confidences.changes]
    plain = [place for place, row in enumerate(confidences.changes) if row.attribute not in NO_ATTRIBUTE]
    clear = select_clear(
        [by_row[place][0] for place in plain], [confidences.changes[place].attribute for place in plain]
    )
    words = [
        f"{row.model} under {row.attribute} by {numbers[0].text}"
        for row, numbers in zip(confidences.changes, by_row, strict=True)
        if row.excess_rise.ci_low > 0 and numbers[0] in clear
    ]
    return Reply(
        answer=(
            f"Confidence exceeds accuracy by more than before: {'; '.join(words)}."
            if words
            else "No attribute was shown to make a model more overconfident."
        ),
        numbers=tuple(number for numbers in by_row for number in numbers),
        notes=(
            "Overconfidence: mean confidence minus accuracy. Calibration error: root mean square distance of confidence"
            " and accuracy over 10 bins of equal width, estimated from pairs of different photos.",
            "Both are against each edit's reference: position and direction at a size against the object at that size."
            " Each interval stands for its row alone; the sentence is corrected for all attributes of a model.",
        ),
    )


def _refuse_calibration(evidence: Evidence) -> NoReturn:
    """Say whether probabilities are missing, or answers that have one."""
    answers = evidence.answers
    given = answers.scored & np.isfinite(evidence.details.top_score)
    if not given.any():
        raise NotJudged("the probability of each answer", "add a column `confidence`, or a model with scores")
    edited = given & ~answers.conditions_of(NO_ATTRIBUTE)[answers.condition]
    most = int(np.bincount(answers.model[edited if edited.any() else given]).max())
    raise NotJudged(f"{FEWEST_ANSWERS} answers of a model with their probability, got {most}", "add photos or edits")


def _measure_confidence(row: ConfidenceChange) -> list[MeasuredNumber]:
    """The rise of overconfidence, then the calibration error: its rise, before and after."""
    rise = measured(f"rise of overconfidence, {row.attribute}", row.model, row.excess_rise, "points")
    return [
        rise,
        measured(f"rise of the calibration error, {row.attribute}", row.model, row.error_rise, "points"),
        replace_value(rise, f"calibration error before, {row.attribute}", row.before.error),
        replace_value(rise, f"calibration error after, {row.attribute}", row.after.error),
    ]


def ask_error_consistency(evidence: Evidence) -> Reply:
    """Cohen's kappa of every two models' right and wrong answers."""
    evidence.require_models(2, "to compare")
    rows = error_consistency(evidence.answers, np.random.default_rng(SEED))
    numbers = [
        measured("kappa", f"{row.first} and {row.second}", row.kappa, "", decimals=2)
        for row in rows
        if row.kappa.n >= FEWEST_PHOTOS
    ]
    numbers = [row for row in numbers if not math.isnan(row.value)]
    if not numbers:
        raise NotJudged(
            f"{FEWEST_PHOTOS} photos that both models answered, right and wrong answers of both", "add photos"
        )
    most = max(numbers, key=lambda row: row.value)
    return Reply(
        answer=f"The highest kappa is that of {most.model}: {most.text} (1: the same failures, 0: independent ones).",
        numbers=tuple(numbers),
        notes=(
            "Cohen's kappa of right and wrong within each condition, then averaged; below 0, two models fail on"
            " different pictures.",
        ),
    )


def ask_other_classes(evidence: Evidence) -> Reply:
    """What to expect of an attribute's drop on a class that is not in the set."""
    evidence.require_originals()
    evidence.require_attributes()
    evidence.require_classes(FEWEST_CLASSES)
    numbers: list[MeasuredNumber] = []
    carried: dict[str, list[str]] = {}
    not_carried: dict[str, list[str]] = {}
    costly = {(verdict.attribute, verdict.model) for verdict in evidence.study.verdicts if verdict.costs}
    for attribute, model, row in _predict_classes(evidence):
        new = Estimate(row.mean.value, row.low, row.high, row.mean.n)
        numbers += [
            measured(f"drop, mean over classes, {attribute}", model, row.mean, "points", of="classes"),
            measured(f"drop of a new class, {attribute}", model, new, "points", of="classes"),
        ]
        if row.mean.ci_low > 0 and (attribute, model) in costly:
            (carried if row.low > 0 else not_carried).setdefault(attribute, []).append(model)
    if not numbers:
        raise NotJudged(
            f"{FEWEST_CLASSES} classes with two photos each",
            f"add photos: {2 * FEWEST_CLASSES} of {FEWEST_CLASSES} classes",
        )
    return Reply(
        answer=join_clauses(
            f"a new class is expected to lose accuracy too: {_list_models(carried)}" if carried else "",
            f"the drop is there on average and may be absent in a new class: {_list_models(not_carried)}"
            if not_carried
            else "",
            otherwise="no attribute was shown to cost accuracy over the classes on average",
        ),
        numbers=tuple(numbers),
        notes=(
            "Every class counts once. The range of a new class is Student's prediction interval for one more class with"
            " about as many photos; it holds 95 times in 100 if the classes of the set are a random sample of those"
            " meant, which no statistics can tell. Drops are against each edit's reference. Named are attributes that"
            " are a clear loss in the report too.",
        ),
    )


def _predict_classes(evidence: Evidence) -> Iterator[tuple[str, str, ClassPrediction]]:
    """By attribute and model what another class would lose, against each edit's reference."""
    losses = attribute_losses(evidence.answers)
    for attribute in evidence.attributes:
        for model, own in zip(evidence.models, losses[attribute], strict=True):
            row = predict_new_class(100 * own, evidence.details.photo_labels)
            if row is not None:
                yield attribute, model, row


def _list_models(by_attribute: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{attribute} ({join_words(models)})" for attribute, models in by_attribute.items())
