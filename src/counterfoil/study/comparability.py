"""Whether several runs are over the same pictures, so that their models may share a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from counterfoil.errors import UserError
from counterfoil.store.folder_lock import explain_fills
from counterfoil.store.parquet import read_table
from counterfoil.store.prediction_tables import read_run_record
from counterfoil.types import Run

_NamedRun: TypeAlias = tuple[str, Run]  # a run and the folder it was read from
_Pictures: TypeAlias = Mapping[str, Mapping[str, Any]]

_COMPARED_FIELDS = {
    "benchmark_digest": "benchmark",
    "collection_digest": "collection",
    "recipe_digest": "recipe",
    "seed": "seed",
    "scoring": "label scoring",
    "segmenter": "network that finds objects",
    "doubtful_masks": "treatment of doubtful masks",
    "allow_cut": "treatment of cut objects",
    "refine_cutouts": "way of cutting out",
    "fills": "fill of holes",
}  # fields of the records that must agree, with readable names
_UNRECORDED = {"doubtful_masks": "leave-out", "fills": "exemplar"}  # of older runs


def check_comparable(runs: Sequence[_NamedRun]) -> None:
    """Raise `UserError`, with the difference named, where the runs' numbers cannot be compared."""
    manifest_of = cache(_manifest)  # the first run's is compared with every other
    for later in runs[1:]:
        difference = next(_differences(runs[0], later, manifest_of), None)
        if difference:
            raise UserError(f"the runs {runs[0][0]} and {later[0]} cannot be compared: {difference}")
    for place, earlier in enumerate(runs):
        for later in runs[place + 1 :]:
            _refuse_changed_models(earlier, later)


def _differences(first: _NamedRun, second: _NamedRun, manifest_of: Callable[[str], _Pictures]) -> Iterator[str]:
    records = read_run_record(Path(first[0])), read_run_record(Path(second[0]))
    for key, name in _COMPARED_FIELDS.items():
        if _read_field(key, records[0]) != _read_field(key, records[1]):
            values = " against ".join(_describe_field(key, record) for record in records)
            yield f"another {name}, {values}{explain_fills(*records) if key == 'fills' else ''}"
    yield from _picture_differences(manifest_of(first[0]), manifest_of(second[0]))


def _read_field(key: str, record: Mapping[str, Any]) -> Any:
    """The field, or what its absence stands for; doubtful masks matter only where a network found masks."""
    if key == "doubtful_masks" and not record.get("segmenter"):
        return None
    return record.get(key) or _UNRECORDED.get(key)


def _describe_field(key: str, record: Mapping[str, Any]) -> str:
    value = _read_field(key, record) if key in _UNRECORDED else record.get(key)
    if key == "allow_cut":
        return "moved like others" if value else "kept at their border"
    if key == "refine_cutouts":
        return "refined" if value else "as the masks are"
    if key == "recipe_digest":
        return f"'{record.get('recipe')}' ({str(value)[:8]})"
    if key == "collection_digest":
        return f"'{record.get('collection')}' ({str(value)[:8]})" if value else "none"
    return "none" if value in (None, "") else str(value)[:40]


def _manifest(folder: str) -> _Pictures:
    """The pictures of a run: digest and label by photo, hash of the pixels by variant."""
    table = read_table(Path(folder) / "variants.parquet", ["id", "sample_id", "sample_digest", "label", "sha256"])
    return {
        "digest": dict(zip(table["sample_id"], table["sample_digest"], strict=True)),
        "label": dict(zip(table["sample_id"], table["label"], strict=True)),
        "pixels": dict(zip(table["id"], table["sha256"], strict=True)),
    }


def _picture_differences(first: _Pictures, second: _Pictures) -> Iterator[str]:
    yield from _name_differences("photos", first["digest"], second["digest"])
    for kind, change in (("digest", "the photo or its mask changed"), ("label", "another label scoring")):
        changed = [name for name, value in first[kind].items() if second[kind].get(name) != value]
        if changed:
            values = f", {first[kind][changed[0]]} against {second[kind][changed[0]]}" if kind == "label" else ""
            yield f"{change} for {len(changed)} of {len(first[kind])} photos (the first is {changed[0]}{values})"
    yield from _name_differences("variants", first["pixels"], second["pixels"])
    changed = [name for name, pixels in first["pixels"].items() if second["pixels"].get(name) != pixels]
    if changed:
        yield (
            f"{len(changed)} of {len(first['pixels'])} pictures have other pixels (the first is variant {changed[0]}): "
            "they were made by other versions of counterfoil or OpenCV"
        )


def _name_differences(what: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    only = [sorted(first.keys() - second.keys()), sorted(second.keys() - first.keys())]
    if any(only):
        counts = [
            f"{len(names)} only in the {run}" for names, run in zip(only, ("first", "second"), strict=True) if names
        ]
        yield f"other {what}, {' and '.join(counts)} (one is {(only[0] or only[1])[0]})"


def _refuse_changed_models(first: _NamedRun, second: _NamedRun) -> None:
    """Raise `UserError` for two networks under one name: their answers would share a row of the table."""
    for model in first[1].models:
        if model not in second[1].models:
            continue
        one, other = first[1], second[1]
        digests = one.model_digests.get(model, ""), other.model_digests.get(model, "")
        if digests[0] != digests[1]:
            values = f" ({digests[0][:8]} against {digests[1][:8]})" if all(digests) else ""
            raise _changed(f"weights of {model}", first, second, values)
        if one.preprocessing.get(model) != other.preprocessing.get(model):
            raise _changed(f"preprocessing of {model}", first, second)


def _changed(what: str, first: _NamedRun, second: _NamedRun, values: str = "") -> UserError:
    return UserError(
        f"the {what} changed between {first[0]} and {second[0]}{values};"
        " name the runs apart with --as, once per run, to compare the two"
    )
