"""The choice of donors: the photo whose background each sample takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from functools import cached_property

from counterfoil.edits.seeds import content_hash
from counterfoil.types import DonorRule, Sample


class Donors:
    """Chooses the donor of a sample; the choice is stable as long as both samples exist.

    The donor is the candidate whose hash with the seed is highest, class first, then sample: a new sample changes
    only the pairs in which its hash is highest.
    """

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._of_label: dict[str, list[Sample]] = defaultdict(list)
        for sample in samples:
            self._of_label[sample.label].append(sample)

    @cached_property
    def _labels(self) -> list[str]:
        return sorted(self._of_label)

    def choose(
        self, sample: Sample, rule: DonorRule, seed: int, excluded: Collection[str] = frozenset()
    ) -> Sample | None:
        """The donor for this sample, none of the excluded ids, or None where no candidate exists."""
        left_out = {sample.id, *excluded}
        labels = self._candidates(sample.label, rule)
        if excluded:
            labels = [label for label in labels if any(other.id not in left_out for other in self._of_label[label])]
        if not labels:
            return None
        label = max(labels, key=lambda label: content_hash(seed, label))
        others = [other for other in self._of_label[label] if other.id not in left_out]
        return max(others, key=lambda other: content_hash(seed, other.digest), default=None)

    def _candidates(self, label: str, rule: DonorRule) -> list[str]:
        if rule == "same":
            return [label]
        if rule == "next":
            following = self._labels[(self._labels.index(label) + 1) % len(self._labels)]
            return [following] if following != label else []
        return [other for other in self._labels if other != label]
