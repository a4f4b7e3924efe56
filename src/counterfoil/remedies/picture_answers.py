"""Pictures of the photos of each part, shown to models; every photo's answers are a file, so a killed job goes on."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil import __version__
from counterfoil.errors import Unusable, UserError
from counterfoil.progress import Extent, count_progress, open_meter
from counterfoil.remedies.photo_parts import PhotoParts
from counterfoil.run_config import RunPlan
from counterfoil.statistics.answers import Condition
from counterfoil.store.files import write_atomically
from counterfoil.types import Sample, Skipped, Variant
from counterfoil.worker_pool import LocalEngine, cores

Image: TypeAlias = NDArray[np.uint8]  # (height, width, 3), RGB
Asker: TypeAlias = Callable[[Sequence[Image]], NDArray[np.float32]]  # pictures to probabilities or features


@dataclass(frozen=True, kw_only=True)
class PhotoAnswers:
    """What models say about the pictures of one photo, the original first."""

    sample: str
    label: int  # column of its class
    conditions: tuple[Condition, ...]  # of each picture
    replicates: tuple[int, ...]
    answers: Mapping[str, NDArray[np.int64]]  # by model: the best column of all, per picture
    among: Mapping[str, NDArray[np.int64]]  # by model: the best column of the photos' classes
    features: NDArray[np.float32] | None = None  # (pictures, width)
    skipped: tuple[Skipped, ...] = ()

    def to_bytes(self) -> bytes:
        """The answers as a file of arrays."""
        about = {
            "sample": self.sample, "label": self.label, "conditions": self.conditions, "replicates": self.replicates,
            "models": list(self.answers),
            "skipped": [[row.sample_id, row.stage, row.edit, row.reason] for row in self.skipped],
        }  # fmt: skip
        arrays: dict[str, NDArray[Any]] = {f"all_{place}": rows for place, rows in enumerate(self.answers.values())}
        arrays |= {f"among_{place}": rows for place, rows in enumerate(self.among.values())}
        arrays |= {} if self.features is None else {"features": self.features}
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, about=np.frombuffer(json.dumps(about).encode(), np.uint8), **arrays)
        return buffer.getvalue()

    @classmethod
    def from_file(cls, path: Path) -> PhotoAnswers:
        """The answers that a file holds; raises `UserError` where it is damaged, which its checksums tell."""
        try:
            with np.load(path) as arrays:
                return cls._from_arrays(arrays)
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            line = " ".join(str(error).split())[:160]
            raise UserError(f"expected answers in {path}, which is damaged: {line}; remove it") from error

    @classmethod
    def _from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> PhotoAnswers:
        about = json.loads(arrays["about"].tobytes())
        models = about["models"]
        return cls(
            sample=about["sample"], label=about["label"], replicates=tuple(about["replicates"]),
            conditions=tuple(Condition(*row) for row in about["conditions"]),
            answers={name: arrays[f"all_{place}"] for place, name in enumerate(models)},
            among={name: arrays[f"among_{place}"] for place, name in enumerate(models)},
            features=arrays.get("features"),
            skipped=tuple(Skipped(*row) for row in about["skipped"]),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class AskedModels:
    """The models that are shown the pictures of a part."""

    models: Mapping[str, Asker]
    identities: Mapping[str, str]  # hash of all that the answers depend on, by model
    features: Asker | None = None

    def without(self, names: Iterable[str]) -> AskedModels:
        """The models but these."""
        left = set(self.models) - set(names)
        return replace(self, models={name: asker for name, asker in self.models.items() if name in left})


@dataclass(frozen=True, kw_only=True)
class ClassColumns:
    """The columns of a classifier, and those of the photos' classes."""

    labels: tuple[str, ...]
    photos: NDArray[np.int64]  # columns of the photos' classes, ascending

    def column(self, label: str) -> int:
        """The column of a class."""
        return self.labels.index(label)


def plan_parts(plan: RunPlan, parts: PhotoParts) -> list[RunPlan]:
    """A plan for each part, in which donors come from that part alone."""
    return [replace(plan, samples=part) for part in parts.parts]


