"""Balance over classes and attributes.

Model family from its address; rules over surrogate answers; subsets of surrogates; common wrong answers.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError

Balance: TypeAlias = Literal["class", "attribute", "both"]
Group = TypeVar("Group", bound=Hashable)


class Spread(NamedTuple):
    """How evenly pictures spread over groups; a group that has none counts as a group."""

    groups: int  # among the candidates
    filled: int  # with a kept picture
    evenness: float  # entropy over the most there could be: 1 even, 0 all in one group; NaN with one group
    effective: float  # how many equal groups would have the same entropy
    gini: float  # 0 even, towards 1 all in one group
    largest: float  # share of the pictures in the largest group


def measure_spread(kept: Iterable[Group], candidates: Iterable[Group]) -> Spread:
    """The spread of the kept pictures' groups over the groups that candidates come from."""
    counts = Counter(dict.fromkeys(candidates, 0))
    counts.update(kept)
    sizes, total = sorted(counts.values()), sum(counts.values())
    if not total:
        return Spread(len(sizes), 0, math.nan, math.nan, math.nan, math.nan)
    entropy = -sum(size / total * math.log(size / total) for size in sizes if size)
    ranked = sum(rank * size for rank, size in enumerate(sizes, start=1))
    return Spread(
        groups=len(sizes),
        filled=sum(size > 0 for size in sizes),
        evenness=(entropy + 0.0) / math.log(len(sizes)) if len(sizes) > 1 else math.nan,
        effective=math.exp(entropy),
        gini=2 * ranked / (len(sizes) * total) - (len(sizes) + 1) / len(sizes),
        largest=sizes[-1] / total,
    )


def balance_groups(groups: Mapping[str, Group], most: int | None = None) -> tuple[list[str], int]:
    """The ids kept when every group may have `most` (the smallest group's number), and that number.

    Which go is settled by the hash of the id, so that it depends on nothing else: the same picture wins again.
    """
    members: dict[Group, list[str]] = {}
    for name, group in groups.items():
        members.setdefault(group, []).append(name)
    limit = most or min((len(names) for names in members.values()), default=0)
    chosen = {name for names in members.values() for name in sorted(names, key=_hash_id)[:limit]}
    return [name for name in groups if name in chosen], limit


def balance_group(balance: Balance, label: str, attribute: str) -> tuple[str, ...]:
    """What a picture is balanced by: its class, its attribute, or both together."""
    return {"class": (label,), "attribute": (attribute,), "both": (label, attribute)}[balance]


def _hash_id(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


_FAMILIES = (
    ("CLIP", r"clip|siglip|align"),
    ("vision-language model", r"llava|minigpt|qwen|gpt|blip|gemma|internvl|idefics|pixtral|^vlm\b|^https?:"),
    ("ConvNeXt", r"convnext"),
    ("EfficientNet", r"efficientnet|effnet"),
    ("MobileNet", r"mobilenet|mobileone|mobilevit"),
    ("PP-LCNet", r"lcnet"),
    ("Swin", r"swin"),
    ("DINO", r"dino"),
    ("MAE", r"\bmae\b|_mae"),
    ("BEiT", r"beit|eva0?2"),
    ("DeiT", r"deit|cait"),
    ("ViT", r"vit"),
    ("Mixer", r"mixer|resmlp"),
    ("DenseNet", r"densenet"),
    ("RegNet", r"regnet"),
    ("Inception", r"inception|xception|googlenet"),
    ("VGG", r"vgg"),
    ("AlexNet", r"alexnet"),
    ("SqueezeNet", r"squeezenet"),
    ("ShuffleNet", r"shufflenet"),
    ("ResNet", r"res(net|next|nest)|seresnet|\bbit\b"),
)  # the first that fits: a CLIP with a ViT inside is a CLIP


_FOLDERS = re.compile(r"[^:]*[/\\](?=[^:/\\]+\.(?:csv|onnx|parquet|pt|pth|py|safetensors)(?::|$))", re.IGNORECASE)


def guess_family(address: str) -> str:
    """The family that the address names, or the letters its last part begins with; folders of a file say nothing."""
    lowered = _FOLDERS.sub("", address).lower()
    for name, pattern in _FAMILIES:
        if re.search(pattern, lowered):
            return name
    last = re.split(r"[/:\\]", address.rstrip("/"))[-1]
    letters = re.match(r"[A-Za-z]+", last)
    return letters[0] if letters else address


RuleKind: TypeAlias = Literal["all", "at-least", "mean-probability"]
OriginalRule: TypeAlias = Literal["failing", "all", "none"]

_THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7)  # of the mean probability, told where a rule keeps nothing


class AnswerMatrix(NamedTuple):
    """What models said to the pictures that may be kept, (models, pictures) each."""

    right: NDArray[np.float64]  # 1 right, 0 wrong, NaN not scored
    truth: NDArray[np.float64]  # probability of the true class, NaN where there is none
    original: NDArray[np.float64]  # the same as `right`, of the picture's unedited original; NaN where there is none

    def of(self, models: slice | list[int] | NDArray[np.intp]) -> AnswerMatrix:
        """What some of the models said."""
        return AnswerMatrix(self.right[models], self.truth[models], self.original[models])


