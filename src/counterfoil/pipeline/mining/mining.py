"""From a workspace to what is kept of it, in one straight line.

workspace -> ask surrogates and targets -> choose -> count -> mined.json, mining.json, mining.csv, mining.html
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from counterfoil.labels import space_of
from counterfoil.mine import MOST_SURROGATES_FOR_ALL, pictures_per_setting
from counterfoil.pipeline.mining.asking import Asked, ask
from counterfoil.pipeline.mining.choosing import choose
from counterfoil.pipeline.mining.curves import biases_of, curves_of, groups_of, sizes_of
from counterfoil.pipeline.mining.examples import examples_of
from counterfoil.pipeline.mining.failures import failures_of
from counterfoil.pipeline.mining.job import MiningJob
from counterfoil.pipeline.mining.picked import Picked
from counterfoil.pipeline.mining.transfers import families_of, transfers_of
from counterfoil.pipeline.mining.yields import classes_of, models_of, spreads_of, wrong_answers_of, yields_of
from counterfoil.pipeline.result import Work
from counterfoil.report.mining import Kept, MiningContent, mining_csv, mining_lines, mining_record, render_mining
from counterfoil.report.wording import listed, number_of
from counterfoil.store import write_atomically
from counterfoil.types import Mined

_FEWEST_PHOTOS = 6  # below this intervals are so wide that they hold almost anything


@dataclass(frozen=True)
class Mining:
    """What mining came to."""

    mined: Mined
    content: MiningContent
    page: Path

    @property
    def lines(self) -> list[str]:
        """The findings in sentences."""
        return mining_lines(self.content)


def run_mining(job: MiningJob, before: Callable[[Work], None] | None = None) -> Mining:
    """Keep what the surrogates fail on and report on it; `before` sees each model before it is asked."""
    asked = ask(job, before)
    choice = choose(asked, job)
    picked = Picked(job, asked, choice)
    content = content_of(picked)
    page = _write(asked.workspace.folder / "mining", content)
    kept = tuple(row.variant_id for row in content.pictures if row.kept)
    surrogates = {model.name: model.digest for model in asked.models[: asked.surrogates]}
    mined = Mined(kept, choice.words, surrogates, asked.workspace.digest)
    asked.workspace.keep_mined(mined)  # last: whoever finds it finds the report too
    return Mining(mined, content, page)


def content_of(picked: Picked) -> MiningContent:
    """Everything that the page says."""
    asked, choice = picked.asked, picked.choice
    groups = groups_of(picked)
    surrogates = picked.said.of(slice(0, asked.surrogates))
    return MiningContent(
        workspace=asked.workspace.folder.resolve().name,
        rule=choice.words,
        models=models_of(picked),
        photos=len(asked.samples[0]),
        candidates=len(asked.candidates),
        chosen=int(choice.chosen.sum()),
        kept=int(choice.kept.sum()),
        settings=pictures_per_setting(surrogates, choice.rule),
        yields=yields_of(picked),
        transfers=transfers_of(picked),
        families=families_of(picked),
        curves=curves_of(picked, groups),
        sizes=sizes_of(picked, groups),
        biases=biases_of(picked),
        spreads=list(spreads_of(picked)),
        classes=classes_of(picked),
        wrong_answers=wrong_answers_of(picked),
        failures=failures_of(picked),
        pictures=_pictures(picked),
        examples=examples_of(picked),
        names=_names(asked),
        notes=_notes(picked),
        skipped=asked.skipped,
        command=picked.job.command,
        digest=asked.workspace.digest,
    )


def _write(folder: Path, content: MiningContent) -> Path:
    write_atomically(folder / "mining.json", json.dumps(mining_record(content), indent=1, allow_nan=False))
    write_atomically(folder / "mining.csv", mining_csv(content))
    return write_atomically(folder / "mining.html", render_mining(content))


def _pictures(picked: Picked) -> list[Kept]:
    rows = zip(picked.asked.candidates, picked.choice.kept, picked.said.right.T, strict=True)
    return [
        Kept(v.id, str(v.sample_id), v.label, v.attribute, v.edit, v.level, bool(kept), tuple(right.tolist()))
        for exhibit, kept, right in rows
        for v in [exhibit.variant]
    ]


def _notes(picked: Picked) -> list[str]:
    """What was dropped, sampled or could not be told."""
    asked = picked.asked
    notes = list(picked.choice.notes)
    for model, missing in ((model.name, model.unscored) for model in models_of(picked) if model.unscored):
        notes.append(f"{missing} answers of {model} could not be scored: they are no failures and count nowhere.")
    photos = len(set(asked.photo[picked.choice.kept]))
    if photos < _FEWEST_PHOTOS:
        notes.append(f"What is kept is of {number_of(photos, 'photo')}: too few to say much about other photos.")
    if not picked.targets and asked.surrogates > 1:
        notes.append("No target was given: whether the failures carry over is told by surrogates left out of choosing.")
    if asked.surrogates == 1:
        notes.append("One surrogate chose alone: its selection bias cannot be cross-fitted.")
        if not picked.targets:
            notes.append("Nothing tells whether its failures carry over; add a model that has no say by --target.")
    notes += [
        f"{listed(kin)} are of one family ({family}): where one is left out its kin choose, so their selection bias"
        " is against an unseen model of that family, and too small against others."
        for family, kin in _kindred(picked).items()
    ]
    if asked.surrogates > MOST_SURROGATES_FOR_ALL:
        notes.append(f"The curves rest on a seeded sample of the groups of {asked.surrogates} surrogates.")
    if asked.workspace.verified is not None:
        notes.append("People's decisions on this workspace stay; newly kept pictures have none yet.")
    return notes


def _kindred(picked: Picked) -> dict[str, list[str]]:
    """The families that several surrogates are of, with those surrogates."""
    members: dict[str, list[str]] = {}
    for model in picked.asked.models[: picked.asked.surrogates]:
        members.setdefault(picked.job.family(model.address), []).append(model.name)
    return {family: names for family, names in members.items() if len(names) > 1}


def _names(asked: Asked) -> dict[str, str]:
    """What people call the labels that occur."""
    labels = sorted({label for model in asked.models for label in model.table.labels})
    space = space_of(labels)
    return {label: space.name_of(label) for label in labels}
