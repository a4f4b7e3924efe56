"""The card's tables on verification: how far people agree, and how each did on the hidden controls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from counterfoil.freeze.record import AnnotatorNote, Verification

_MEASURES = {
    "percent_agreement": ("same answer, %", 1), "cohen_kappa": ("Cohen's kappa", 2),
    "fleiss_kappa": ("Fleiss' kappa", 2), "krippendorff_alpha": ("Krippendorff's alpha", 2),
}  # fmt: skip
_ABSENT = "–"


def verification_tables(told: Verification) -> Iterator[str]:
    """What was asked with its agreement, then a row per annotator."""
    yield from _agreement(told)
    yield from _annotators(told.records)


def cell(text: str) -> str:
    """Text that cannot break out of a table."""
    return " ".join(text.replace("|", "/").split())


def _agreement(told: Verification) -> Iterator[str]:
    rows = [
        f"| {cell(question)} | {_whole(values.get('pictures'))} | {' | '.join(_measured(values))} |"
        for name, question in told.questions.items()
        for values in [told.agreement.get(name, {})]
    ]
    yield "How far two annotators agree, with 95 % intervals; kappas and alpha are 0 by chance and 1 at most:"
    yield from ("", f"| question | pictures | {' | '.join(words for words, _ in _MEASURES.values())} |")
    yield from ("|---|---|---|---|---|---|", *rows, "")
    if any(_ABSENT in row for row in rows):
        yield f"{_ABSENT}: not defined, since nearly all answers are the same and leave nothing to agree on beyond"
        yield from ("chance, or since too few pictures were answered by two people.", "")


def _measured(values: Mapping[str, float | None]) -> Iterator[str]:
    for name, (_, decimals) in _MEASURES.items():
        value, low, high = (_number(values.get(name + end), decimals) for end in ("", "_low", "_high"))
        yield value if value == _ABSENT else f"{value} [{low}, {high}]"


def _annotators(records: Sequence[AnnotatorNote]) -> Iterator[str]:
    if not records:
        return
    yield "Each annotator on hidden controls (pictures whose right answer is known) and on pictures shown twice:"
    yield from ("", "| annotator | answers | controls right | repeats answered the same | median seconds per picture |")
    yield "|---|---|---|---|---|"
    for place, row in enumerate(records, start=1):
        left_out = "" if row.counted else " (left out)"
        shares = f"{_share(row.controls_right, row.controls)} | {_share(row.repeats_same, row.repeats)}"
        yield f"| {place}{left_out} | {row.answers:,} | {shares} | {_seconds(row.median_seconds)} |"
    yield ""


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / whole:.0f} %)" if whole else "none shown"


def _seconds(value: float) -> str:
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def _number(value: float | None, decimals: int) -> str:
    return _ABSENT if value is None else f"{value:.{decimals}f}"


def _whole(value: float | None) -> str:
    return _ABSENT if value is None else f"{value:,.0f}"
