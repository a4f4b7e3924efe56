"""The pictures that a prompt recipe asks for: their prompts, seeds and ids.

Seeds and ids come from the content, so that more categories, values or pictures per pair change no other picture.
Whole pictures of one sample share a seed: the plain prompt's picture is the counterpart for the drops.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from counterfoil.edits.seeds import content_hash, id_from, seed_from
from counterfoil.edits.variant_plan import plan_original
from counterfoil.errors import UserError
from counterfoil.labels.label_space import LabelSpace
from counterfoil.painters.painter_protocol import display_name, fill_template
from counterfoil.recipes.prompt_recipe import PaintedAttribute, PromptRecipe
from counterfoil.types import Sample, Variant


@dataclass(frozen=True)
class Selection:
    """The part of a recipe that is painted; an empty choice takes everything."""

    categories: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    per_pair: int = 1
    limit: int | None = None  # pictures, counterparts not counted

    def __post_init__(self) -> None:
        for name, value in (("per-pair", self.per_pair), ("limit", self.limit)):
            if value is not None and value < 1:
                raise UserError(f"expected --{name} of at least 1, got {value}")


class PlannedPrompt(NamedTuple):
    """One planned picture and its prompt; no prompt where the photo itself is used."""

    sample: Sample
    variant: Variant
    prompt: str | None


@dataclass(frozen=True)
class PromptPlan:
    """A recipe, its classes, the selected part, and the painter."""

    recipe: PromptRecipe
    space: LabelSpace
    selection: Selection
    painter: Mapping[str, object]  # the painter's settings that change its pictures
    negative: str
    seed: int

    def plan_prompts(self, photos: Sequence[Sample] = ()) -> list[PlannedPrompt]:
        """Return every planned picture, by sample, the original first."""
        whole = self.recipe.paints == "pictures"
        samples = self._imagine_samples() if whole else [photo for photo in photos if photo.label in self._categories]
        variants = {sample.id: list(self._plan_variants(sample)) for sample in samples}
        chosen = self._apply_limit(variants)
        original = self._plan_counterpart if whole else self._plan_photo
        prompts: list[PlannedPrompt] = []
        for sample in samples:
            if chosen[sample.id]:
                prompts += (original(sample), *chosen[sample.id])
        return prompts

    @cached_property
    def _categories(self) -> list[str]:
        """The selected classes, in the order of their space; every class of the recipe must be in it."""
        for attribute in self.recipe.attributes:
            named = attribute.values if isinstance(attribute.values, dict) else {}
            for label in named:
                self.space.resolve(label)
        wanted = {self.space.resolve(name) for name in self.selection.categories}
        return [label for label in self.space.labels if not wanted or label in wanted]

    @cached_property
    def _attributes(self) -> list[PaintedAttribute]:
        known = [one.attribute for one in self.recipe.attributes]
        for name in self.selection.attributes:
            if name not in known:
                raise UserError(f"expected an attribute of {self.recipe.name} ({', '.join(known)}), got '{name}'")
        wanted = self.selection.attributes or tuple(known)
        return [one for one in self.recipe.attributes if one.attribute in wanted]

    def _values(self, attribute: PaintedAttribute, label: str) -> list[str]:
        wanted = self.selection.values
        return [value for value in attribute.values_of(label) if not wanted or value in wanted]

    def check(self) -> None:
        """Raise `UserError` for unknown classes in the recipe or selection, and for unknown attributes or values."""
        self._words  # noqa: B018  resolves every class that has words of its own
        there = {value for one in self._attributes for label in self._categories for value in one.values_of(label)}
        for value in self.selection.values:
            if value not in there:
                raise UserError(f"expected a value of {self.recipe.name}, got '{value}'; see its lists in the recipe")

    def _imagine_samples(self) -> list[Sample]:
        return [
            Sample(id=f"{label}/{index}", label=label, image="", mask=None, digest=self._digest(label, index))
            for label in self._categories
            for index in range(self.selection.per_pair)
        ]

    def _digest(self, label: str, index: int) -> str:
        return content_hash("painted", label, index, self.seed).hex()

    def _plan_variants(self, sample: Sample) -> Iterator[PlannedPrompt]:
        whole = self.recipe.paints == "pictures"
        for attribute in self._attributes:
            for template, text in attribute.templates.items():
                for value in self._values(attribute, sample.label):
                    prompt = fill_template(text, self._name_label(sample.label), value)
                    planned = self._make_variant(sample, prompt, template, value)
                    variant = replace(planned, attribute=attribute.attribute)
                    repeats = 1 if whole else self.selection.per_pair
                    yield from (self._repeat(sample, variant, prompt, index) for index in range(repeats))

    def _plan_counterpart(self, sample: Sample) -> PlannedPrompt:
        prompt = fill_template(self.recipe.plain, self._name_label(sample.label))
        return PlannedPrompt(sample, self._make_variant(sample, prompt, "original", "none"), prompt)

    def _plan_photo(self, sample: Sample) -> PlannedPrompt:
        return PlannedPrompt(sample, plan_original(sample), None)

    def _make_variant(self, sample: Sample, prompt: str, template: str, value: str) -> Variant:
        seed = seed_from(sample.digest, "seed")
        about = {**self.painter, "prompt": prompt, "negative": self.negative}
        name = id_from(sample.digest, sample.label, about, seed, template, value)
        settings = json.dumps({**about, "value": value, "template": template}, sort_keys=True)
        return Variant(
            id=name, sample_id=sample.id, label=sample.label, attribute="original", edit=template, level=value,
            settings=settings, seed=seed,
        )  # fmt: skip

    def _repeat(self, sample: Sample, variant: Variant, prompt: str, index: int) -> PlannedPrompt:
        """Give a picture painted around a photo its own seed; whole pictures repeat by sample instead."""
        if self.recipe.paints == "pictures":
            return PlannedPrompt(sample, variant, prompt)
        seed = seed_from(variant.id, index, self.seed)
        named = replace(variant, id=id_from(variant.id, seed), seed=seed, replicate=index)
        return PlannedPrompt(sample, named, prompt)

    def _name_label(self, label: str) -> str:
        return self._words.get(label, display_name(self.space.name_of(label)))

    @cached_property
    def _words(self) -> dict[str, str]:
        return {self.space.resolve(name): word for name, word in self.recipe.words.items()}

    def _apply_limit(self, variants: Mapping[str, list[PlannedPrompt]]) -> dict[str, list[PlannedPrompt]]:
        """Keep the pictures with the lowest ids, up to the limit: spread evenly, and a larger limit keeps them."""
        if self.selection.limit is None:
            return dict(variants)
        ids = sorted(planned.variant.id for prompts in variants.values() for planned in prompts)
        kept = set(ids[: self.selection.limit])
        return {
            sample_id: [planned for planned in prompts if planned.variant.id in kept]
            for sample_id, prompts in variants.items()
        }
