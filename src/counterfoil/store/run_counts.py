"""Conservation in a finished run: every photo taken has pictures or a reason, every picture one answer of each model.

The counts come from the files alone, so that they also hold a run to account that another program wrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from counterfoil.store.parquet import read_table
from counterfoil.store.piece_plan import SAMPLES, read_plan, read_samples
from counterfoil.store.prediction_tables import locate_predictions, read_run_record, read_skipped
from counterfoil.types import TOOL_CHECKS


@dataclass(frozen=True, kw_only=True)
class RunCounts:
    """What was listed, made and answered, and what is unaccounted for."""

    taken: int  # photos, or sources of pictures, that were worked on
    used: int  # of these, with pictures in the tables
    skipped: int  # of these, without pictures but with a reason
    left_out: int  # entries of the source that were not taken, each with a reason
    beyond_limit: int = 0  # photos, or finished pictures, that were not taken since --limit was reached
    pictures: int  # without the doubles that measure the tool
    pictures_skipped: int  # edits of a used photo, or finished pictures, that were skipped with a reason
    shows_finished: bool = False  # pictures were shown that another command made
    answers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by model and outcome
    faults: Sequence[str] = ()  # what does not add up

    @property
    def sentences(self) -> list[str]:
        """The counts in words."""
        beyond = f", {self.beyond_limit:,} beyond --limit" if self.beyond_limit else ""
        of_photos, of_pictures = ("", beyond) if self.shows_finished else (beyond, "")
        made = f"{self.pictures:,} made, {self.pictures_skipped:,} edits skipped"
        shown = f"{self.pictures + self.pictures_skipped:,} taken = {self.pictures:,} shown"
        lines = [
            f"photos: {self.taken:,} taken = {self.used:,} with pictures + {self.skipped:,} skipped;"
            f" {self.left_out:,} more left out by the source{of_photos}",
            f"pictures: {f'{shown} + {self.pictures_skipped:,} skipped' if self.shows_finished else made}{of_pictures}",
        ]
        for model, outcomes in self.answers.items():
            total, scored = sum(outcomes.values()), outcomes.get("scored", 0)
            lines.append(f"answers of {model}: {total:,} = {scored:,} scored + {total - scored:,} without a score")
        return lines


def count_run(folder: Path) -> RunCounts:
    """Count a finished run; raises `UserError` where its files are not as they were written."""
    record = read_run_record(folder)
    table = read_table(folder / "variants.parquet", ["id", "sample_id", "attribute"])
    ids, with_pictures = table["id"].tolist(), set(table["sample_id"].tolist())
    rows = read_skipped(folder)
    shown = [row for row in rows if row.stage == "evaluate"]  # finished pictures that could not be shown
    taken = {sample.id for sample in read_samples(folder)} if (folder / SAMPLES).is_file() else with_pictures
    taken = taken | {row.sample_id for row in shown}
    named = {row.sample_id for row in rows}
    lost = sorted(taken - with_pictures - named)
    faults = [f"{len(lost):,} photos have neither pictures nor a reason, such as {lost[0]}"] if lost else []
    twice = len(ids) - len(set(ids))
    faults += [f"{twice:,} pictures stand twice in variants.parquet"] if twice else []
    beyond, fault = _count_beyond_limit(folder, record, len(taken), len(ids) + len(shown))
    answers, unequal = _count_answers(folder, list(record.get("models", ())), ids)
    checks = Counter(table["attribute"].tolist())
    edited = [row for row in rows if row.edit and row.sample_id in with_pictures and row.stage != "evaluate"]
    return RunCounts(
        taken=len(taken), used=len(taken & with_pictures), skipped=len((taken - with_pictures) & named),
        left_out=sum(row.stage == "source" and row.sample_id not in taken for row in rows), beyond_limit=beyond,
        pictures=len(ids) - sum(checks[name] for name in TOOL_CHECKS), pictures_skipped=len(edited) + len(shown),
        shows_finished="shown" in record, answers=answers, faults=(*faults, *([fault] if fault else []), *unequal),
    )  # fmt: skip


def _count_beyond_limit(folder: Path, record: Mapping[str, Any], photos: int, pictures: int) -> tuple[int, str]:
    """How many entries --limit left, and what does not add up between what the source listed and what was taken."""
    plan, listed = read_plan(folder), record.get("listed")
    if plan is None or not isinstance(listed, int):  # imported or painted, or of an earlier version
        return 0, ""
    taken = photos if plan.command != "evaluate" else pictures
    left_out = len(plan.listed_skipped)
    left = listed - taken - left_out
    if left < 0 or (left and record.get("limit") is None):
        return 0, f"the source listed {listed:,} entries, {taken:,} were taken and {left_out:,} left out"
    if plan.command == "evaluate" and record.get("shown") != pictures:
        return left, f"{record.get('shown')} pictures were to be shown, {pictures:,} were shown or skipped"
    return left, ""


def _count_answers(
    folder: Path, models: Sequence[str], ids: Sequence[str]
) -> tuple[dict[str, dict[str, int]], list[str]]:
    """For each model how many answers had which outcome, and the models without one answer for each picture."""
    answers: dict[str, dict[str, int]] = {}
    faults = []
    for model, path in locate_predictions(folder, list(models)).items():
        if not path.is_file():
            faults.append(f"the answers of {model} are not there: {path.name} is missing")
            continue
        answered = read_table(path, ["variant_id", "outcome"])
        answers[model] = dict(Counter(answered["outcome"].tolist()))
        if Counter(answered["variant_id"].tolist()) != Counter(ids):
            faults.append(f"the answers of {model} are not one for each picture of variants.parquet")
    return answers, faults
