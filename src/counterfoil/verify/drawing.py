"""Which pictures people see: the work itself, and the hidden controls that are mixed into it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from counterfoil.errors import UserError
from counterfoil.types import Exhibit, Variant
from counterfoil.verify.questions import Questionnaire

Role: TypeAlias = Literal["work", "good", "bad"]
Alike: TypeAlias = Callable[[str, str], bool]  # whether somebody might take one label's object for the other's


@dataclass(frozen=True)
class Shown:
    """A picture as annotators get it: under which class, beside which original, and why."""

    variant_id: str
    label: str
    role: Role
    original_id: str | None


def draw(
    exhibits: Sequence[Exhibit], chosen: Collection[str], questionnaire: Questionnaire, alike: Alike
) -> list[Shown]:
    """The chosen pictures under their own classes, and controls from the pictures that were not chosen.

    A known bad one gets a class that nobody would take for its own; `alike` says which ones somebody might.
    """
    wanted = set(chosen)
    work = [exhibit.variant for exhibit in exhibits if exhibit.variant.id in wanted]
    if not work:
        raise UserError("expected pictures to verify, got none; build or mine a workspace that holds edited pictures")
    spare = [exhibit.variant for exhibit in exhibits if exhibit.variant.id not in wanted]
    originals = _originals(exhibits) if questionnaire.show_original else {}

    def shown(variant: Variant, label: str, role: Role) -> Shown:
        return Shown(variant.id, label, role, originals.get(variant.sample_id))

    wrong = _wrong_labels((*work, *spare), questionnaire.seed, alike)
    good, bad = _controls(work, spare, questionnaire, wrong)
    return [
        *(shown(variant, variant.label, "work") for variant in work),
        *(shown(variant, variant.label, "good") for variant in good),
        *(shown(variant, wrong[variant.id], "bad") for variant in bad),
    ]


def fraction(*parts: object) -> float:
    """A number in [0, 1) that depends on the parts alone: the same in every process and on every machine."""
    text = "\0".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big") / 2**56


def _originals(exhibits: Iterable[Exhibit]) -> dict[str | None, str]:
    return {e.variant.sample_id: e.variant.id for e in exhibits if e.variant.attribute == "original"}


def _controls(
    work: Sequence[Variant], spare: Sequence[Variant], questionnaire: Questionnaire, wrong: Mapping[str, str]
) -> tuple[list[Variant], list[Variant]]:
    """Known good ones are unchanged photos, known bad ones any other picture, which will get a wrong class."""
    count = _control_count(len(work), questionnaire)
    sources = {variant.sample_id for variant in work}
    unchanged = [variant for variant in spare if variant.attribute in ("original", "control")]
    # a photo whose edit is the work comes first: mining has found that models know the object in it
    good = sorted(
        _shuffled(unchanged, "good", questionnaire.seed), key=lambda variant: variant.sample_id not in sources
    )
    half = good[: min(count, math.ceil(len(good) / 2))]
    taken = {variant.id for variant in half}
    rest = [variant for variant in spare if variant.id not in taken and variant.id in wrong]
    # an edited picture under a wrong class gives nothing away; an unchanged photo might
    bad = sorted(_shuffled(rest, "bad", questionnaire.seed), key=lambda variant: variant.attribute == "original")
    return half, bad[:count]


def _control_count(pictures: int, questionnaire: Questionnaire) -> int:
    """Enough of each kind for somebody who sees every picture, so that nobody meets a control twice."""
    return math.ceil(questionnaire.control_share * pictures)


def _shuffled(variants: Sequence[Variant], kind: str, seed: int) -> list[Variant]:
    return sorted(variants, key=lambda variant: fraction(seed, kind, variant.id))


def _wrong_labels(variants: Sequence[Variant], seed: int, alike: Alike) -> dict[str, str]:
    """A class for every picture that it surely does not show, where there is one."""
    labels = sorted({variant.label for variant in variants})
    others = {label: [other for other in labels if other != label and not alike(label, other)] for label in labels}
    return {
        variant.id: others[variant.label][int(fraction(seed, "label", variant.id) * len(others[variant.label]))]
        for variant in variants
        if others[variant.label]
    }
