"""Label spaces of published benchmarks.

Classes.json: classes of one's own; ImageNet columns recognised by English names; label space: names, WordNet ids,
lookup.
"""

from __future__ import annotations

import csv
import difflib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path

from pydantic import BaseModel, ConfigDict, RootModel, ValidationError

from counterfoil.errors import UserError, did_you_mean
from counterfoil.types import Sample


def _folded(name: str) -> str:
    """Spelling that "Tiger_Cat", "tiger cat" and "tiger-cat" share."""
    return " ".join(name.replace("_", " ").replace("-", " ").lower().split())


@dataclass(frozen=True)
class LabelSpace:
    """The classes a benchmark or a model speaks of."""

    name: str
    labels: tuple[str, ...]
    names: tuple[str, ...]  # what people call each label
    accepted: tuple[tuple[str, ...], ...] = ()  # of each label, the model labels that count as it; () for itself alone

    def __post_init__(self) -> None:
        used: dict[str, str] = {}
        for label, ids in zip(self.labels, self.accepted, strict=False):
            for name in ids:
                if used.setdefault(name, label) != label:
                    raise UserError(
                        f"expected each id in one class of {self.name}, got '{name}' in '{used[name]}' and '{label}'"
                    )

    def __contains__(self, label: str) -> bool:
        return label in self._name_of

    @cached_property
    def _name_of(self) -> dict[str, str]:
        return dict(zip(self.labels, self.names, strict=True))

    @cached_property
    def _labels_called(self) -> dict[str, list[str]]:
        called: dict[str, list[str]] = {}
        for label, name in self._name_of.items():
            called.setdefault(_folded(name), []).append(label)
        return called

    def name_of(self, label: str) -> str:
        """What people call this label."""
        return self._name_of[label]

    def ids_of(self, label: str) -> tuple[str, ...]:
        """The model labels that count as this label."""
        return self._ids_of.get(label, (label,))

    @cached_property
    def _ids_of(self) -> dict[str, tuple[str, ...]]:
        return dict(zip(self.labels, self.accepted, strict=False))

    def lookup(self, text: str) -> tuple[str, ...]:
        """Every label that a text such as "tench, Tinca tinca" may mean, by its id or by any of its synonyms."""
        if text in self:
            return (text,)
        words = (text, *text.split(","))
        return tuple(dict.fromkeys(label for word in words for label in self._labels_called.get(_folded(word), [])))

    def calls(self, text: str) -> bool:
        """Whether a text is a label or a class name of this space."""
        return text in self or _folded(text) in self._labels_called

    def resolve(self, text: str) -> str:
        """The label that a folder's name means: the label itself or an unambiguous class name."""
        if text in self:
            return text
        found = self._labels_called.get(_folded(text), [])
        if len(found) == 1:
            return found[0]
        if found:
            raise UserError(f"label '{text}' names several classes of {self.name}: use one of {', '.join(found)}")
        raise UserError(f"expected a label of {self.name}, got '{text}'{self._nearest(text)}")

    def _nearest(self, text: str) -> str:
        spellings = {**{_folded(label): label for label in self.labels}, **{name: name for name in self._labels_called}}
        close = difflib.get_close_matches(_folded(text), spellings, n=3, cutoff=0.5)
        named = ", ".join(f"'{spellings[match]}'" for match in close)
        return f"; the nearest are {named}" if close else ", and none is near"


def own_space(name: str, labels: Sequence[str]) -> LabelSpace:
    """A user's own classes, where label and name are the same."""
    return LabelSpace(name, tuple(labels), tuple(labels))


