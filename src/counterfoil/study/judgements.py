"""Whether a model can be judged at all: its unedited photos against guessing, and against other set-ups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.statistics.answers import encode_labels
from counterfoil.statistics.chance import ChanceTest, binomial_tail, compare_with_chance, match_answers, upper_bound
from counterfoil.store.parquet import DictionaryColumn
from counterfoil.types import SanityRecord, SetupTrial

CANNOT_TELL, NOT_JUDGED = 3, 4  # exit statuses of commands that would have had to judge such a model
JudgementVerdict: TypeAlias = Literal["judged", "cannot tell", "not judged"]

SETUP_COLUMNS = ("attribute", "outcome", "label", "rank_1")
_LEVEL = 0.01  # of every test here: a right set-up must hardly ever be called wrong
_FAR = 10.0  # points by which another naming of the classes must be ahead for the given one to be called wrong
_DOUBTFUL = 3.0  # points from which another set-up is mentioned
_NEAR_CHANCE = 0.05  # above guessing: with less, there is nothing that an edit could cost
_WELL_ABOVE_CHANCE = 0.2  # above guessing: where that is not excluded, the photos are too few
_MOST_NAMED = 3
_ASK = "See the outcomes in its table of predictions, and try it by `counterfoil models check`."


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """Whether a model's results may be read; `reason` and `remedy` are sentences, a doubt where it is judged."""

    verdict: JudgementVerdict = "judged"
    reason: str = ""
    remedy: str = ""
    chance: ChanceTest | None = None  # None where there are no unedited photos

    @property
    def is_judged(self) -> bool:
        """False only where the set-up is shown to be wrong."""
        return self.verdict != "not judged"

    @property
    def sentence(self) -> str:
        """The reason and what to do."""
        return " ".join(part for part in (self.reason, self.remedy) if part)


def status_of(judgements: Iterable[Judgement]) -> int:
    """The exit status of a command that judges these models: success only where each is better than guessing."""
    verdicts = {judgement.verdict for judgement in judgements}
    return NOT_JUDGED if "not judged" in verdicts else CANNOT_TELL if "cannot tell" in verdicts else 0


class UneditedAnswers(NamedTuple):
    """A model's scored answers to the unedited photos, as numbers of classes."""

    names: tuple[str, ...]
    labels: NDArray[np.intp]
    answers: NDArray[np.intp]  # -1 for an answer without a name
    known: bool = True  # whether the photos' classes are

    @classmethod
    def of(cls, table: Mapping[str, NDArray[Any] | DictionaryColumn]) -> UneditedAnswers:
        """The rows of a table of predictions that count; needs `SETUP_COLUMNS`, and a class for each photo."""
        kept = _equals(table["attribute"], "original") & _equals(table["outcome"], "scored")
        nameless = _equals(table["label"], "")  # imported answers may not say the photos' classes
        known, kept = not (kept & nameless).any(), kept & ~nameless
        labels, answers = (_rows(table[name], kept) for name in ("label", "rank_1"))
        names, codes = encode_labels([*labels, *answers], known=("",))
        return cls(names[1:], codes[: len(labels)] - 1, codes[len(labels) :] - 1, known)


def _equals(column: NDArray[Any] | DictionaryColumn, word: str) -> NDArray[np.bool_]:
    if isinstance(column, DictionaryColumn):
        return np.asarray(np.asarray(column.dictionary == word, bool)[column.indices], bool)
    return np.asarray(column == word, bool)


def _rows(column: NDArray[Any] | DictionaryColumn, kept: NDArray[np.bool_]) -> NDArray[Any]:
    if isinstance(column, DictionaryColumn):
        return np.asarray(column.dictionary[column.indices[kept]])
    return column[kept]


def judge_model(unedited: UneditedAnswers, record: SanityRecord, *, edited: bool = True) -> Judgement:
    """Judge whether a model's results may be read.

    Args:
        unedited: Its answers to the unedited photos.
        record: What was tried at the start of the run; an empty record where nothing was.
        edited: Whether there are edited pictures, whose drops need some accuracy to drop from.
    """
    if not unedited.known:
        return Judgement()
    names, labels, answers, _ = unedited
    test = compare_with_chance(labels, answers, record.classes or len(names))
    trial = find_better_setup(record)
    if trial is not None and trial.gap >= trial.far:
        return _describe_trial("not judged", trial, test)
    mixed = _find_mixed_labels(unedited, test)
    if mixed is not None:
        return mixed
    verdict = judge_chance(test, edited=edited)
    if verdict != "judged":
        return _describe_chance(verdict, test)
    return _describe_trial("judged", trial, test) if trial is not None else Judgement(chance=test)


