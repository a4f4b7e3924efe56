"""What earlier runs made of a photo: its measured pictures, the choices made for them, and what was refused.

Where a run with the same photos and edits made every picture of a photo, and every model has answered them, the photo
is neither decoded nor edited again. Pixels are not kept: where one answer is missing, all pictures are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from counterfoil.edits.registry import OURS, name_of, settings_of
from counterfoil.models.stored_answers import gives_same_bits, recall_answers
from counterfoil.object_mask import MaskVerdict
from counterfoil.pieces import Outcome, PictureOrigin
from counterfoil.run_config import RunPlan
from counterfoil.store.prediction_tables import RenderedVariant, ToolTrace
from counterfoil.store.result_cache import Stored, name_result
from counterfoil.types import Model, Prediction, Provenance, Sample, Skipped, Variant

_FILES = ("folder", "file")  # settings that name files, whose content may change


@dataclass(frozen=True)
class StoredOutcomes:
    """The outcomes of a plan's photos in the cache of results; `about` is the plan and the layer of edits, hashed."""

    plan: RunPlan
    about: tuple[str, ...]

    def recall(self, sample: Sample, models: Sequence[Model]) -> Outcome | None:
        """What was made of a photo, with the models' answers; None where something has to be made or asked."""
        stored = self.plan.tools.cache.recall(self._name(sample))
        if stored is None:
            return None
        rendered = [_read_rendered(row) for row in stored.facts["rendered"]]
        answers = {model.name: self._recall_answers(model, rendered, stored.facts["batches"]) for model in models}
        predictions = {name: rows for name, rows in answers.items() if rows is not None}
        if len(predictions) < len(answers):
            return None
        verdict = stored.facts["mask"]
        return Outcome(
            rendered=rendered,
            origins=[
                PictureOrigin(sample, self._find_provenance(row.variant), level)
                for row, level in zip(rendered, stored.facts["levels"], strict=True)
            ],
            predictions=predictions,
            skipped=[Skipped(**row) for row in stored.facts["skipped"]],
            mask=None if verdict is None else MaskVerdict(**{**verdict, "reasons": tuple(verdict["reasons"])}),
        )

    def keep(self, sample: Sample, outcome: Outcome, batches: Sequence[int]) -> None:
        """Store what was made of a photo; the models were asked about so many pictures at a time."""
        facts = {
            "rendered": [asdict(row) | {"tool": list(row.tool)} for row in outcome.rendered],
            "levels": [origin.planned_level for origin in outcome.origins],
            "batches": list(batches),
            "skipped": [asdict(row) for row in outcome.skipped],
            "mask": None if outcome.mask is None else asdict(outcome.mask),
        }
        self.plan.tools.cache.keep(self._name(sample), Stored(facts))

    def _name(self, sample: Sample) -> str:
        return name_result("outcome", *self.about, sample.id)

    def _recall_answers(
        self, model: Model, rendered: Sequence[RenderedVariant], batches: Sequence[int]
    ) -> list[Prediction] | None:
        answers: list[Prediction] = []
        for count in batches:
            batch = recall_answers(model, rendered[len(answers) : len(answers) + count], self.plan.tools.cache)
            if batch is None:
                return None
            answers += batch
        return answers

    def _find_provenance(self, variant: Variant) -> Provenance:
        return self.plan.renderer.samples[variant.donor_id].provenance if variant.donor_id else Provenance()


def may_store(plan: RunPlan) -> bool:
    """Whether the photos, our own code and networks that answer with the same bits decide all that a plan makes."""
    models = [*plan.models, *plan.surrogates.values()]
    return (
        plan.tools.cache.is_lasting
        and bool(plan.models)
        and all(map(gives_same_bits, models))
        and all(_is_ours(name_of(step.edit), settings_of(step.edit)) for step in plan.steps)
        and not plan.paints_on_gpu
        and not plan.rendering
    )


def _is_ours(name: str, settings: Mapping[str, Any]) -> bool:
    """Whether an edit and its parts are built in and read no files of the user's."""
    parts = settings.get("edits", ())
    return (
        name in OURS
        and not any(settings.get(setting) for setting in _FILES)
        and all(_is_ours(part["edit"], part["settings"]) for part in parts)
    )


def _read_rendered(row: Mapping[str, Any]) -> RenderedVariant:
    return RenderedVariant(**{**row, "variant": Variant(**row["variant"]), "tool": ToolTrace(*row["tool"])})
