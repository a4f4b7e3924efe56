"""Conservation in a finished run: every photo taken has pictures or a reason, every picture one answer of each model.

The counts come from the files alone, so that they also hold a run to account that another program wrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from counterfoil.store.parquet import read_table
from counterfoil.store.piece_plan import SAMPLES, read_samples
from counterfoil.store.prediction_tables import locate_predictions, read_run_record, read_skipped
from counterfoil.types import TOOL_CHECKS


@dataclass(frozen=True, kw_only=True)
class RunCounts:
    """What was listed, made and answered, and what is unaccounted for."""

    taken: int  # photos, or sources of pictures, that were worked on
    used: int  # of these, with pictures in the tables
    skipped: int  # of these, without pictures but with a reason
    left_out: int  # entries of the source that were not taken, each with a reason
    pictures: int  # without the doubles that measure the tool
    pictures_skipped: int  # edits of a used photo that were skipped with a reason
    answers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by model and outcome
    faults: Sequence[str] = ()  # what does not add up

    @property
    def sentences(self) -> list[str]:
        """The counts in words."""
        lines = [
            f"photos: {self.taken:,} taken = {self.used:,} with pictures + {self.skipped:,} skipped;"
            f" {self.left_out:,} more left out by the source",
            f"pictures: {self.pictures:,} made, {self.pictures_skipped:,} edits skipped",
        ]
        for model, outcomes in self.answers.items():
            total, scored = sum(outcomes.values()), outcomes.get("scored", 0)
            lines.append(f"answers of {model}: {total:,} = {scored:,} scored + {total - scored:,} without a score")
        return lines


def count_run(folder: Path) -> RunCounts:
    """Count a finished run; raises `UserError` where its files are not as they were written."""
    models = list(read_run_record(folder).get("models", ()))
    table = read_table(folder / "variants.parquet", ["id", "sample_id", "attribute"])
    ids, with_pictures = table["id"].tolist(), set(table["sample_id"].tolist())
    rows = read_skipped(folder)
    taken = {sample.id for sample in read_samples(folder)} if (folder / SAMPLES).is_file() else with_pictures
    named = {row.sample_id for row in rows}
    lost = sorted(taken - with_pictures - named)
    faults = [f"{len(lost):,} photos have neither pictures nor a reason, such as {lost[0]}"] if lost else []
    twice = len(ids) - len(set(ids))
    faults += [f"{twice:,} pictures stand twice in variants.parquet"] if twice else []
    answers: dict[str, dict[str, int]] = {}
    for model, path in locate_predictions(folder, models).items():
        answered = read_table(path, ["variant_id", "outcome"])
        answers[model] = dict(Counter(answered["outcome"].tolist()))
        if Counter(answered["variant_id"].tolist()) != Counter(ids):
            faults.append(f"the answers of {model} are not one for each picture of variants.parquet")
    checks = Counter(table["attribute"].tolist())
    return RunCounts(
        taken=len(taken), used=len(taken & with_pictures), skipped=len((taken - with_pictures) & named),
        left_out=sum(row.stage == "source" and row.sample_id not in taken for row in rows),
        pictures=len(ids) - sum(checks[name] for name in TOOL_CHECKS),
        pictures_skipped=sum(bool(row.edit) and row.sample_id in with_pictures for row in rows),
        answers=answers, faults=tuple(faults),
    )  # fmt: skip