def judge_unpaired(outcomes: NDArray[Any] | DictionaryColumn) -> Judgement:
    """Judge a model by its outcomes on a collection without unedited photos: some answer must count."""
    scored = _equals(outcomes, "scored")
    if len(scored) and not scored.any():
        return Judgement(verdict="not judged", reason="No answer to a picture counts.", remedy=_ASK)
    return Judgement()


def judge_record(record: SanityRecord) -> Judgement:
    """Judge a model by what was tried at the start of its run alone, before the work."""
    trial = find_better_setup(record)
    chance = 1 / max(record.classes, 1)
    test = ChanceTest(
        record.photos, record.right, chance, binomial_tail(record.right, record.photos, chance),
        upper_bound(record.right, record.photos),
    )  # fmt: skip
    if trial is not None:
        return _describe_trial("not judged" if trial.gap >= trial.far else "judged", trial, test)
    if not record.photos or judge_chance(test) != "not judged":
        return Judgement(chance=test)
    return _describe_chance("not judged", test)


def judge_chance(test: ChanceTest, *, edited: bool = True) -> JudgementVerdict:
    """Judge the accuracy on unedited photos against guessing; "cannot tell" where the photos are too few."""
    if test.n == 0:  # there were photos, and no answer to them counts
        return "not judged"
    if edited and test.upper < test.chance + _NEAR_CHANCE:
        return "not judged"
    if test.p_value < _LEVEL:
        return "judged"
    return "not judged" if test.upper < test.chance + _WELL_ABOVE_CHANCE else "cannot tell"


def find_better_setup(record: SanityRecord) -> SetupTrial | None:
    """The best trial that is ahead of the given set-up, where that is no accident; None where there is none.

    By an exact one-sided test: on all photos, corrected for all that was tried, or on the photos that came after the
    trial was chosen, corrected for the chosen ones; half of the level for either.
    """
    for trial in record.trials:
        everything = binomial_tail(trial.gained, trial.gained + trial.lost, 0.5) * max(record.tried, 1)
        later = binomial_tail(trial.later_gained, trial.later_gained + trial.later_lost, 0.5) * max(record.chosen, 1)
        if trial.gap >= _DOUBTFUL and (everything < _LEVEL / 2 or later < _LEVEL / 2):
            return trial
    return None


def _find_mixed_labels(unedited: UneditedAnswers, test: ChanceTest) -> Judgement | None:
    """Whether the answers fit another naming of the classes far better than the given one."""
    names, labels, answers, _ = unedited
    if test.n == 0:
        return None
    right = labels == answers
    fits, naming = match_answers(labels, answers)
    gained, lost = int((fits & ~right).sum()), int((right & ~fits).sum())
    far = fits.sum() >= 2 * test.right and 100 * (gained - lost) >= _FAR * test.n
    if not far or binomial_tail(gained, gained + lost, 0.5) >= _LEVEL:
        return None
    wrong = [(names[label], names[answer]) for label, answer in naming.items() if label != answer]
    examples = ", ".join(f"{label} as {answer}" for label, answer in wrong[:_MOST_NAMED])
    return Judgement(
        verdict="not judged",
        reason=(
            f"Its labels are probably in another order: {test.right} of {test.n} unedited photos are answered with"
            f" their own class, and {int(fits.sum())} with one other class each ({examples})."
        ),
        remedy="Name its columns in the order of its training.",
        chance=test,
    )


def _describe_trial(verdict: JudgementVerdict, trial: SetupTrial, test: ChanceTest) -> Judgement:
    given = trial.right - trial.gained + trial.lost
    return Judgement(
        verdict=verdict,
        reason=(
            f"It is probably set up wrongly: right on {given} of {trial.photos} unedited photos as given, and on"
            f" {trial.right} with {trial.change}."
        ),
        remedy=f"To change it, {trial.remedy}.",
        chance=test,
    )


def _describe_chance(verdict: JudgementVerdict, test: ChanceTest) -> Judgement:
    if test.n == 0:
        return Judgement(verdict=verdict, reason="No answer to an unedited photo counts.", remedy=_ASK, chance=test)
    seen = f"It is right on {test.right} of {test.n} unedited photos ({100 * test.share:.1f} %)"
    guess = f"guessing gives {100 * test.chance:.1f} %"
    if verdict == "cannot tell":
        return Judgement(
            verdict=verdict, reason=f"{seen}, {guess}: too few photos to tell the two apart.",
            remedy="Use more photos.", chance=test,
        )  # fmt: skip
    return Judgement(
        verdict=verdict, reason=f"{seen}; {guess}.",
        remedy="Check its labels and its preprocessing against its training.", chance=test,
    )  # fmt: skip
