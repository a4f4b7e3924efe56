"""What a class is called in a question, and which words of an answer mean it."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType

from counterfoil.errors import UserError
from counterfoil.models.prompts import prompt_name
from counterfoil.models.vlm.reading import folded

Synonyms = Mapping[str, tuple[str, ...]]  # by the class's name in a prompt

_COLUMNS = ["category", "accepted_substrings"]


@dataclass(frozen=True)
class Vocabulary:
    """The names of a set of labels, with the synonyms that count as well."""

    names: Mapping[str, str]  # what people call each label
    synonyms: Synonyms = field(default_factory=lambda: MappingProxyType({}))

    def called(self, label: str) -> str:
        """The label's name in a question."""
        return prompt_name(self.names[label])

    def accepted(self, label: str) -> frozenset[str]:
        """Every wording that counts as this label."""
        name = self.called(label)
        return frozenset(folded(wording) for wording in (name, *self.synonyms.get(name, ())))


@cache
def published_synonyms() -> Synonyms:
    """The synonyms that ImageNet-D's scoring accepts."""
    table = resources.files("counterfoil.models.vlm").joinpath("synonyms.csv")
    return _synonyms(table.read_text(encoding="utf-8"), "synonyms.csv")


def synonyms_with(own: str) -> Synonyms:
    """The published synonyms; a table of one's own, where its file is given, adds to them."""
    if not own:
        return published_synonyms()
    path = Path(own)
    if not path.is_file():
        raise UserError(f"expected a CSV file of synonyms, got '{own}', which is not there")
    added = _synonyms(path.read_text(encoding="utf-8"), own)
    known = published_synonyms()
    return {name: known.get(name, ()) + added.get(name, ()) for name in {**known, **added}}


def _synonyms(text: str, where: str) -> Synonyms:
    table = csv.DictReader(text.splitlines())
    if table.fieldnames != _COLUMNS:
        raise UserError(f"expected the header {','.join(_COLUMNS)} in {where}, got {table.fieldnames}")
    wordings = {prompt_name(row["category"]): (row["accepted_substrings"] or "").split("|") for row in table}
    if any(not wording.strip() for listed in wordings.values() for wording in listed):
        raise UserError(f"expected wordings divided by | in {where}, got an empty one, which every answer would hold")
    return {name: tuple(listed) for name, listed in wordings.items()}
