"""The two-choice question behind a variant: its distractor, and which of the two stands first.

Both are drawn from the content, once per photo: every variant of a photo gets the same question, so that the edit is
the only thing that differs between two answers. The distractor is the label with the highest hash, so a new class
takes over only the questions that it wins.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from counterfoil.errors import UserError
from counterfoil.models.prompts import prompt_name
from counterfoil.models.vlm.vocabulary import Vocabulary
from counterfoil.types import Variant

Order = Literal["random", "faithful"]

_OWN_COLUMNS = ["id", "distractor"]
_PUBLISHED_COLUMNS = ["image_dir", "gt_category", "top1_pred_cate", "top2_pred_cate"]


class Question(NamedTuple):
    """What is asked about one picture."""

    text: str
    truth: str
    distractor: str


@dataclass(frozen=True)
class Questions:
    """Makes the question of a variant."""

    vocabulary: Vocabulary
    labels: tuple[str, ...]  # where distractors are drawn from
    given: Mapping[str, str]  # distractors by the id of a variant or a sample, before any is drawn
    order: Order = "random"
    seed: int = 0

    def about(self, variant: Variant) -> Question:
        """The question, with the truth's place drawn, or first as in the release of ImageNet-D."""
        distractor = self._given(variant) or self._drawn(variant)
        choices = [variant.label, distractor]
        if self.order == "random" and self._hash("order", variant, distractor) & 1:
            choices.reverse()
        return Question(question_among([self.vocabulary.called(label) for label in choices]), variant.label, distractor)

    def _given(self, variant: Variant) -> str | None:
        ids = (variant.id, variant.sample_id or "", _by_stem(variant.sample_id or variant.id))
        found = next((self.given[name] for name in ids if name in self.given), None)
        if found == variant.label:
            raise UserError(f"expected a wrong class as the distractor of '{variant.id}', got its own, '{found}'")
        return found

    def _drawn(self, variant: Variant) -> str:
        accepted = self.vocabulary.accepted(variant.label)
        others = [label for label in self.labels if not accepted & self.vocabulary.accepted(label)]
        if not others:
            raise UserError(f"expected another class to offer beside '{variant.label}', got only {list(self.labels)}")
        return max(others, key=lambda label: self._hash("distractor", variant, label))

    def _hash(self, purpose: str, variant: Variant, label: str) -> int:
        about = [purpose, self.seed, variant.sample_id or variant.id, variant.label, label]
        return int.from_bytes(hashlib.sha256(json.dumps(about).encode()).digest(), "big")


def question_among(names: Sequence[str]) -> str:
    """The question of ImageNet-D's release, word for word."""
    return f"What is the main object in this image? Choose from the following list: {', '.join(names)}."


def read_distractors(file: str, names: Mapping[str, str]) -> dict[str, str]:
    """Distractors by id: a CSV `id,distractor` of one's own, or a questions file of ImageNet-D."""
    path = Path(file)
    if not path.is_file():
        raise UserError(f"expected a file of distractors, got '{file}', which is not there")
    text = path.read_text(encoding="utf-8")
    table = csv.DictReader(text.splitlines(), delimiter="\t" if "\t" in text.partition("\n")[0] else ",")
    if table.fieldnames == _OWN_COLUMNS:
        wrong = {row["id"]: row["distractor"] for row in table}
    elif table.fieldnames == _PUBLISHED_COLUMNS:
        wrong = {_by_stem(row["image_dir"]): _wrong_answer(row) for row in table}
    else:
        raise UserError(f"expected the header {','.join(_OWN_COLUMNS)} in {file}, got {table.fieldnames}")
    labels = {**{prompt_name(name): label for label, name in names.items()}, **{label: label for label in names}}
    return {name: _label(distractor, labels, file) for name, distractor in wrong.items()}


def _wrong_answer(row: Mapping[str, str]) -> str:
    """The surrogate's best answer that is not the truth."""
    first, truth = row["top1_pred_cate"], row["gt_category"]
    return row["top2_pred_cate"] if prompt_name(first) == prompt_name(truth) else first


def _label(distractor: str, labels: Mapping[str, str], file: str) -> str:
    found = labels.get(distractor) or labels.get(prompt_name(distractor))
    if found is None:
        raise UserError(f"expected a label of the model or its name as a distractor in {file}, got '{distractor}'")
    return found


def _by_stem(path: str) -> str:
    """ImageNet-D's pictures have names that are unique in themselves, wherever the archive was unpacked."""
    return f"*/{PurePosixPath(path).stem}"
