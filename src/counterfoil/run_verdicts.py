"""Two runs compared, and a run held to bounds or to a baseline: `compare` and `gate`, for Python and the commands."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterfoil.errors import UserError, expect_choice, expect_kind, expect_path
from counterfoil.plugins import import_extra
from counterfoil.progress import show_stage
from counterfoil.report.comparison_tables import comparison_to_json, comparison_to_text, describe_comparison
from counterfoil.report.comparison_words import conclude
from counterfoil.report.gate import (
    EXIT_STATUS,
    Bound,
    Check,
    Verdict,
    combine_verdicts,
    judge_accuracies,
    judge_drops,
    judge_setups,
    parse_max_drop,
)
from counterfoil.report.gate_margins import judge_growth, parse_margins
from counterfoil.report.gate_outputs import sort_checks, to_json, to_junit, to_markdown
from counterfoil.report.notebook_cell import render_sentences
from counterfoil.report.summary_json import contrast_record
from counterfoil.report.words import format_number
from counterfoil.run_result import Result
from counterfoil.statistics.drops import count_from_references
from counterfoil.study.baseline import BaselinePair, pair_with_baseline
from counterfoil.study.comparison import RunComparison, compare_runs
from counterfoil.study.runs import Study, open_runs

Limits = float | Mapping[str, float] | Sequence[str] | None
DEFAULT_MARGIN = "2"  # points by which each loss may grow
_NAMES = ("first", "second")  # of runs whose models have the same names


def folder_of(run: Result | str | Path) -> Path:
    """The folder of a run: of a result, or of a path to one."""
    if isinstance(run, Result):
        return run.folder
    if not isinstance(run, str | Path):
        raise UserError(f"expected a result or the folder of a run, got {type(run).__name__}")
    return expect_path(run, "the folder of a run")


@dataclass(frozen=True, repr=False)
class Comparison:
    """Two models compared photo by photo."""

    found: RunComparison

    def __repr__(self) -> str:
        """Both models and the conclusion, in a line."""
        return f"Comparison({self.first} and {self.second}: {self.sentence})"

    @property
    def first(self) -> str:
        """The first model."""
        return self.found.first

    @property
    def second(self) -> str:
        """The second model."""
        return self.found.second

    @property
    def is_judged(self) -> bool:
        """Whether both models may be judged: neither is set up wrongly."""
        return all(judgement.is_judged for judgement in self.found.judgements.values())

    @property
    def sentence(self) -> str:
        """The conclusion in a sentence or two; empty where a model is not judged."""
        return conclude(self.found) if self.is_judged else ""

    @property
    def accuracy_sentence(self) -> str:
        """How the two compare on the unedited photos."""
        return describe_comparison(self.found.accuracy, self.found.kind)

    def to_json(self) -> dict[str, object]:
        """Everything that was compared, as `counterfoil compare --json` prints it."""
        found = self.found
        document = comparison_to_json(
            found.accuracy, found.attributes, found.levels, kind=found.kind, surrogates=found.surrogates
        )
        edited = None if found.edited is None else contrast_record(found.edited)
        verdicts = {model: judgement.verdict for model, judgement in found.judgements.items()}
        return document | {"edited": edited, "judgements": verdicts, "conclusion": self.sentence}

    def to_pandas(self) -> Any:
        """One row per attribute, then per edit and level: both values, the difference, its interval and p."""
        rows = [contrast_record(row) for row in (*self.found.attributes, *self.found.levels)]
        return import_extra("pandas", "pandas").DataFrame(rows)

    def __str__(self) -> str:
        """The table and the conclusion, as the command prints them."""
        table = comparison_to_text([*self.found.attributes, *self.found.levels])
        return "\n\n".join(part for part in (self.accuracy_sentence, table, self.sentence) if part)

    def _repr_html_(self) -> str:
        """The conclusion and the attributes, as a notebook shows them."""
        value = "points lost by" if self.found.kind == "drops" else "% right of"
        names = (f"{value} {name}" for name in (self.first, self.second))
        heading = ("attribute", *names, "difference", "95 %", "photos")
        rows = [
            (
                row.condition.attribute, *(format_number(value) for value in (row.value_first, row.value_second)),
                format_number(row.difference), f"{format_number(row.ci_low)} to {format_number(row.ci_high)}",
                str(row.n),
            )
            for row in self.found.attributes
        ]  # fmt: skip
        sentences = [line for line in (self.accuracy_sentence, self.sentence) if line]
        return render_sentences(f"{self.first} and {self.second}", sentences, [heading, *rows])


def compare(
    first: Result | str | Path,
    second: Result | str | Path,
    *,
    first_model: str | None = None,
    second_model: str | None = None,
    names: Sequence[str] = (),
) -> Comparison:
    """Compare two models photo by photo: what they get right on edited photos, then what each attribute costs.

    Args:
        first: A result, or the folder of a run.
        second: Another over the same photos and edits, or the same one for two of its models.
        first_model: The model of the first run, where it holds several.
        second_model: The model of the second run, where it holds several.
        names: Names of the two runs, which tell models of one name apart.

    Returns:
        The comparison: a sentence, rows by attribute and level, `to_pandas` and `to_json`.

    Raises:
        UserError: The runs are over other pictures, or a model is not named.

    Examples:
        >>> import numpy as np
        >>> image, mask = np.full((64, 64, 3), 90, np.uint8), np.zeros((64, 64), np.uint8)
        >>> image[20:40, 20:44], mask[20:40, 20:44] = (200, 40, 40), 255
        >>> from counterfoil import run
        >>> reddest = lambda images: ["red" if each[..., 0].max() > 150 else "grey" for each in images]
        >>> constant = lambda images: ["red" for _ in images]
        >>> result = run([(image, "red", mask)], {"a": reddest, "b": constant}, edits=["object-grayscale"])
        >>> compare(result, result, first_model="a", second_model="b").found.attributes[-1].difference
        100.0
    """
    folders = folder_of(first), folder_of(second)
    expect_kind(names, (list, tuple), "names= as a list of two names")
    for wanted in (first_model, second_model):
        expect_kind(wanted, (str, type(None)), "the name of a model as a text")
    with show_stage("comparing the models"):
        chosen = tuple(names) or _tell_apart(*folders)
        return Comparison(compare_runs(folders, names=chosen, first=first_model, second=second_model))


def _tell_apart(first: Path, second: Path) -> tuple[str, ...]:
    """Names for two runs that hold a model of the same name and other weights."""
    if first.resolve() == second.resolve():
        return ()
    runs = [open_runs([folder]).run for folder in (first, second)]
    shared = set(runs[0].models) & set(runs[1].models)
    return _NAMES if any(runs[0].model_digests[name] != runs[1].model_digests[name] for name in shared) else ()


@dataclass(frozen=True, repr=False)
class GateResult:
    """The outcome of a gate: every check with its verdict."""

    checks: tuple[Check, ...]

    def __repr__(self) -> str:
        """The verdict and how many checks it is of, in a line."""
        return f"GateResult({self.verdict}, {len(self.checks)} checks)"

    @property
    def verdict(self) -> Verdict:
        """ "holds", "violated", "cannot tell" or "not judged"; the worst of the checks."""
        return combine_verdicts(self.checks)

    @property
    def holds(self) -> bool:
        """Whether every bound is shown to hold."""
        return self.verdict == "holds"

    @property
    def exit_status(self) -> int:
        """0 holds, 1 violated, 3 cannot tell, 4 not judged."""
        return EXIT_STATUS[self.verdict]

    @property
    def lines(self) -> list[str]:
        """Each check in a line, the worst first."""
        return [f"{check.verdict}: {check.message}" for check in sort_checks(self.checks)]

    def to_json(self) -> dict[str, Any]:
        """The verdict, the exit status and every check."""
        return to_json(self.checks)

    def to_markdown(self) -> str:
        """A table for a comment on a pull request."""
        return to_markdown(self.checks)

    def to_junit(self) -> str:
        """JUnit XML, as CI systems show tests."""
        return to_junit(self.checks)

    def __bool__(self) -> bool:
        """Whether every bound is shown to hold."""
        return self.holds

    def __str__(self) -> str:
        """The checks, a line each."""
        return "\n".join(self.lines)

    def _repr_html_(self) -> str:
        """The checks, as a notebook shows them."""
        return render_sentences(f"Gate: {self.verdict}", self.lines)


def gate(
    run: Result | str | Path,
    against: Result | str | Path | None = None,
    *,
    margin: Limits = None,
    max_drop: Limits = None,
    min_accuracy: float | None = None,
    bound: Bound = "upper",
    model: str | None = None,
    against_model: str | None = None,
) -> GateResult:
    """Hold a run to bounds, or to a baseline on the same photos.

    Args:
        run: A result, or the folder of a run.
        against: The baseline: no attribute may cost the new model more than `margin` points more.
        margin: Points by which a loss may grow: 2 where not given, another number, or {"background": 2, "accuracy": 1}.
        max_drop: Points that an attribute or edit may cost: 5 for each, or {"background": 5, "size:0.05": 20}.
        min_accuracy: Least accuracy on the unedited photos, in percent.
        bound: "upper" asks for proof that a bound holds, "lower" for proof that it is violated, "point" for none.
        model: Judge only this model.
        against_model: The model of the baseline, where it holds several and the names differ.

    Returns:
        The checks and their verdict; true where every bound is shown to hold.

    Raises:
        UserError: No bound is given, or the runs are over other pictures.

    Examples:
        >>> import numpy as np
        >>> image, mask = np.full((64, 64, 3), 90, np.uint8), np.zeros((64, 64), np.uint8)
        >>> image[20:40, 20:44], mask[20:40, 20:44] = (200, 40, 40), 255
        >>> from counterfoil import run
        >>> reddest = lambda images: ["red" if each[..., 0].max() > 150 else "grey" for each in images]
        >>> result = run([(image, "red", mask)], {"reddest": reddest}, edits=["object-grayscale"])
        >>> gate(result, max_drop={"colour": 5}).verdict  # one photo says nothing about the model
        'not judged'
    """
    margins, drops = _to_texts(margin, ""), _to_texts(max_drop, "any=")
    expect_kind(min_accuracy, (numbers.Real, type(None)), "the least accuracy as a number, in percent")
    expect_choice(bound, ("upper", "lower", "point"), "bound")
    for wanted in (model, against_model):
        expect_kind(wanted, (str, type(None)), "the name of a model as a text")
    if against is not None and not margins:
        margins = [DEFAULT_MARGIN]
    _check_bounds(against, margins, drops, min_accuracy, against_model)
    folder = folder_of(run)
    pairs = [] if against is None else pair_with_baseline(
        folder, folder_of(against), model=model, against_model=against_model
    )  # fmt: skip
    with show_stage("judging the run"):
        checks = _judge_pairs(pairs, margins, bound)
        if drops or min_accuracy is not None:
            checks += _judge_bounds(open_runs([folder]).select_model(model), drops, min_accuracy, bound)
    return GateResult(tuple(dict.fromkeys(checks)))  # a set-up that is wrong is said once


def _to_texts(limits: Limits, one: str) -> list[str]:
    """Limits as they are typed: 2, background=2; one number stands for all."""
    if limits is None:
        return []
    if isinstance(limits, Mapping):
        return [f"{name}={_to_points(limit)}" for name, limit in limits.items()]
    if isinstance(limits, str):
        return [limits]
    if not isinstance(limits, list | tuple):
        return [f"{one}{_to_points(limits)}"]
    for limit in limits:
        expect_kind(limit, str, "a list of bounds as texts such as 'background=2'")
    return list(limits)


def _to_points(limit: object) -> str:
    """A number of points as it is typed."""
    expect_kind(limit, numbers.Real, "points as a number")
    return f"{float(limit):g}"  # type: ignore[arg-type]  # a number


def _check_bounds(
    against: object, margins: Sequence[str], drops: Sequence[str], least: float | None, against_model: str | None
) -> None:
    if not drops and least is None and against is None:
        raise UserError(
            "expected a bound, got none; give --against BASELINE --margin 2, --max-drop background=5 or"
            " --min-accuracy 70"
        )
    if least is not None and not 0 <= least <= 100:
        raise UserError(f"expected --min-accuracy from 0 to 100, in percent, got {least:g}")
    if against is None and (margins or against_model):
        raise UserError("expected --against BASELINE beside --margin or --against-model, got none")


def _judge_pairs(pairs: Sequence[BaselinePair], margins: Sequence[str], bound: Bound) -> list[Check]:
    """The checks against the baseline; of a pair that is not judged, only that."""
    allowed = parse_margins(margins)
    checks: list[Check] = []
    for pair in pairs:
        checks += judge_setups(pair.judgements)
        if all(judgement.is_judged for judgement in pair.judgements.values()):
            checks += judge_growth(pair.growth, pair.model, allowed, bound)
    return checks


def _judge_bounds(study: Study, drops: Sequence[str], least: float | None, bound: Bound) -> list[Check]:
    """The checks of a run by itself; of a model that is not judged, only that."""
    judged = {model for model, judgement in study.judgements.items() if judgement.is_judged}
    checks = judge_drops(
        count_from_references(study.answers, study.drops), [parse_max_drop(text) for text in drops], bound
    )
    if least is not None:
        checks += judge_accuracies(study.overall_accuracies, least, bound)
    return [
        *judge_setups(study.judgements),
        *(check for check in checks if check.model in judged or check.model not in study.judgements),
    ]
