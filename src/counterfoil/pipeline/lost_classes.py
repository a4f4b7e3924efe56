"""Classes of which no photo can be used: a misspelt folder may hide behind masks that are not found."""

from __future__ import annotations

from collections.abc import Sequence

from counterfoil.types import Sample, Skipped, Source


def lost_classes(source: Source, samples: Sequence[Sample], skipped: Sequence[Skipped]) -> tuple[str, ...]:
    """The class folders all of whose photos were left out, by name."""
    if not skipped:
        return ()
    return tuple(sorted(set(source.labels) - {sample.label for sample in samples}))
