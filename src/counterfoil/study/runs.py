"""Whether runs may share a table; one or several runs read back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.statistics.accuracy import GroupAccuracy, group_accuracies
from counterfoil.statistics.answers import Answers, original_rates, pool_by_attribute, unscored
from counterfoil.statistics.drops import measure_drops
from counterfoil.statistics.intervals import RATE, Estimate, estimate, holm
from counterfoil.statistics.paired import Contrast, compare_drops
from counterfoil.statistics.power import detectable_drops
from counterfoil.store.parquet import read_table
from counterfoil.store.prediction_tables import locate_predictions, read_run, read_run_record, read_skipped
from counterfoil.study.predictions import Predictions, read_answers, top5_correct
from counterfoil.types import Drop, Run, Skipped

Named: TypeAlias = tuple[str, Run]  # a run and the folder it was read from
_Pictures: TypeAlias = Mapping[str, Mapping[str, Any]]

_ASKED = {
    "benchmark_digest": "benchmark",
    "collection_digest": "collection",
    "recipe_digest": "recipe",
    "seed": "seed",
    "scoring": "label scoring",
}  # what must agree in the records, and what people call it


def check_comparable(runs: Sequence[Named]) -> None:
    """Refuse runs whose numbers cannot be compared, with the difference named."""
    manifest_of = cache(_manifest)  # the first run's is compared with every other
    for later in runs[1:]:
        difference = next(_differences(runs[0], later, manifest_of), None)
        if difference:
            raise UserError(f"the runs {runs[0][0]} and {later[0]} cannot be compared: {difference}")
    for place, earlier in enumerate(runs):
        for later in runs[place + 1 :]:
            _refuse_changed_models(earlier, later)


def _differences(first: Named, second: Named, manifest_of: Callable[[str], _Pictures]) -> Iterator[str]:
    records = read_run_record(Path(first[0])), read_run_record(Path(second[0]))
    for key, name in _ASKED.items():
        told = [_told(key, record) for record in records]
        if (records[0].get(key) or None) != (records[1].get(key) or None):
            yield f"another {name}, {told[0]} against {told[1]}"
    yield from _other_pictures(manifest_of(first[0]), manifest_of(second[0]))


def _told(key: str, record: Mapping[str, Any]) -> str:
    value = record.get(key)
    if key == "recipe_digest":
        return f"'{record.get('recipe')}' ({str(value)[:8]})"
    if key == "collection_digest":
        return f"'{record.get('collection')}' ({str(value)[:8]})" if value else "none"
    return "none" if value is None else str(value)[:40]


def _manifest(folder: str) -> _Pictures:
    """What a run says of its pictures: by photo its digest and label, by variant the hash of its pixels."""
    table = read_table(Path(folder) / "variants.parquet", ["id", "sample_id", "sample_digest", "label", "sha256"])
    return {
        "digest": dict(zip(table["sample_id"], table["sample_digest"], strict=True)),
        "label": dict(zip(table["sample_id"], table["label"], strict=True)),
        "pixels": dict(zip(table["id"], table["sha256"], strict=True)),
    }


def _other_pictures(first: _Pictures, second: _Pictures) -> Iterator[str]:
    yield from _other_names("photos", first["digest"], second["digest"])
    for kind, told in (("digest", "the photo or its mask changed"), ("label", "another label scoring")):
        changed = [name for name, value in first[kind].items() if second[kind].get(name) != value]
        if changed:
            values = f", {first[kind][changed[0]]} against {second[kind][changed[0]]}" if kind == "label" else ""
            yield f"{told} for {len(changed)} of {len(first[kind])} photos (the first is {changed[0]}{values})"
    yield from _other_names("variants", first["pixels"], second["pixels"])
    changed = [name for name, pixels in first["pixels"].items() if second["pixels"].get(name) != pixels]
    if changed:
        yield (
            f"{len(changed)} of {len(first['pixels'])} pictures have other pixels (the first is variant {changed[0]}): "
            "they were made by other versions of counterfoil or OpenCV"
        )


def _other_names(what: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    only = [sorted(first.keys() - second.keys()), sorted(second.keys() - first.keys())]
    if any(only):
        told = [
            f"{len(names)} only in the {run}" for names, run in zip(only, ("first", "second"), strict=True) if names
        ]
        yield f"other {what}, {' and '.join(told)} (one is {(only[0] or only[1])[0]})"


def _refuse_changed_models(first: Named, second: Named) -> None:
    """One name for two networks would put two truths into one row."""
    for model in first[1].models:
        if model not in second[1].models:
            continue
        for what, values in (("weights", "model_digests"), ("preprocessing", "preprocessing")):
            before, after = (getattr(run, values).get(model) for run in (first[1], second[1]))
            if before != after:
                told = f" ({before[:8]} against {after[:8]})" if what == "weights" and before and after else ""
                raise UserError(
                    f"the {what} of {model} changed between {first[0]} and {second[0]}{told};"
                    " name the runs apart with --as, once per run, to compare the two"
                )


MOST_PHOTOS_FOR_POWER = 500  # with more, exact power takes long, and the intervals tell as much
Row: TypeAlias = tuple[str, str, str]  # model, edit and level: a row of the table of drops


NO_ATTRIBUTE = {
    "original",
    "control",
    "presence",
    "combination",
}  # read on their own, never ranked among the attributes


class Accuracy(NamedTuple):
    """A model's accuracy in percent with its 95 % interval: on the unedited photos, or on a collection's pictures."""

    model: str
    n: int
    accuracy: float
    ci_low: float
    ci_high: float
    subject: str = "accuracy on the unedited photos"


Value = TypeVar("Value")

_UNKNOWN = Estimate(math.nan, math.nan, math.nan, 0)
_MOST_MODELS_IN_PAIRS = 12  # past this, pairs are so many that nobody reads them; the tied groups still tell


@dataclass(frozen=True)
class Study:
    """What the report is about: answers to the same pictures, whoever gave them and in whichever run."""

    folders: tuple[Path, ...]
    runs: tuple[Run, ...]
    predictions: Mapping[str, Predictions]  # of each model, in the order of the table
    skipped: tuple[Skipped, ...]

    @property
    def files(self) -> dict[str, Path]:
        """Where the answers of each model are."""
        return {model: table.path for model, table in self.predictions.items()}

    @cached_property
    def manifest(self) -> Mapping[str, NDArray[Any]]:
        """What the pictures are, the columns of `variants.parquet`; of several runs the first, since all are alike."""
        return read_table(self.folders[0] / "variants.parquet")

    @cached_property
    def answers(self) -> Answers:
        """Every answer of every model, in columns."""
        return read_answers(self.predictions)

    @cached_property
    def drops(self) -> list[Drop]:
        """What each edit costs each model; empty where no picture has its original beside it."""
        return measure_drops(self.answers) if self.has_originals else []

    @cached_property
    def attribute_drops(self) -> list[Drop]:
        """What each attribute costs each model, all of its edits and levels together."""
        return measure_drops(pool_by_attribute(self.answers)) if self.has_originals else []

    @property
    def has_originals(self) -> bool:
        """Whether there are unedited photos to compare with."""
        return any(condition.attribute == "original" for condition in self.answers.conditions)

    @cached_property
    def accuracies(self) -> list[GroupAccuracy]:
        """How often each model is right on a collection's pictures, together and by kind."""
        if not self.run.collection or not len(self.answers.samples):
            return []
        rows = group_accuracies(self.answers, top5_correct(self.predictions))
        if {condition.attribute for condition in self.answers.conditions} == {"original"}:
            # Nothing but unedited pictures: their own rows would say the same as those of all pictures.
            rows = [row for row in rows if row.overall]
        ranked = {model for model, table in self.predictions.items() if table.ranks_five}
        return [row if row.model in ranked else row._replace(top5=_UNKNOWN) for row in rows]

    @cached_property
    def top5_drops(self) -> list[Drop]:
        """The same table with an answer right where the true label is among the five best."""
        return (
            measure_drops(replace(self.answers, correct=top5_correct(self.predictions))) if self.has_originals else []
        )

    @cached_property
    def contrasts(self) -> list[Contrast]:
        """How far every two models lie apart under each edit and level; adjusted over all of them together."""
        models = list(self.files)
        few = len(models) <= _MOST_MODELS_IN_PAIRS and self.has_originals
        pairs = list(itertools.combinations(models, 2)) if few else []
        rows = [row for pair in pairs for row in compare_drops(self.answers, *pair)]
        return [row._replace(p_holm=p) for row, p in zip(rows, holm([row.p_value for row in rows]), strict=True)]

    @property
    def unscored(self) -> dict[str, int]:
        """How many answers of each model count nowhere."""
        return unscored(self.answers)

    @cached_property
    def unseen(self) -> dict[Row, float]:
        """How large a drop may be in each row without being noticed; empty where there are many photos."""
        if len(self.answers.samples) > MOST_PHOTOS_FOR_POWER or not self.has_originals:
            return {}
        found = detectable_drops(self.answers)
        return {(row.model, row.condition.edit, row.condition.level): row.drop for row in found if row.drop == row.drop}

    def only(self, model: str | None) -> Study:
        """The same with one model, or with all where none is named."""
        if model is None:
            return self
        if model not in self.predictions:
            raise UserError(f"expected one of the models {', '.join(self.predictions)}, got '{model}'")
        return replace(self, predictions={model: self.predictions[model]})

    @property
    def run(self) -> Run:
        """The runs as one record: the models of all."""
        return merge_runs(self.runs)