@cache
def imagenet1k() -> LabelSpace:
    """ImageNet-1k in the order of its columns."""
    text = resources.files("counterfoil.labels").joinpath("imagenet1k.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    return LabelSpace("imagenet1k", tuple(row["wnid"] for row in rows), tuple(row["name"] for row in rows))


def space_of(labels: Sequence[str]) -> LabelSpace:
    """The known space that these labels belong to, else a space of one's own."""
    known = imagenet1k()
    if all(label in known for label in labels):
        return known
    return own_space("the model", labels)


_EXAMPLE = '{"cat": ["n02123045", "n02123159"], "dog": {"ids": ["n02085620"], "name": "small dog"}}'


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    ids: tuple[str, ...] = ()
    name: str | None = None


class _Classes(RootModel[dict[str, _Entry | tuple[str, ...] | str] | tuple[str, ...]]):
    """Class to the ids it accepts, or a plain list of classes."""


def read_classes(path: Path) -> LabelSpace:
    """The label space that a JSON file describes."""
    try:
        found = _Classes.model_validate(json.loads(path.read_text(encoding="utf-8"))).root
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, ValidationError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise UserError(f"expected classes such as {_EXAMPLE} in {path}, got: {reason}") from error
    entries = {label: _entry(value) for label, value in found.items()} if isinstance(found, dict) else {}
    labels = tuple(found)
    if len(set(labels)) < 2 or len(set(labels)) < len(labels):
        raise UserError(f"expected at least two classes, each once, in {path}, got {len(labels)}")
    names = tuple((entries[label].name if label in entries else None) or label for label in labels)
    return LabelSpace(path.name, labels, names, tuple(_accepted(entries.get(label, _Entry())) for label in labels))


def _entry(value: _Entry | tuple[str, ...] | str) -> _Entry:
    if isinstance(value, _Entry):
        return value
    return _Entry(ids=(value,) if isinstance(value, str) else value)


def _accepted(entry: _Entry) -> tuple[str, ...]:
    """The ids as a model names its columns: an ImageNet class may be given by its English name."""
    known = imagenet1k()
    return tuple(known.resolve(text) if known.calls(text) else text for text in entry.ids)


_MERGED_IN_IMAGENET_S = {  # classes that ImageNet-S-919 takes together
    "n04356056": "n04355933",
    "n04493381": "n02808440",
    "n03642806": "n03832673",
    "n04008634": "n03773504",
    "n03887697": "n15075141",
}


def _from_table(name: str, file: str) -> LabelSpace:
    text = resources.files("counterfoil.labels").joinpath(file).read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    ids = tuple(tuple(row["ids"].split()) for row in rows)
    return LabelSpace(name, tuple(row["label"] for row in rows), tuple(row["name"] for row in rows), ids)


@cache
def imagenet_d() -> LabelSpace:
    """The 113 categories of ImageNet-D by folder name; nine of them accept several ImageNet ids."""
    return _from_table("imagenet-d", "imagenet_d.csv")


@cache
def imagenet9() -> LabelSpace:
    """The nine super-classes of the Backgrounds challenge, each of 16 to 116 ImageNet classes."""
    return _from_table("imagenet-9", "imagenet9.csv")


@cache
def ximagenet12() -> LabelSpace:
    """The twelve classes of XImageNet-12."""
    return _from_table("ximagenet-12", "ximagenet12.csv")


@cache
def imagenet_a() -> LabelSpace:
    """The 200 ImageNet classes of ImageNet-A."""
    return _from_table("imagenet-a", "imagenet_a.csv")


@cache
def imagenet_r() -> LabelSpace:
    """The 200 ImageNet classes of ImageNet-R."""
    return _from_table("imagenet-r", "imagenet_r.csv")


@cache
def imagenet_s_ids() -> dict[str, int]:
    """The number that a class has in the masks of ImageNet-S-919, by its WordNet id."""
    text = resources.files("counterfoil.labels").joinpath("imagenet_s919.csv").read_text(encoding="utf-8")
    ids = {row["wnid"]: int(row["id"]) for row in csv.DictReader(text.splitlines())}
    return {**ids, **{merged: ids[into] for merged, into in _MERGED_IN_IMAGENET_S.items()}}


SPACES: dict[str, Callable[[], LabelSpace]] = {
    "imagenet1k": imagenet1k,
    "imagenet-d": imagenet_d,
    "imagenet-9": imagenet9,
    "ximagenet-12": ximagenet12,
    "imagenet-a": imagenet_a,
    "imagenet-r": imagenet_r,
}


def space_named(text: str) -> LabelSpace:
    """A known space by its name, or a user's own classes from a JSON file."""
    if text in SPACES:
        return SPACES[text]()
    if Path(text).is_file():
        return read_classes(Path(text))
    raise UserError(
        f"expected classes as one of {', '.join(SPACES)} or a JSON file, got '{text}', which is no file"
        f"{did_you_mean(text, SPACES)}"
    )


_RECOGNISED = 0.95  # the share of names that must fit; libraries spell a few classes in their own way


def imagenet_columns(texts: Sequence[str]) -> tuple[str, ...] | None:
    """The WordNet ids of columns called "tench, Tinca tinca" and so on; None where they are not ImageNet's.

    Every name is looked up by itself, so columns in another order keep their meaning. A name that ImageNet uses
    twice ("crane") or not at all takes the place left over, where all other columns stand in ImageNet's own order.
    """
    known = imagenet1k()
    if len(texts) != len(known.labels):
        return None
    found = [known.lookup(text) for text in texts]
    certain = [candidates[0] for candidates in found if len(candidates) == 1]
    if len(certain) < _RECOGNISED * len(texts) or len(set(certain)) < len(certain):
        return None
    left_over = [label for label in known.labels if label not in set(certain)]
    uncertain = [place for place, candidates in enumerate(found) if len(candidates) != 1]
    in_order = all(known.labels[place] == found[place][0] for place in range(len(texts)) if place not in set(uncertain))
    if uncertain and not in_order:
        return None
    fill = dict(zip(uncertain, left_over, strict=True))
    return tuple(fill.get(place) or found[place][0] for place in range(len(texts)))


def space_of_folders(samples: Sequence[Sample], lost: Sequence[str]) -> LabelSpace:
    """Where no model names its labels: ImageNet's if the folders speak it, else the folders' own names."""
    labels = sorted({sample.label for sample in samples})
    try:
        for label in labels:
            imagenet1k().resolve(label)
    except UserError:
        return own_space("the folders", sorted({*labels, *lost}))
    return imagenet1k()
