"""What annotators are told of the class they are asked about: its name, a definition, and photos of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from counterfoil.assets.cache import fetch_asset
from counterfoil.errors import UserError
from counterfoil.labels.benchmark_classes import SPACES
from counterfoil.labels.label_space import LabelSpace, imagenet1k
from counterfoil.store.workspace import Workspace
from counterfoil.types import Variant
from counterfoil.verification.hidden_controls import hash_fraction
from counterfoil.verification.questionnaire import Questionnaire

REFERENCES = 3  # photos shown beside the questions
_IMAGENET_DEFINITIONS = "imagenet-definitions"


@dataclass(frozen=True)
class ClassGuide:
    """What is said and shown of one class."""

    name: str
    definition: str = ""
    references: tuple[Variant, ...] = ()  # unedited photos of the class, in the order of preference

    def choose_references(self, sample_id: str | None) -> tuple[str, ...]:
        """The variants to show beside a picture: never the photo that the picture was made from."""
        others = [variant.id for variant in self.references if variant.sample_id != sample_id]
        return tuple(others[:REFERENCES])


def name_classes(workspace: Workspace, questionnaire: Questionnaire | None = None) -> LabelSpace:
    """The workspace's labels with readable names: the questionnaire's, the label space's, else the label itself."""
    labels = sorted({row.variant.label for row in workspace.pictures})
    described = questionnaire.classes if questionnaire is not None else {}
    painted = str(workspace.record.get("classes") or "")
    spaces = [SPACES[painted]()] if painted in SPACES else []
    names = tuple(
        (described[label].name if label in described else "") or _find_name(label, [*spaces, imagenet1k()])
        for label in labels
    )
    return LabelSpace("the pictures", tuple(labels), names)


def _find_name(label: str, spaces: Sequence[LabelSpace]) -> str:
    named = next((space.name_of(label) for space in spaces if label in space), label)
    return " ".join(named.replace("_", " ").split()) or label


def check_described_classes(questionnaire: Questionnaire, labels: Collection[str]) -> None:
    """Raise `UserError` where the questions describe classes that no picture has; all of them in one line."""
    unknown = sorted(set(questionnaire.classes) - set(labels))
    if unknown:
        raise UserError(
            f"expected under `classes` labels of the pictures, such as '{min(labels)}', got"
            f" {', '.join(repr(label) for label in unknown)}; `classes` is keyed by label"
        )


def make_guides(
    workspace: Workspace, questionnaire: Questionnaire, controls: Collection[str]
) -> Mapping[str, ClassGuide]:
    """The guide of each label; photos that are hidden controls serve as references only where no others are left."""
    space = name_classes(workspace, questionnaire)
    definitions = read_definitions([label for label in space.labels if label in imagenet1k()])
    photos: dict[str, list[Variant]] = {}
    for row in workspace.pictures:
        if row.variant.attribute == "original":
            photos.setdefault(row.variant.label, []).append(row.variant)

    def preference(variant: Variant) -> tuple[bool, float]:
        return variant.id in controls, hash_fraction(questionnaire.seed, "reference", variant.id)

    guides = {}
    for label in space.labels:
        given = questionnaire.classes.get(label)
        definition = (given.definition if given else "") or definitions.get(label, "")
        chosen = sorted(photos.get(label, ()), key=preference)[: REFERENCES + 1]  # one may be the photo in question
        guides[label] = ClassGuide(space.name_of(label), definition, tuple(chosen))
    return guides


def read_definitions(labels: Collection[str]) -> dict[str, str]:
    """WordNet's definitions of ImageNet classes; empty where they cannot be fetched, since people can do without."""
    if not labels:
        return {}
    try:
        text = fetch_asset(_IMAGENET_DEFINITIONS).read_text(encoding="utf-8")
    except UserError:
        return {}
    rows = (line.partition("\t") for line in text.splitlines())
    return {label: _make_sentence(definition.strip()) for label, _, definition in rows if label in labels}


def _make_sentence(definition: str) -> str:
    return f"{definition[:1].upper()}{definition[1:]}{'' if definition.endswith('.') else '.'}"