def open_runs(folders: Sequence[str | Path], names: Sequence[str] = ()) -> Study:
    """Read runs back; several must be over the same pictures, and `names`, one a run, tell equal models apart."""
    if names and len(names) != len(folders):
        raise UserError(f"expected one name per run, got {len(names)} names for {len(folders)} runs")
    paths = tuple(Path(folder) for folder in folders)
    read = [_read(path, name) for path, name in zip(paths, names or [""] * len(paths), strict=True)]
    check_comparable([(str(path), run) for path, (run, _) in zip(paths, read, strict=True)])
    predictions = {model: Predictions(path) for model, path in _joined([files for _, files in read]).items()}
    skipped = dict.fromkeys(row for path in paths for row in read_skipped(path))
    return Study(paths, tuple(run for run, _ in read), predictions, tuple(skipped))


def _read(folder: Path, name: str) -> tuple[Run, dict[str, Path]]:
    """The record and the tables of one run, its models under the name that was given."""
    run = read_run(folder)
    called = {model: _called(model, name, len(run.models)) for model in run.models}
    files = {called[model]: path for model, path in locate_predictions(folder, run.models).items()}
    missing = [path for path in files.values() if not path.is_file()]
    if missing:
        raise UserError(f"expected the answers of every model of the run, but {missing[0]} is not there")
    return replace(
        run,
        models=tuple(called.values()),
        model_digests={called[model]: digest for model, digest in run.model_digests.items()},
        preprocessing={called[model]: applied for model, applied in run.preprocessing.items()},
    ), files


