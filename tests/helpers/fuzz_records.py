"""Further inputs of the fuzzer: records, tables and annotation files that Counterfoil or other tools wrote."""

from __future__ import annotations

import atexit
import csv
import functools
import gzip
import io
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from counterfoil.benchmark.frozen_benchmark import open_benchmark
from counterfoil.cli.config_file import _entries
from counterfoil.errors import Unusable
from counterfoil.imported_answers import ImportConfig, _prepare
from counterfoil.labels.benchmark_classes import load_label_space
from counterfoil.models.model_options import ModelOptions, Request
from counterfoil.models.prediction_file import load_predictions
from counterfoil.published.file_tree import open_tree
from counterfoil.recipes.prompt_recipe import load_prompt_recipe
from counterfoil.sources.folder import read_licences
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.piece_plan import PiecePlan, read_plan
from counterfoil.store.prediction_tables import read_skipped
from counterfoil.store.run_checksums import list_changed_files, record_checksums
from counterfoil.store.workspace import Workspace
from counterfoil.types import Skipped
from counterfoil.verification.questionnaire import load_questionnaire
from freeze_workspaces import frozen
from mining_workspace import write_workspace

Target = Callable[[bytes, Path], object]
Kind = tuple[Callable[[], bytes], Target]

_CLASSES = b'{"cat": ["n02123045", "n02123159"], "dog": {"ids": ["n02085620"], "name": "small dog"}}'
_FIFTYONE = b'{"classes": ["cat", "dog"], "labels": {"a": 0, "b": {"label": "dog", "confidence": 0.5}}}'
_SAMPLES = (
    b'{"samples": [{"filepath": "data/a.jpg", "ground_truth": {"_cls": "Classification", "label": "tabby"}, "object":'
    b' {"_cls": "Segmentation", "mask": {"$binary": {"base64": "AAAA", "subType": "00"}}}}, {"filepath": "data/b.jpg",'
    b' "ground_truth": {"_cls": "Classification", "label": "tabby"}, "metadata": {"width": 32, "height": 24}}]}'
)
_IMPORT = b"model,sample,condition,label,prediction,confidence\n" + b"".join(
    f"net,p{photo},{condition},cat,{'cat' if photo % 2 else 'dog'},0.{photo + 1}\n".encode()
    for photo in range(4) for condition in ("original", "size 0.1")
)  # fmt: skip
_LICENCES = b'file,licence,origin\ncat/a.jpg,CC-BY-4.0,"https://example.org, 1"\n'
_QUESTIONS = b"annotators: 3\ncontrol_share: 0.1\nquestions:\n  - {id: clear, text: 'Is {class} clear?'}\nseed: 7\n"
_CONFIG = b"images: photos\nmodels: [embedded:efficientnet-lite0, 'a=onnx:b.onnx']\nlimit: 5\n"
_PROMPTS = (
    b"about: Two.\npaints: pictures\nclasses: imagenet-d\nplain: 'a photo of {a_category}'\nattributes:\n"
    b"  - {attribute: background, templates: {place: '{a_category} in {value}'}, values: [the wood, the water]}\n"
)
_MINED = b'{"kept": ["a", "b"], "rule": "all", "surrogates": {"net": "0"}, "workspace_digest": "0"}'
_VERIFIED = (
    b'{"decisions": [{"variant_id": "a", "kept": true, "answers": {"clear": {"yes": 3}}, "decided": {"clear": "yes"}}],'
    b' "questions": {"clear": "Is it?"}, "rule": "majority", "annotators": 3, "agreement": {"clear": {"kappa": null}},'
    b' "workspace_digest": "0"}'
)


def _picture(form: str) -> bytes:
    rows, columns = np.mgrid[:24, :32]
    file = io.BytesIO()
    Image.fromarray(np.stack([rows * 9, columns * 7, rows * columns], axis=-1).astype(np.uint8)).save(file, form)
    return file.getvalue()


def _indexed_mask() -> bytes:
    values = np.zeros((24, 32), np.uint8)
    values[8:16, 8:20] = 8
    picture, file = Image.fromarray(values, "P"), io.BytesIO()
    picture.putpalette([value % 256 for value in range(768)])
    picture.save(file, "PNG")
    return file.getvalue()


def _photo_table() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    image = {"bytes": _picture("JPEG"), "path": "a.jpg"}
    file = io.BytesIO()
    pq.write_table(pa.table({"image": [image, image], "label": ["cat", "dog"]}), file)
    return file.getvalue()


def _answer_table() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    columns = {"variant_id": ["1", "1", "2"], "class": ["cat", "dog", "cat"], "probability": [0.5, 0.25, 1.0]}
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def _packed_tar() -> bytes:
    from fuzzer import _tar

    return gzip.compress(_tar(), mtime=0)


