"""Edits of other packages written before `counterfoil.Edit`: `__call__(picture, rng)`, with `donor` for some."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, cast

import numpy as np

from counterfoil.edit.base import Edit, Needs, Subject, Supplied
from counterfoil.types import Picture


def adapted(kind: type[Any]) -> type[Edit]:
    """A subclass that keeps the new contract by calling the old methods; warns, since the next release drops it."""
    warnings.warn(
        f"{kind.__module__}.{kind.__name__} is an edit of the old form: derive it from counterfoil.Edit and rename"
        " `__call__` to `apply(subject, rng, supplied)`; the next release no longer takes the old form",
        DeprecationWarning,
        stacklevel=2,
    )
    members = {"__module__": kind.__module__, "__doc__": kind.__doc__}
    return cast("type[Edit]", dataclasses.dataclass(frozen=True)(type(kind.__name__, (kind, _OldForm), members)))


class _OldForm(Edit):
    """What the old methods mean in terms of the new ones; the old class comes before this one."""

    @property
    def needs(self) -> Needs:
        """The donor, the photo and the GPU, which were named by fields and properties."""
        # These names are the old contract of other packages' classes, of which none is a type of ours.
        return Needs(
            donor=getattr(self, "donors", None),
            photo=bool(getattr(self, "from_photo", False)),
            gpu=getattr(self, "device", None) == "cuda",
        )

    def choose(self, seed: int) -> Edit:
        """What was called `chosen`."""
        chosen = getattr(self, "chosen", None)
        return cast("Edit", chosen(seed)) if chosen is not None else self

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """What was `__call__`."""
        if self.needs.donor is None:
            return self(subject.picture, rng)
        return self(subject.picture, rng, supplied.donor.picture)
