"""The plan of a run's pieces: which parts there will be, in which order, and what each of them depends on.

A piece is a range of items (photos, or chunks of finished pictures) times a group of models. Its outcome is one part
of pictures and one part per model, each named by the hash of all that goes in. The plan is written once, as
work/plan.json with the samples beside it, so that every worker and `merge` read the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from counterfoil.errors import UserError
from counterfoil.store.folder_mirror import is_mirrored, put_file, put_new_file
from counterfoil.store.parquet import Kind, TableWriter, read_table, release_memory, text_array
from counterfoil.store.parts import hash_rows, part_name
from counterfoil.store.sample_table import SampleTable
from counterfoil.store.sealed_record import read_sealed, write_sealed
from counterfoil.types import Sample, Skipped

PLAN, SAMPLES = "work/plan.json", "work/samples.parquet"
_MOST_ITEMS = 64  # a piece is then a minute or so of one core
_ROWS_IN_MEMORY = 20_000  # of the samples, while they are written
_FEWEST_PIECES = 128  # so that all cores have work to the end
MOST_PARAMETERS = 720_000_000  # of the models that a worker holds at once: 2.9 GB of weights, eight ViT-B
UNKNOWN_PARAMETERS = 45_000_000  # of a model that does not say: 16 of them at once
_SAMPLE_COLUMNS: dict[str, Kind] = {
    "id": "text", "label": "text", "image": "text", "mask": "text", "digest": "text", "origin": "text",
    "licence": "text",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Layer:
    """Edits that were planned together; edits that a run gets later are a layer of their own."""

    edits: tuple[str, ...]  # by name, "original" in the first layer; empty where the items are finished pictures
    digest: str  # of all that their pictures depend on besides the plan


@dataclass(frozen=True, kw_only=True)
class PiecePlan:
    """All that names and orders the parts of a run."""

    command: str  # that began the run: "run", "build" or "evaluate"
    digest: str  # of all that every picture depends on: samples, seed, working size, tools
    items: int
    size: int  # items of a piece
    models: Mapping[str, str]  # identity by name, in the order of the tables
    groups: tuple[tuple[str, ...], ...] = ()  # the models that a worker holds at once
    layers: tuple[Layer, ...] = (Layer(edits=(), digest=""),)
    steps: tuple[tuple[str, str], ...] = ()  # edit and level in the order of the tables
    working_size: int | None = None
    skipped: tuple[Skipped, ...] = ()  # before the work began

    @property
    def listed_skipped(self) -> tuple[Skipped, ...]:
        """What was skipped when the photos were listed."""
        return tuple(row for row in self.skipped if row.stage == "source")

    def ranges(self) -> Iterator[tuple[int, int]]:
        """The ranges of items, in order."""
        for start in range(0, self.items, self.size):
            yield start, min(start + self.size, self.items)

    def part(self, start: int, layer: int, model: str | None = None) -> str:
        """The name of a part: of the pictures, or of a model's answers to them."""
        identity = None if model is None else self.models[model]
        return part_name(self.digest, start, min(start + self.size, self.items), self.layers[layer].digest, identity)

    def parts(self) -> Iterator[tuple[str, int, int, str | None]]:
        """Every part there will be: its name, first item, layer and model."""
        for start, _ in self.ranges():
            for layer in range(len(self.layers)):
                for model in (None, *self.models):
                    yield self.part(start, layer, model), start, layer, model

    def parts_of_pieces(self) -> Iterator[list[str]]:
        """The names of the parts of each piece: its pictures, and the answers of a group of models to them."""
        for start, _ in self.ranges():
            for layer in range(len(self.layers)):
                for group in self.groups or ((),):
                    yield [self.part(start, layer), *(self.part(start, layer, model) for model in group)]

    def write(self, folder: Path, samples: Sequence[Sample] = ()) -> None:
        """Write the plan into a run's folder, and the samples where there are any."""
        if samples:
            _write_samples(folder / SAMPLES, samples)
        write_sealed(folder / PLAN, asdict(self))


