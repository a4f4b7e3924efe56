"""What a run found: drops, flips, and the folder that holds every answer."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse import Answer, Answers, Condition, collect, drops, flipped, unscored
from counterfoil.pipeline.job import Prepared
from counterfoil.report import Flip, ReportInput, drops_csv, headline, skipped_csv, summary, write_report
from counterfoil.store import prediction_files, read_table, read_variants, write_atomically
from counterfoil.types import Drop, Skipped, Variant

_THUMBNAIL = 192  # pixels of the longer side
_FLIPS_SHOWN = 18  # per attribute, over all models


@dataclass(frozen=True)
class Result:
    """The outcome of a run."""

    prepared: Prepared
    folder: Path
    skipped: tuple[Skipped, ...]
    _holder: tempfile.TemporaryDirectory[str] | None = None  # keeps the tables of a run without a folder alive

    @cached_property
    def answers(self) -> Answers:
        """Every answer of every model, in columns."""
        return collect(self._rows(), models=self.prepared.job.models)

    def _rows(self) -> Iterator[Answer]:
        for model, path in prediction_files(self.folder, self.prepared.job.models).items():
            table = read_table(path)
            columns = [table[name] for name in ("sample_id", "attribute", "edit", "level", "correct", "outcome",
                                                "object_share", "replicate")]  # fmt: skip
            for sample, attribute, edit, level, correct, outcome, share, replicate in zip(*columns, strict=True):
                condition = Condition(attribute, edit, level)
                yield Answer(model, sample, condition, bool(correct), outcome, float(share), int(replicate))

    @cached_property
    def drops(self) -> list[Drop]:
        """What each edit costs each model."""
        return drops(self.answers)

    @property
    def headline(self) -> list[str]:
        """The findings in sentences."""
        return [finding.text for finding in headline(self.drops)]

    def report(self, out: str | Path) -> Path:
        """Write report.html, drops.csv, summary.json, skipped.csv and the tables of answers into a folder."""
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        if folder.resolve() != self.folder.resolve():
            shutil.copytree(self.folder / "predictions", folder / "predictions", dirs_exist_ok=True)
            shutil.copy2(self.folder / "variants.parquet", folder)
        content = self._content()
        write_atomically(folder / "drops.csv", drops_csv(self.drops))
        write_atomically(folder / "skipped.csv", skipped_csv(self.skipped))
        write_atomically(folder / "summary.json", json.dumps(summary(content), indent=1, allow_nan=False))
        return write_report(folder, content)

    def _content(self) -> ReportInput:
        variants = read_table(self.folder / "variants.parquet", ["id", "sample_id"])
        space = self.prepared.space
        return ReportInput(
            title="Which attributes break these classifiers?" if len(self.prepared.classifiers) > 1
            else "Which attributes break this classifier?",
            run=self.prepared.run,
            drops=self.drops,
            photos=len(set(variants["sample_id"])),
            variants=len(variants["id"]),
            flips=list(self._flips()),
            skipped=self.skipped,
            names={label: space.name_of(label) for label in space.labels},
            unscored=unscored(self.answers),
        )  # fmt: skip

    def _flips(self) -> Iterator[Flip]:
        """The chosen flips with their pictures, made again from the manifest."""
        limit = max(2, _FLIPS_SHOWN // len(self.prepared.classifiers))
        variants = _variants(self.folder)
        said = {model: _said(path) for model, path in prediction_files(self.folder, self.prepared.job.models).items()}
        for flip in flipped(self.answers, limit=limit):
            before = variants[flip.sample_id, Condition("original", "original", "none"), 0]
            after = variants[flip.sample_id, flip.condition, flip.replicate]
            yield Flip(
                flip.model, *flip.condition, flip.sample_id, after.label, self._thumbnail(before),
                self._thumbnail(after), *said[flip.model][before.id], *said[flip.model][after.id],
            )  # fmt: skip

    def _thumbnail(self, variant: Variant) -> bytes:
        return _jpeg(self.prepared.studio.make(variant).image)


def _variants(folder: Path) -> dict[tuple[str, Condition, int], Variant]:
    """The manifest by what was done to which photo."""
    return {
        (str(variant.sample_id), Condition(variant.attribute, variant.edit, variant.level), variant.replicate): variant
        for variant in read_variants(read_table(folder / "variants.parquet"))
    }


def _said(path: Path) -> dict[str, tuple[str, float]]:
    table = read_table(path, ["variant_id", "rank_1", "score_1"])
    return {name: (label, float(score)) for name, label, score in zip(*table.values(), strict=True)}


def _jpeg(image: NDArray[np.uint8]) -> bytes:
    """A thumbnail on the page's scale."""
    scale = min(1.0, _THUMBNAIL / max(image.shape[:2]))
    size = (max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale)))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    _, data = cv2.imencode(".jpg", cv2.cvtColor(small, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 82])
    return data.tobytes()
