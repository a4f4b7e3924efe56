"""Measures of neighbouring benchmarks on any run: background gap, mCE, error ratio, shape bias, effective"
" robustness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from counterfoil.analysis.evidence import (
    FEWEST_PHOTOS,
    SEED,
    Evidence,
    MeasuredNumber,
    NotJudged,
    Reply,
    measured,
    select_clear,
)
from counterfoil.published.imagenet_9.reader import KINDS
from counterfoil.published.imagenet_9.score import background_gap, survive_all
from counterfoil.published.imagenet_c.reader import CORRUPTIONS, corruption_kind
from counterfoil.published.imagenet_c.score import SEVERITIES, alexnet_errors
from counterfoil.report.words import format_number, join_words
from counterfoil.statistics.answers import REFERENCES, Condition
from counterfoil.statistics.effective_robustness import FEWEST_REFERENCES, estimate_effective_robustness
from counterfoil.statistics.error_ratio import error_ratio, p_above_one
from counterfoil.statistics.intervals import estimate
from counterfoil.statistics.significance import SIGNIFICANCE, holm
from counterfoil.study.cue_conflicts import measure_shape_decisions
from counterfoil.types import TOOL_CHECKS

_SWAPS = {  # the pictures of the gap, by the names of ImageNet-9's archive and of this program's edits
    name: (Condition(*KINDS[f"mixed_{kind}"]), Condition("background", "background-swap", level))
    for name, kind, level in (("same", "same", "same"), ("other", "rand", "other"), ("next", "next", "next"))
}
_ADD_SWAP = "add `- {edit: background-swap, levels: {donors: [same, other, next]}}` to the recipe (`imagenet-9` has it)"


def ask_background_gap(evidence: Evidence) -> Reply:
    """BG-gap and survival."""
    there = set(evidence.answers.conditions)
    found = {name: next((c for c in pair if c in there), None) for name, pair in _SWAPS.items()}
    same, other = found["same"], found["other"]
    if same is None or other is None:
        raise NotJudged("pictures on backgrounds of the same class and of other classes", _ADD_SWAP)
    mixed = [condition for condition in found.values() if condition is not None]
    numbers, words = [], []
    for model in evidence.models:
        gap = background_gap(evidence.answers, model, same=same, other=other)
        survival = survive_all(evidence.answers, model, mixed)
        numbers += [
            measured("BG-gap", model, gap, "points"),
            measured("right on every background", model, survival, "percent"),
        ]
        words.append(f"{model} {numbers[-2].text}" + ("" if gap.ci_low > 0 else " (not shown to differ from 0)"))
    return Reply(
        answer=f"BG-gap: {'; '.join(words)}.",
        numbers=tuple(numbers),
        notes=(
            f"Accuracy with {same.edit} {same.level} minus accuracy with {other.edit} {other.level}, paired by photo."
            " Right on every background: percent of photos that are right in all of"
            f" {join_words([c.level for c in mixed])}.",
        ),
    )


def ask_corruption_error(evidence: Evidence) -> Reply:
    """MCE over the corruptions that were run at five severities."""
    there = {condition: place for place, condition in enumerate(evidence.answers.conditions)}
    levels = [str(level) for level in range(1, SEVERITIES + 1)]
    places = {
        name: [there[Condition(*corruption_kind(name, level))] for level in levels]
        for name in CORRUPTIONS
        if all(Condition(*corruption_kind(name, level)) in there for level in levels)
    }
    if not places:
        raise NotJudged(
            f"a corruption at {SEVERITIES} severities",
            "add `- {edit: corruption-fog, levels: {severity: [1, 2, 3, 4, 5]}}` (recipe `imagenet-c` has all fifteen)",
        )
    few = f"CE of {next(iter(places))}" if len(places) == 1 else f"mean CE of {len(places)} corruptions"
    name = "mCE" if len(places) == len(CORRUPTIONS) else few
    reference = alexnet_errors()
    numbers, words = [], []
    for m, model in enumerate(evidence.models):
        rates = evidence.answers.rates[m]
        by_photo = {
            corruption: 100 * (1 - rates[own].mean(axis=0)) / reference[corruption]
            for corruption, own in places.items()
        }  # (photos,) each: the photo's part of CE
        numbers.append(measured(name, model, estimate(np.mean(list(by_photo.values()), axis=0)), "percent"))
        words.append(f"{model} {numbers[-1].text}")
        numbers += [measured(f"CE, {what}", model, estimate(part), "percent") for what, part in by_photo.items()]
    missing = [corruption for corruption in CORRUPTIONS if corruption not in places]
    return Reply(
        answer=f"{name}: {'; '.join(words)} of AlexNet's error.",
        numbers=tuple(numbers),
        notes=(
            "CE = error summed over five severities / AlexNet's published error; over photos that have all pictures."
            " AlexNet's errors are on ImageNet's validation set: on other photos they only set the scale.",
            *([f"There is no mCE: not at five severities are {join_words(missing)}."] if missing else []),
        ),
    )


def ask_error_ratios(evidence: Evidence) -> Reply:
    """Error ratios of annotated factors, or of the attributes that were edited."""
    factors = evidence.factors
    numbers = _annotated_ratios(evidence, factors) if factors else _attribute_ratios(evidence)
    clear = _select_hard_factors(evidence, factors) if factors else _select_hard_attributes(numbers)
    words = []
    for model in evidence.models:
        own = [row for row in numbers if row.model == model and row.n >= FEWEST_PHOTOS and row.value == row.value]
        if own:
            worst = max(own, key=lambda row: row.value)
            shown = "" if worst.low > 1 and (model, worst.measure) in clear else ", not shown to be above 1"
            words.append(f"{model} errs most on {worst.measure}, {worst.text} times as often as on all pictures{shown}")
    if not words:
        raise NotJudged(f"{FEWEST_PHOTOS} photos with a factor, and a wrong answer", "add photos")
    return Reply(
        answer=f"{'; '.join(words)}.",
        numbers=tuple(numbers),
        notes=(
            "Error ratio = (1 - accuracy with the factor) / (1 - accuracy over all); 1 is no more than average;"
            " interval"
            " by resampling photos; a factor is said to be above 1 where that"
            " survives the correction for all factors of a model. "
            + (
                "Factors are the photos' annotations; all are the annotated photos."
                if factors
                else "Without annotations the factors are the attributes that were edited; all are the unedited and the"
                " edited pictures. `counterfoil import --annotations FILE` brings annotations."
            ),
        ),
    )


def _annotated_ratios(evidence: Evidence, factors: dict[str, NDArray[np.bool_]]) -> list[MeasuredNumber]:
    numbers = []
    for model, wrong, asked in _count_unedited(evidence, factors[""]):
        for name, flags in factors.items():
            if name:
                own = flags[factors[""]][:, None]
                row = error_ratio(wrong[:, None], asked[:, None], own, np.random.default_rng(SEED))
                numbers.append(measured(name, model, row, "ratio", decimals=2))
    return numbers


def _select_hard_factors(evidence: Evidence, factors: dict[str, NDArray[np.bool_]]) -> set[tuple[str, str]]:
    """The models and factors with more errors than by chance; Holm over the factors of a model."""
    clear = set()
    names = [name for name in factors if name]
    for model, wrong, asked in _count_unedited(evidence, factors[""]):
        p_values = holm([p_above_one(wrong, asked, factors[name][factors[""]]) for name in names])
        clear |= {(model, name) for name, p in zip(names, p_values, strict=True) if p < SIGNIFICANCE}
    return clear


def _select_hard_attributes(numbers: Sequence[MeasuredNumber]) -> set[tuple[str, str]]:
    clear = select_clear(numbers, [row.measure for row in numbers], nothing=1)
    return {(row.model, row.measure) for row in clear}


def _count_unedited(
    evidence: Evidence, annotated: NDArray[np.bool_]
) -> Iterator[tuple[str, NDArray[np.float64], NDArray[np.float64]]]:
    """By model the wrong answers to the annotated unedited photos, and all answers, (photos,) each."""
    answers = evidence.answers
    original = answers.conditions_of({"original"})
    for m, model in enumerate(answers.models):
        asked = answers.tally.scored[m, original].sum(axis=0)[annotated].astype(np.float64)
        yield model, asked - answers.tally.right[m, original].sum(axis=0)[annotated], asked


def _attribute_ratios(evidence: Evidence) -> list[MeasuredNumber]:
    answers = evidence.answers
    counted = ~answers.conditions_of({"control", "presence", *TOOL_CHECKS})
    if not evidence.attributes:
        raise NotJudged(
            "annotated factors of the photos, or edits", "`counterfoil import --annotations FILE` brings factors"
        )
    numbers = []
    for m, model in enumerate(answers.models):
        asked = answers.tally.scored[m, counted].T.astype(np.float64)
        wrong = asked - answers.tally.right[m, counted].T
        for attribute in evidence.attributes:
            factor = np.broadcast_to(answers.conditions_of({attribute})[counted], asked.shape)
            row = error_ratio(wrong, asked, factor, np.random.default_rng(SEED))
            numbers.append(measured(attribute, model, row, "ratio", decimals=2))
    return numbers


def ask_shape_bias(evidence: Evidence) -> Reply:
    """Shape decisions among shape and texture decisions on cue conflicts."""
    rows = measure_shape_decisions(evidence.details)
    if not rows:
        raise NotJudged(
            "pictures whose texture is of another class than their shape",
            "`counterfoil evaluate cue-conflict:PATH` reads the published ones; others are named as"
            " airplane1-bicycle2.png, shape first",
        )
    numbers, words = [], []
    for row in rows:
        numbers += [
            measured("shape bias", row.model, row.bias, "percent", of="decisions"),
            MeasuredNumber(
                "neither shape nor texture", row.model, float(row.neither), n=row.pictures, of="pictures", decimals=0
            ),
        ]
        words.append(
            f"{row.model} {numbers[-2].text} (n = {row.bias.n} decisions)"
            if row.bias.n >= FEWEST_PHOTOS
            else f"{row.model} not judged: {row.bias.n} decisions, {FEWEST_PHOTOS} would do"
        )
    return Reply(
        answer=f"Shape bias: {'; '.join(words)}; 100 % follows the shape alone, 0 % the texture alone.",
        numbers=tuple(numbers),
        notes=("Shape decisions / (shape + texture decisions); answers that name neither are left out and counted.",),
    )


def ask_effective_robustness(evidence: Evidence) -> Reply:
    """Accuracy under each attribute beyond what a line through reference models expects."""
    evidence.require_originals()
    baselines = evidence.baselines
    if baselines is None:
        evidence.require_models(
            FEWEST_REFERENCES, "for a line of their own, or --reference FILE with the accuracies of other models"
        )
    answers = evidence.answers
    attributes = [a for a in dict.fromkeys(c.attribute for c in answers.conditions) if a not in REFERENCES]
    numbers: list[MeasuredNumber] = []
    for attribute in attributes:
        line = None if baselines is None else baselines.get(attribute, baselines.get(""))
        if baselines is not None and line is None:
            continue
        with np.errstate(invalid="ignore"):
            own = answers.rates[:, answers.conditions_of({attribute})]
            shifted = np.nansum(own, axis=1) / np.isfinite(own).sum(axis=1)
        rows = estimate_effective_robustness(answers.original_rates, shifted, np.random.default_rng(SEED), line)
        found = [measured(attribute, model, row, "points") for model, row in zip(answers.models, rows, strict=True)]
        numbers += found
    if not numbers:
        raise NotJudged("an edited attribute that the reference models were measured on", "add its rows to the CSV")
    clear = select_clear(numbers, [row.measure for row in numbers])
    words = [f"{row.model} under {row.measure} {row.text}" for row in clear if row.low > 0 or row.high < 0]
    source = "the models of this run" if baselines is None else "the reference models"
    return Reply(
        answer=(
            f"Off the line through {source}, beyond the interval: {'; '.join(words)}."
            if words
            else f"None was shown to lie off the line through {source}: the largest distance is"
            f" {format_number(max((abs(row.value) for row in numbers if row.value == row.value), default=0))} points."
        ),
        numbers=tuple(numbers),
        notes=(
            "Accuracy under the attribute's edits minus what a line of log odds expects from that on unedited photos."
            " Intervals resample photos and stand for one row each; the sentence is corrected for all attributes of a"
            " model. A line through a few models of one run is itself uncertain, and the distances from it add up to"
            " about 0.",
        ),
    )