@dataclass(frozen=True)
class Rule:
    """What makes a picture hard enough to keep.

    `original` says where a failure counts: "failing" of a surrogate that has the unedited original right, "all" only
    where all surrogates have it right, "none" everywhere.
    """

    kind: RuleKind = "all"
    least: int = 1  # surrogates that have to fail, for "at-least"
    below: float = 0.1  # mean probability of the true class, for "mean-probability"
    original: OriginalRule = "failing"

    def __post_init__(self) -> None:
        if self.least < 1:
            raise UserError(f"expected at least 1 failing surrogate, got {self.least}")
        if not 0 < self.below <= 1:
            raise UserError(f"expected a mean probability above 0 and at most 1, got {self.below:g}")

    def check(self, surrogates: int) -> None:
        """Refuse what so many surrogates cannot fulfil."""
        if surrogates < 1:
            raise UserError("expected at least one surrogate, got none; give --surrogate embedded:efficientnet-lite0")
        if self.kind == "at-least" and self.least > surrogates:
            raise UserError(f"expected at most as many failures as surrogates, {surrogates}, got at least {self.least}")

    def words(self, surrogates: int) -> str:
        """The rule as it is recorded."""
        mean = self.kind == "mean-probability"
        told = self._failure(surrogates)
        if self.original == "all":
            return f"{told}; every surrogate right on the original"
        if self.original == "failing":
            who = "averaged over the surrogates" if mean else "counting surrogates"
            return f"{told}, {who} that are right on the original"
        return f"{told}, whatever was said to the original"

    def needed(self, sizes: NDArray[np.intp]) -> NDArray[np.intp]:
        """How many of so many surrogates have to fail; fewer surrogates than asked for have to fail all."""
        return sizes if self.kind == "all" else np.minimum(self.least, sizes)

    def _failure(self, surrogates: int) -> str:
        if self.kind == "mean-probability":
            return f"mean probability of the true class below {self.below:g} over {_counted(surrogates)}"
        if self.kind == "all" or self.least == surrogates:
            return f"wrong for {_everyone(surrogates)}"
        return f"wrong for at least {self.least} of {surrogates} surrogates"


def apply_to_groups(said: AnswerMatrix, rule: Rule, groups: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What each group of surrogates would keep, (groups, pictures); `groups` is (groups, surrogates)."""
    members = groups.astype(np.float64)
    counts = np.ones_like(said.right, bool) if rule.original == "none" else said.original == 1
    if rule.kind == "mean-probability":
        kept = _apply_probability(said, rule, members, counts if rule.original == "failing" else np.ones_like(counts))
    else:
        fails = (said.right == 0) & (counts if rule.original == "failing" else np.ones_like(counts))
        kept = members @ fails >= rule.needed(groups.sum(axis=1))[:, None]
    return kept & (members @ ~counts == 0) if rule.original == "all" else kept


def apply_rule(said: AnswerMatrix, rule: Rule) -> NDArray[np.bool_]:
    """What all surrogates together keep, (pictures,)."""
    kept: NDArray[np.bool_] = apply_to_groups(said, rule, np.ones((1, len(said.right)), bool))[0]
    return kept


def count_per_setting(said: AnswerMatrix, rule: Rule) -> dict[str, int]:
    """How many pictures other settings of the rule would keep, the strictest first."""
    if rule.kind == "mean-probability":
        milder = [(f"below {t:g}", Rule(rule.kind, below=t, original=rule.original)) for t in _THRESHOLDS]
    else:
        numbers = range(len(said.right), 0, -1)
        milder = [(f"at least {n}", Rule("at-least", least=n, original=rule.original)) for n in numbers]
    return {name: int(apply_rule(said, setting).sum()) for name, setting in milder}


def _apply_probability(
    said: AnswerMatrix, rule: Rule, members: NDArray[np.float64], counts: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Where the mean probability of the true class, over the surrogates that count, lies below the threshold."""
    known = np.isfinite(said.truth) & counts
    total, many = members @ np.where(known, said.truth, 0.0), members @ known
    return np.asarray((total < rule.below * many) & (many > 0))


def _counted(surrogates: int) -> str:
    return f"{surrogates} surrogate{'' if surrogates == 1 else 's'}"


def _everyone(surrogates: int) -> str:
    return {1: "the surrogate", 2: "both surrogates"}.get(surrogates, f"all {surrogates} surrogates")


MOST_SURROGATES_FOR_ALL = 12  # 4,095 groups; past this a sample of each size is drawn
_SAMPLED = 100  # groups of a size


def list_subsets(surrogates: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Every non-empty group as a row, (groups, surrogates), small ones first; sampled past twelve surrogates."""
    rows = [row for size in range(1, surrogates + 1) for row in _subsets_of_size(surrogates, size, rng)]
    masks = np.zeros((len(rows), surrogates), bool)
    for mask, row in zip(masks, rows, strict=True):
        mask[list(row)] = True
    return masks


def _subsets_of_size(surrogates: int, size: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    if surrogates <= MOST_SURROGATES_FOR_ALL or math.comb(surrogates, size) <= _SAMPLED:
        return list(itertools.combinations(range(surrogates), size))
    drawn: dict[tuple[int, ...], None] = {}
    while len(drawn) < _SAMPLED:
        drawn[tuple(sorted(rng.choice(surrogates, size, replace=False).tolist()))] = None
    return list(drawn)


NO_ANSWER = -1


def find_common_answer(answers: NDArray[np.intp], wrong: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The class that all failing surrogates name, (pictures,); -1 where they differ or fewer than two fail.

    Both are (surrogates, pictures); an answer is the position of a class, -1 where there is none.
    """
    failing = wrong & (answers >= 0)
    highest = np.where(failing, answers, -1).max(axis=0, initial=-1)
    lowest = np.where(failing, answers, np.iinfo(np.intp).max).min(axis=0, initial=np.iinfo(np.intp).max)
    return np.where((failing.sum(axis=0) > 1) & (highest == lowest), highest, NO_ANSWER)


def repeats_common_answer(
    answers: NDArray[np.intp], wrong: NDArray[np.bool_], common: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Where a failing model names the class that the surrogates have in common, (models, pictures)."""
    return np.asarray(wrong & (common >= 0) & (answers == common))
