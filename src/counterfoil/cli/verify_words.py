"""What the commands of `verify` print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from counterfoil.analyse.deciding import UNDECIDED
from counterfoil.report.wording import ABSENT as _ABSENT
from counterfoil.report.wording import number, number_of
from counterfoil.types import Verified

if TYPE_CHECKING:
    from counterfoil.verify.address import Address

_MEASURES = {
    "percent_agreement": "percent", "cohen_kappa": "Cohen's kappa", "fleiss_kappa": "Fleiss' kappa",
    "krippendorff_alpha": "Krippendorff's alpha",
}  # fmt: skip


def address_words(address: Address, link: str, counts: Mapping[str, int]) -> Iterator[str]:
    """What whoever starts the page has to know."""
    yield f"pictures: {counts['work']}; hidden controls: {counts['good']} known good, {counts['bad']} known bad"
    if not counts["good"] or not counts["bad"]:
        yield (
            "  where a kind of control is 0, the workspace holds no pictures for it: originals make known good"
            " ones, pictures of a class that nobody takes for the one asked about known bad ones"
        )
    yield f"administrator (who has this link is let in): {link}"
    yield "  open it and invite annotators there, or by `counterfoil verify invite WORKSPACE NAME...`"
    beyond = f", for the TLS proxy of {address.url}" if address.is_encrypted else ""
    yield f"listening on {address.host}:{address.port}{beyond}"
    if address.is_public and not address.is_encrypted:
        yield f"WARNING: {address.url} is not encrypted: links and answers can be read on the way"
    if not address.is_encrypted:
        yield (
            "for annotators elsewhere: put a TLS proxy (Caddy, nginx) before this port and give its address, such as"
            " --url https://verify.example.org; docs/verify.md shows how"
        )
    yield "Ctrl-C stops; the same command goes on"


def status_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Progress, agreement, people."""
    progress, decisions = summary["progress"], summary["decisions"]
    yield f"answers: {progress['done']} of {progress['total']}"
    yield f"pictures with all their answers: {progress['finished']} of {progress['pictures']}"
    yield (
        f"by majority: kept {decisions['kept']} of {progress['pictures']} pictures; dropped {decisions['dropped']},"
        f" undecided {decisions['undecided']}, too few answers {decisions['too_few']}"
    )
    yield from _agreement(summary["agreement"])
    for person in summary["annotators"]:
        controls = f"controls right {_share(person['control_accuracy'])} of {person['controls']}"
        repeats = f"repeats same {_share(person['repeat_consistency'])} of {person['repeats']}"
        median = _ABSENT if person["median_seconds"] is None else _seconds(person["median_seconds"])
        out = f"; left out: {person['reason']}" if person["excluded"] else ""
        yield f"{person['name']}: {person['done']} answered, median {median}, {controls}, {repeats}{out}"
    yield f"disagreements: {summary['disagreement_count']}"


def decided_lines(verified: Verified, asked: int, excluded: Mapping[str, str], adjudicated: int) -> Iterator[str]:
    """What was decided, and what it stands on."""
    kept = sum(decision.kept for decision in verified.decisions)
    open_ = sum(UNDECIDED in decision.decided.values() for decision in verified.decisions)
    yield f"rule: {verified.rule}; {number_of(verified.annotators, 'annotator')}"
    few = asked - len(verified.decisions)
    yield (
        f"kept {kept} of {asked} pictures; dropped {len(verified.decisions) - kept - open_}, undecided {open_},"
        f" too few answers {few}{' (wait for more, or decide on fewer by --fewest N)' if few else ''}"
    )
    if adjudicated:
        yield f"settled by an administrator: {number_of(adjudicated, 'question')}"
    for name, reason in excluded.items():
        yield f"left out: {name}, {reason}"
    yield from _agreement(verified.agreement)
    for doubt in verified.doubts:
        yield f"WARNING: {doubt}"


def _agreement(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for question, values in found.items():
        told = [f"{words} {_measured(values, name)}" for name, words in _MEASURES.items()]
        yield f"agreement on '{question}' over {values['pictures']:g} pictures: {', '.join(told)}"
        if any(line.endswith(_ABSENT) for line in told):
            yield f"  {_ABSENT}: not defined, since all say the same or too few pictures have two answers"
        if any(line.endswith("(no interval)") for line in told):
            yield "  no interval: too few pictures, or one of them alone makes the measure what it is"


def _measured(values: Mapping[str, Any], name: str) -> str:
    """A measure with its interval."""
    value, low, high = (_number(values[name + end]) for end in ("", "_low", "_high"))
    if value == _ABSENT:
        return value
    return f"{value} (no interval)" if _ABSENT in (low, high) else f"{value} [{low}, {high}]"


def _number(value: float | None) -> str:
    return _ABSENT if value is None else number(value, 2)


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value >= 1 else f"{value:.2f} s"


def _share(value: float | None) -> str:
    return _ABSENT if value is None or value != value else f"{100 * value:.0f} %"