def _plan() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        skipped = (Skipped("a", "source", "", "no picture"),)
        PiecePlan(command="run", digest="0", items=4, size=2, models={"net": "1"}, skipped=skipped).write(Path(folder))
        return (Path(folder) / "work" / "plan.json").read_bytes()


def _checksums() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "run.json").write_text("{}")
        record_checksums(Path(folder))
        return (Path(folder) / "checksums.json").read_bytes()


@functools.cache
def _frozen() -> Path:
    """A small benchmark, whose record is damaged in a copy."""
    folder = Path(tempfile.mkdtemp(prefix="counterfoil-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    frozen(write_workspace(folder / "workspace", 2), folder / "frozen")
    return folder / "frozen"


def _read_benchmark(folder: Path) -> None:
    damaged = (folder / "benchmark.json").read_bytes()
    shutil.copytree(_frozen(), folder, dirs_exist_ok=True)
    (folder / "benchmark.json").write_bytes(damaged)
    benchmark = open_benchmark(folder)
    _ = benchmark.pictures, benchmark.surrogates


def _skipped() -> bytes:
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(["sample_id", "stage", "edit", "reason"])
    writer.writerow(["cat/a.jpg", "source", "", 'a "reason", with\na line'])
    return file.getvalue().encode()


def _in_folder(name: str, read: Callable[[Path], object], **others: bytes) -> Target:
    """Reads a folder in which one file is damaged and the others are whole."""

    def target(content: bytes, path: Path) -> None:
        folder = path.with_suffix(f".{name.replace('/', '-')}")
        for place, whole in {**others, name: content}.items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_bytes(whole)
        read(folder)

    return target


def _on_file(suffix: str, read: Callable[[Path], object]) -> Target:
    def target(content: bytes, path: Path) -> None:
        file = path.with_suffix(suffix)
        file.write_bytes(content)
        read(file)

    return target


def _read_photos(address: str) -> None:
    source = open_source(address, None)
    for sample in source.samples()[0]:
        try:
            source.read(sample)
        except Unusable:
            continue


def _read_workspace(folder: Path) -> None:
    (folder / "pictures").mkdir(exist_ok=True)
    (folder / "variants.parquet").touch()
    workspace = Workspace(folder)
    _ = workspace.mined, workspace.verified


def list_record_targets() -> dict[str, Kind]:
    """A whole input of each kind, and what reads it."""
    photo, mask = _picture("JPEG"), _indexed_mask()
    voc, fiftyone = {"JPEGImages/a.jpg": photo}, {"data/a.jpg": photo, "data/b.jpg": photo[:-2] + b"\0\xff\xd9"}
    return {
        "voc": (
            lambda: mask,
            _in_folder("SegmentationClass/a.png", lambda folder: _read_photos(f"voc:{folder}"), **voc),
        ),
        "fiftyone-labels": (
            lambda: _FIFTYONE,
            _in_folder("labels.json", lambda folder: _read_photos(f"fiftyone:{folder}"), **fiftyone),
        ),
        "fiftyone-samples": (
            lambda: _SAMPLES,
            _in_folder("samples.json", lambda folder: _read_photos(f"fiftyone:{folder}"), **fiftyone),
        ),
        "photo-table": (_photo_table, _on_file(".parquet", lambda file: _read_photos(f"parquet:{file}"))),
        "answer-table": (
            _answer_table,
            _on_file(
                ".parquet",
                lambda file: load_predictions(Request(f"predictions:{file}", str(file), ModelOptions())),
            ),
        ),
        "packed-tar": (_packed_tar, _on_file(".tar.gz", lambda file: list(open_tree(file).sizes))),
        "classes": (lambda: _CLASSES, _on_file(".json", lambda file: load_label_space(str(file)))),
        "questions": (lambda: _QUESTIONS, _on_file(".yaml", load_questionnaire)),
        "prompts": (lambda: _PROMPTS, _on_file(".yaml", lambda file: load_prompt_recipe(str(file)))),
        "config": (lambda: _CONFIG, _on_file(".yaml", _entries)),
        "licences": (lambda: _LICENCES, _on_file(".csv", read_licences)),
        "import": (lambda: _IMPORT, _on_file(".csv", lambda file: _prepare(ImportConfig(answers=(file,))))),
        "plan": (_plan, _in_folder("work/plan.json", read_plan)),
        "checksums": (_checksums, _in_folder("checksums.json", list_changed_files, **{"run.json": b"{}"})),
        "mined": (lambda: _MINED, _in_folder("mined.json", _read_workspace)),
        "verified": (lambda: _VERIFIED, _in_folder("verified.json", _read_workspace)),
        "skipped": (_skipped, _in_folder("skipped.csv", read_skipped)),
        "benchmark": (
            lambda: (_frozen() / "benchmark.json").read_bytes(),
            _in_folder("benchmark.json", _read_benchmark),
        ),
    }