def read_plan(folder: Path) -> PiecePlan | None:
    """The plan in a run's folder; None where there is none."""
    path = folder / PLAN
    if not path.is_file():
        return None
    try:
        content = read_sealed(path)
        layers = tuple(Layer(edits=tuple(row["edits"]), digest=row["digest"]) for row in content["layers"])
        lists = {"groups": _tuples(content["groups"]), "steps": _tuples(content["steps"])}
        skipped = tuple(Skipped(**row) for row in content["skipped"])
        return PiecePlan(**{**content, **lists, "layers": layers, "skipped": skipped})
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"expected the plan of a run in {path}, which is damaged: {error}; remove the folder"
        ) from error


def publish_plan(plan: PiecePlan, folder: Path, keep: bool) -> None:
    """Put record, samples and plan to the address of a mirrored folder; with `keep`, what is there must be the same."""
    if not is_mirrored(folder):
        return
    for name in ("run.json", SAMPLES, PLAN):  # a plan that is there has its samples
        path = folder / name
        if path.is_file():
            put_new_file(path) if keep else put_file(path)
    there = read_plan(folder)
    if keep and there is not None:
        check_same_plan(plan, there, folder)


def check_same_plan(plan: PiecePlan, there: PiecePlan, folder: Path) -> None:
    """Raises `UserError` where a plan is not the one that is in the folder."""
    if (plan.digest, plan.models, plan.layers, plan.size) != (there.digest, there.models, there.layers, there.size):
        raise UserError(
            f"expected the plan in {folder}, got another: the photos have changed since, or this is another version of"
            " Counterfoil; use the same version on every machine, or choose another --out"
        )


def read_samples(folder: Path) -> SampleTable:
    """The samples of the plan in a run's folder."""
    table = read_table(folder / SAMPLES)
    rows = zip(*(table[name] for name in _SAMPLE_COLUMNS), strict=True)
    return SampleTable([Sample(name, label, image, mask or None, *rest) for name, label, image, mask, *rest in rows])


def _tuples(rows: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(row) for row in rows)


def _write_samples(path: Path, samples: Sequence[Sample]) -> None:
    whole = SampleTable.of(samples)
    with TableWriter(path, _SAMPLE_COLUMNS) as table:
        for start in range(0, len(samples), _ROWS_IN_MEMORY):
            rows = slice(start, start + _ROWS_IN_MEMORY)
            texts = (whole.column(name)[rows] for name in _SAMPLE_COLUMNS)  # one in memory at a time
            table.write_arrays([text_array(each).dictionary_encode() for each in texts])
    release_memory()


def hash_samples(samples: Sequence[Sample]) -> str:
    """Hash of everything about the samples; where their source lies is no part of it."""
    table = SampleTable.of(samples)
    return hash_rows(text_array(table.column(name)) for name in _SAMPLE_COLUMNS)  # one in memory at a time


def choose_size(items: int, costly: bool = False) -> int:
    """Items of a piece: few in a small run, so that all cores have work; one where answers are `costly`."""
    return 1 if costly else max(1, min(_MOST_ITEMS, items // _FEWEST_PIECES))


def group_models(
    kinds: Mapping[str, object], parameters: Mapping[str, int | None] | None = None
) -> tuple[tuple[str, ...], ...]:
    """Models in groups that a worker holds at once, those of the same preprocessing together.

    Each group makes the pictures again, so a group is as large as its weights allow.

    Args:
        kinds: Each model's preprocessing by its name.
        parameters: How many each model has, where that is known.
    """
    alike: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        alike.setdefault(repr(kind), []).append(name)
    groups: list[list[str]] = []
    room = 0
    for name in (name for names in alike.values() for name in names):
        size = (parameters or {}).get(name) or UNKNOWN_PARAMETERS
        if size > room:
            groups.append([])
            room = MOST_PARAMETERS
        groups[-1].append(name)
        room -= size
    return tuple(map(tuple, groups))