@dataclass(frozen=True, kw_only=True)
class PictureStage:
    """One pass over the photos of all parts: render every planned variant, ask the models of the part."""

    name: str  # of the folder under `work`
    stage: str  # in words, for the display of progress
    plans: Sequence[RunPlan]  # one per part
    asked: Sequence[AskedModels]  # one per part
    columns: ClassColumns
    folder: Path
    workers: int | None = None

    def run(self) -> list[list[PhotoAnswers]]:
        """The answers of each part, in the order of its photos; photos whose file is there are not asked again."""
        places = [(part, sample) for part, plan in enumerate(self.plans) for sample in plan.samples]
        files = {(part, sample.id): self._file(part, sample) for part, sample in places}
        open_places = [(part, sample) for part, sample in places if not files[part, sample.id].is_file()]
        total, left = (
            sum(self.plans[part].variant_plans.count(sample) for part, sample in rows) for rows in (places, open_places)
        )
        extent = Extent(stage=self.stage, unit="pictures", total=total, done=total - left)

        engine = LocalEngine(self.workers or cores())
        with open_meter(count_progress(extent)) as meter:
            for part, plan in enumerate(self.plans):
                samples = [sample for place, sample in open_places if place == part]
                # a copy of the plan: the photos that it keeps in memory are let go of with it
                for count in engine.map(partial(self._answer, replace(plan), part), samples):
                    meter.add(count)
        return [
            [PhotoAnswers.from_file(files[part, sample.id]) for sample in plan.samples]
            for part, plan in enumerate(self.plans)
        ]

    def _answer(self, plan: RunPlan, part: int, sample: Sample) -> int:
        """Write the answers to the pictures of a photo; returns how many pictures that were, or would have been."""
        answers = self._ask(plan, part, sample)
        write_atomically(self._file(part, sample), answers.to_bytes())
        return len(answers.conditions) + len(answers.skipped)

    def _file(self, part: int, sample: Sample) -> Path:
        plan, asked = self.plans[part], self.asked[part]
        variants = [variant.id for variant in plan.variant_plans.plan(sample).variants]
        columns = self.columns.photos.tolist()
        about = [__version__, sample.digest, variants, sorted(asked.identities.items()), columns, bool(asked.features)]
        digest = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]
        return self.folder / self.name / f"{digest}.npz"

    def _ask(self, plan: RunPlan, part: int, sample: Sample) -> PhotoAnswers:
        asked = self.asked[part]
        pictures, skipped = render_photo(plan, sample)
        images = [image for _, image in pictures]
        columns = self.columns.photos
        answers, among = {}, {}
        for name, asker in asked.models.items():
            scores = asker(images) if images else np.zeros((0, len(self.columns.labels)), np.float32)
            answers[name] = np.asarray(scores.argmax(axis=1), np.int64)
            among[name] = columns[scores[:, columns].argmax(axis=1)]
        return PhotoAnswers(
            sample=sample.id, label=self.columns.column(sample.label), answers=answers, among=among,
            conditions=tuple(Condition(row.attribute, row.edit, row.level) for row, _ in pictures),
            replicates=tuple(row.replicate for row, _ in pictures), skipped=tuple(skipped),
            features=asked.features(images) if asked.features is not None and images else None,
        )  # fmt: skip


def render_photo(
    plan: RunPlan, sample: Sample, only: Condition | None = None
) -> tuple[list[tuple[Variant, Image]], list[Skipped]]:
    """The pictures of a photo that can be made, with their variants, and what cannot; `only` one edit and level."""
    planned, skipped = plan.variant_plans.plan(sample)
    if only is not None:
        planned = [variant for variant in planned if (variant.edit, variant.level) == (only.edit, only.level)]
    pictures, refused = [], list(skipped)
    try:
        if not plan.steps:  # the photo alone, which needs no mask
            return [(planned[0], plan.config.source.read(sample)[0])], []
        plan.renderer.subject(sample.id)
    except Unusable as error:
        return [], [Skipped(sample.id, "source", "", str(error))]
    for variant in planned:
        try:
            made, picture = plan.renderer.make(variant)
        except Unusable as error:
            refused.append(Skipped(sample.id, "edit", variant.edit, str(error)))
        else:
            # the level as planned, so that pictures of one edit stay together whatever was chosen for it
            pictures.append((replace(made, level=variant.level), picture.image))
    return pictures, refused
