"""Label spaces: the classes of a model or a benchmark, their names, and folder names resolved to labels."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any, Literal

from counterfoil.errors import UserError
from counterfoil.types import Sample


def list_class_names(labels: Any) -> list[str] | None:
    """Class names given to Python, in the order of their numbers; None for None.

    They come as a list, an array, or a dict by number, as transformers has `id2label`.
    """
    if labels is None:
        return None
    if isinstance(labels, Mapping) and set(labels) == set(range(len(labels))):
        labels = [labels[number] for number in range(len(labels))]
    if isinstance(labels, str | bytes | set | frozenset | Mapping) or not isinstance(labels, Iterable):
        raise UserError(f"expected labels as a list of names, one for each class in order, got {type(labels).__name__}")
    names = list(labels)
    other = next((name for name in names if not isinstance(name, str)), None)
    if other is not None or None in names:
        raise UserError(f"expected labels as a list of names, got {type(other).__name__} among them")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"expected each label once, got '{twice}' more than once")
    return [str(name) for name in names]


def _folded(name: str) -> str:
    """The text in a common spelling, the same for "Tiger_Cat", "tiger cat" and "tiger-cat"."""
    return " ".join(name.replace("_", " ").replace("-", " ").lower().split())


@dataclass(frozen=True)
class LabelSpace:
    """The classes of a benchmark or a model, with their names."""

    name: str
    labels: tuple[str, ...]
    names: tuple[str, ...]  # English name of each label
    accepted: tuple[tuple[str, ...], ...] = ()  # the model labels that count as each label; () for itself only
    pooling: Literal["best", "mean"] = "best"  # a class's score: that of its best model label, or their mean

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
        """The English name of this label."""
        return self._name_of[label]

    def ids_of(self, label: str) -> tuple[str, ...]:
        """The model labels that count as this label."""
        return self._ids_of.get(label, (label,))

    @cached_property
    def _ids_of(self) -> dict[str, tuple[str, ...]]:
        return dict(zip(self.labels, self.accepted, strict=False))

    def lookup(self, text: str) -> tuple[str, ...]:
        """Every label that a text such as "tench, Tinca tinca" may mean, by id or synonym."""
        if text in self:
            return (text,)
        words = (text, *text.split(","))
        return tuple(dict.fromkeys(label for word in words for label in self._labels_called.get(_folded(word), [])))

    def calls(self, text: str) -> bool:
        """Whether a text is a label or a class name of this space."""
        return text in self or _folded(text) in self._labels_called

    def resolve(self, text: str) -> str:
        """The label for a folder's name: a label or an unambiguous class name; raises `UserError` for others."""
        if text in self:
            return text
        matches = self._labels_called.get(_folded(text), [])
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise UserError(f"label '{text}' names several classes of {self.name}: use one of {', '.join(matches)}")
        raise UserError(f"expected a label of {self.name}, got '{text}'{self._nearest(text)}")

    def resolve_all(self, texts: Iterable[str]) -> dict[str, str]:
        """The label for each of several folder names; raises one `UserError` that names all that are unknown."""
        found, unknown = {}, {}
        for text in sorted(set(texts)):
            try:
                found[text] = self.resolve(text)
            except UserError as error:
                unknown[text] = error
        if len(unknown) == 1:
            raise next(iter(unknown.values()))
        if unknown:
            raise UserError(
                f"expected labels of {self.name}, got {len(unknown)} that are none of them:"
                f" {', '.join(map(self._with_nearest, unknown))}; rename the class folders, or regroup the"
                " classes where a command takes --classes FILE (run, build, evaluate)"
            )
        return found

    def _with_nearest(self, text: str) -> str:
        """A text with the label that is spelt most like it."""
        close = self._close(text, 1)
        return f"'{text}' (nearest '{close[0]}')" if close else f"'{text}'"

    def _close(self, text: str, most: int) -> list[str]:
        """Labels and names that are spelt much like a text."""
        spellings = {**{_folded(label): label for label in self.labels}, **{name: name for name in self._labels_called}}
        return [spellings[match] for match in difflib.get_close_matches(_folded(text), spellings, n=most, cutoff=0.5)]

    def _nearest(self, text: str) -> str:
        close = ", ".join(f"'{name}'" for name in self._close(text, 3))
        return f"; the nearest are {close}" if close else ", and none is near"


def custom_label_space(name: str, labels: Sequence[str]) -> LabelSpace:
    """A user's own classes, where label and name are the same."""
    return LabelSpace(name, tuple(labels), tuple(labels))


def read_label_table(file: str) -> list[dict[str, str]]:
    """The rows of a table shipped with this package."""
    text = resources.files("counterfoil.labels").joinpath(file).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


BACKGROUND = "background"  # the label of a column that stands for no class


@cache
def imagenet1k() -> LabelSpace:
    """ImageNet-1k in the order of its columns."""
    rows = read_label_table("imagenet1k.csv")
    return LabelSpace("imagenet1k", tuple(row["wnid"] for row in rows), tuple(row["name"] for row in rows))


def match_label_space(labels: Sequence[str]) -> LabelSpace:
    """The known space of these labels, else a custom one."""
    known = imagenet1k()
    if all(label in known for label in labels if label != BACKGROUND):
        return known
    return custom_label_space("the model", labels)


_RECOGNISED = 0.95  # the share of names that must match; libraries spell a few classes differently


def match_imagenet_columns(texts: Sequence[str]) -> tuple[str, ...] | None:
    """The WordNet ids of columns called "tench, Tinca tinca" and so on; None where they are not ImageNet's.

    Every name is looked up separately, so columns may be in any order. A name that ImageNet uses twice ("crane") or
    not at all gets the id left over, where all other columns are in ImageNet's order.
    """
    known = imagenet1k()
    if len(texts) != len(known.labels):
        return None
    candidates = [known.lookup(text) for text in texts]
    certain = [labels[0] for labels in candidates if len(labels) == 1]
    if len(certain) < _RECOGNISED * len(texts) or len(set(certain)) < len(certain):
        return None
    left_over = [label for label in known.labels if label not in set(certain)]
    uncertain = [column for column, labels in enumerate(candidates) if len(labels) != 1]
    in_order = all(
        label == labels[0] for label, labels in zip(known.labels, candidates, strict=True) if len(labels) == 1
    )
    if uncertain and not in_order:
        return None
    fill = dict(zip(uncertain, left_over, strict=True))
    return tuple(fill.get(column) or labels[0] for column, labels in enumerate(candidates))


def infer_label_space(samples: Sequence[Sample], lost: Sequence[str]) -> LabelSpace:
    """The label space without a model: ImageNet's if every folder names one of its classes, else the folders' names."""
    labels = sorted({sample.label for sample in samples})
    try:
        for label in labels:
            imagenet1k().resolve(label)
    except UserError:
        return custom_label_space("the folders", sorted({*labels, *lost}))
    return imagenet1k()