def _called(model: str, name: str, models: int) -> str:
    if not name:
        return model
    return name if models == 1 else f"{name}: {model}"


def overall_accuracies(study: Study) -> list[Accuracy]:
    """Every model's accuracy on the unedited photos, in percent; where there are none, on all pictures."""
    if study.accuracies and not study.has_originals:
        return [
            Accuracy(row.model, row.photos, *row.top1[:3], "accuracy on all pictures")
            for row in study.accuracies
            if row.overall
        ]
    found = [estimate(rates, RATE).scaled(100) for rates in original_rates(study.answers)]
    return [
        Accuracy(model, row.n, row.value, row.ci_low, row.ci_high)
        for model, row in zip(study.answers.models, found, strict=True)
    ]


def merge_runs(runs: Sequence[Run]) -> Run:
    """Several runs over the same pictures as one record; where their environments differ, both are told."""
    names = dict.fromkeys(name for run in runs for name in run.environment)
    told = {name: " | ".join(dict.fromkeys(run.environment.get(name, "–") for run in runs)) for name in names}
    return replace(
        runs[0],
        command="\n".join(dict.fromkeys(run.command for run in runs)),
        models=tuple(dict.fromkeys(model for run in runs for model in run.models)),
        model_digests=_joined([run.model_digests for run in runs]),
        preprocessing=_joined([run.preprocessing for run in runs]),
        environment=told,
        surrogates=_joined([run.surrogates for run in runs]),
        notes=tuple(dict.fromkeys(note for run in runs for note in run.notes)),
    )


def _joined(parts: Sequence[Mapping[str, Value]]) -> dict[str, Value]:
    """All entries; of equal names the first run's, which `check_comparable` knows to be the same."""
    found: dict[str, Value] = {}
    for part in parts:
        for name, value in part.items():
            found.setdefault(name, value)
    return found


_SHARED_DIGEST = "python:"  # the digest is of the whole file, which may hold several models


def find_surrogates(run: Run) -> tuple[str, ...]:
    """The models of a run that chose its pictures, known by name or by their weights."""
    return tuple(model for model in run.models if _is_surrogate(model, run))


def _is_surrogate(model: str, run: Run) -> bool:
    digest = run.model_digests.get(model, "")
    return any(
        _same_name(model, name) or (digest != "" and digest == weights and not _shares_a_file(model, name))
        for name, weights in run.surrogates.items()
    )


def _same_name(model: str, surrogate: str) -> bool:
    """The same address; what stands behind it in brackets says only which columns competed."""
    return model.split(" (")[0] == surrogate.split(" (")[0]


def _shares_a_file(model: str, surrogate: str) -> bool:
    return model.startswith(_SHARED_DIGEST) and surrogate.startswith(_SHARED_DIGEST)
