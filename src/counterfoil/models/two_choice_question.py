"""Two-choice questions: the distractor of a variant, and the class names in a question.

Distractor and order are drawn once per photo, from a hash of its content: every variant of a photo gets the same
question, so that only the edit differs between two answers. The distractor is the label with the highest hash, so a
new class changes only the questions in which its hash is the highest.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Literal, NamedTuple

from counterfoil.errors import UserError
from counterfoil.models.model_options import format_class_name
from counterfoil.models.vlm_answer import fold_text
from counterfoil.types import Variant

Synonyms = Mapping[str, tuple[str, ...]]  # by the class's name in a prompt
_COLUMNS = ["category", "accepted_substrings"]


@dataclass(frozen=True)
class Vocabulary:
    """The names of a set of labels, with accepted synonyms."""

    names: Mapping[str, str]  # English name of each label
    synonyms: Synonyms = field(default_factory=lambda: MappingProxyType({}))

    def called(self, label: str) -> str:
        """The label's name in a question."""
        return format_class_name(self.names[label])

    def accepted(self, label: str) -> frozenset[str]:
        """Every wording that counts as this label."""
        name = self.called(label)
        return frozenset(fold_text(wording) for wording in (name, *self.synonyms.get(name, ())))


@cache
def load_published_synonyms() -> Synonyms:
    """The synonyms that ImageNet-D's scoring accepts."""
    table = resources.files("counterfoil.models").joinpath("synonyms.csv")
    return _parse_synonyms(table.read_text(encoding="utf-8"), "synonyms.csv")


def read_synonyms(own: str) -> Synonyms:
    """The published synonyms; a user's file, where given, adds to them."""
    if not own:
        return load_published_synonyms()
    path = Path(own)
    if not path.is_file():
        raise UserError(f"expected a CSV file of synonyms, got '{own}', which is not there")
    added = _parse_synonyms(path.read_text(encoding="utf-8"), own)
    known = load_published_synonyms()
    return {name: known.get(name, ()) + added.get(name, ()) for name in {**known, **added}}


def _parse_synonyms(text: str, where: str) -> Synonyms:
    table = csv.DictReader(text.splitlines())
    if table.fieldnames != _COLUMNS:
        raise UserError(f"expected the header {','.join(_COLUMNS)} in {where}, got {table.fieldnames}")
    wordings = {format_class_name(row["category"]): (row["accepted_substrings"] or "").split("|") for row in table}
    if any(not wording.strip() for listed in wordings.values() for wording in listed):
        raise UserError(f"expected wordings divided by | in {where}, got an empty one, which every answer would hold")
    return {name: tuple(listed) for name, listed in wordings.items()}


Order = Literal["random", "faithful"]

_OWN_COLUMNS = ["id", "distractor"]
_PUBLISHED_COLUMNS = ["image_dir", "gt_category", "top1_pred_cate", "top2_pred_cate"]


class TwoChoiceQuestion(NamedTuple):
    """What is asked about one picture."""

    text: str
    truth: str
    distractor: str


@dataclass(frozen=True)
class Questions:
    """Makes the question of a variant."""

    vocabulary: Vocabulary
    labels: tuple[str, ...]  # where distractors are drawn from
    given: Mapping[str, str]  # given distractors by variant or sample id; others are drawn
    order: Order = "random"
    seed: int = 0

    def about(self, variant: Variant) -> TwoChoiceQuestion:
        """The question; the true class is at a drawn position, or first as in ImageNet-D's release."""
        distractor = self._given_distractor(variant) or self._draw_distractor(variant)
        choices = [variant.label, distractor]
        if self.order == "random" and self._hash("order", variant, distractor) & 1:
            choices.reverse()
        return TwoChoiceQuestion(
            format_question([self.vocabulary.called(label) for label in choices]), variant.label, distractor
        )

    def _given_distractor(self, variant: Variant) -> str | None:
        ids = (variant.id, variant.sample_id or "", _stem_key(variant.sample_id or variant.id))
        distractor = next((self.given[name] for name in ids if name in self.given), None)
        if distractor == variant.label:
            raise UserError(f"expected a wrong class as the distractor of '{variant.id}', got its own, '{distractor}'")
        return distractor

    def _draw_distractor(self, variant: Variant) -> str:
        accepted = self.vocabulary.accepted(variant.label)
        others = [label for label in self.labels if not accepted & self.vocabulary.accepted(label)]
        if not others:
            raise UserError(f"expected another class to offer beside '{variant.label}', got only {list(self.labels)}")
        return max(others, key=lambda label: self._hash("distractor", variant, label))

    def _hash(self, purpose: str, variant: Variant, label: str) -> int:
        about = [purpose, self.seed, variant.sample_id or variant.id, variant.label, label]
        return int.from_bytes(hashlib.sha256(json.dumps(about).encode()).digest(), "big")


def format_question(names: Sequence[str]) -> str:
    """The question of ImageNet-D's release, word for word."""
    return f"What is the main object in this image? Choose from the following list: {', '.join(names)}."


def read_distractors(file: str, names: Mapping[str, str]) -> dict[str, str]:
    """Distractors by id: a user's CSV `id,distractor`, or a questions file of ImageNet-D."""
    path = Path(file)
    if not path.is_file():
        raise UserError(f"expected a file of distractors, got '{file}', which is not there")
    text = path.read_text(encoding="utf-8")
    table = csv.DictReader(text.splitlines(), delimiter="\t" if "\t" in text.partition("\n")[0] else ",")
    if table.fieldnames == _OWN_COLUMNS:
        wrong = {row["id"]: row["distractor"] for row in table}
    elif table.fieldnames == _PUBLISHED_COLUMNS:
        wrong = {_stem_key(row["image_dir"]): _wrong_answer(row) for row in table}
    else:
        raise UserError(f"expected the header {','.join(_OWN_COLUMNS)} in {file}, got {table.fieldnames}")
    labels = {**{format_class_name(name): label for label, name in names.items()}, **{label: label for label in names}}
    return {name: _find_label(distractor, labels, file) for name, distractor in wrong.items()}


def _wrong_answer(row: Mapping[str, str]) -> str:
    """The surrogate's best answer other than the true label."""
    first, truth = row["top1_pred_cate"], row["gt_category"]
    return row["top2_pred_cate"] if format_class_name(first) == format_class_name(truth) else first


def _find_label(distractor: str, labels: Mapping[str, str], file: str) -> str:
    label = labels.get(distractor) or labels.get(format_class_name(distractor))
    if label is None:
        raise UserError(f"expected a label of the model or its name as a distractor in {file}, got '{distractor}'")
    return label


def _stem_key(path: str) -> str:
    """The file's stem: names are unique in ImageNet-D, wherever the archive was unpacked."""
    return f"*/{PurePosixPath(path).stem}"
