"""Damages files of every kind that Counterfoil reads, and fails where anything but one clear line comes of it.

Run by `make fuzz`; the suite runs it for a fixed number of inputs. Inputs that failed once, and some written by hand,
lie in tests/data/fuzz by kind and are tried first. A new failure is written to build/fuzz: move it there, and it is a
test.
"""

from __future__ import annotations

import argparse
import atexit
import functools
import io
import json
import shutil
import sys
import tarfile
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from counterfoil.errors import Unusable, UserError
from counterfoil.models.model_options import ModelOptions, Request, read_description
from counterfoil.models.onnx_classifier import open_session
from counterfoil.models.prediction_file import load_predictions
from counterfoil.published.file_tree import open_tree
from counterfoil.recipes.edit_recipe import load_recipe
from counterfoil.sources.pixels import decode_archive_picture, decode_mask, decode_photo, decode_picture
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.parquet import read_table
from counterfoil.store.parts import PartStore
from counterfoil.store.prediction_tables import MANIFEST_COLUMNS, read_run, read_variants
from counterfoil.store.workspace import Workspace
from counterfoil.verification.project import Verification, begin_verification
from counterfoil.verification.verdict_import import import_file
from fuzz_records import list_record_targets
from mining_workspace import write_workspace
from verify_site import YES

CORPUS = Path(__file__).parents[1] / "data" / "fuzz"
FOUND = Path("build") / "fuzz"


def _picture(form: str) -> bytes:
    rows, columns = np.mgrid[:24, :32]
    file = io.BytesIO()
    Image.fromarray(np.stack([rows * 9, columns * 7, rows * columns], axis=-1).astype(np.uint8)).save(file, form)
    return file.getvalue()


def _tar() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, content in (("a.jpg", _picture("JPEG")), ("a.cls.txt", b"cat"), ("a.mask.png", _picture("PNG"))):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def _zip() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("n01440764/sketch_0.JPEG", _picture("JPEG"))
        archive.writestr("notes.txt", "notes " * 20)
    return file.getvalue()


def _coco() -> bytes:
    regions = [{"image_id": 1, "category_id": 1, "area": 9.5, "segmentation": [[1, 1, 9, 1, 9, 9]]},
               {"image_id": 1, "category_id": 2, "segmentation": {"counts": [5, 9, 7], "size": [24, 32]}}]  # fmt: skip
    photo = {"id": 1, "file_name": "a.jpg", "height": 24, "width": 32}
    names = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
    return json.dumps({"images": [photo], "annotations": regions, "categories": names}).encode()


def _labelme() -> bytes:
    shapes = [{"label": "cat", "shape_type": "polygon", "points": [[1, 1], [9, 1], [9, 9]]},
              {"label": "dog", "shape_type": "circle", "points": [[5, 5], [9, 5]]}]  # fmt: skip
    return json.dumps({"imagePath": "a.jpg", "imageHeight": 24, "imageWidth": 32, "shapes": shapes}).encode()


def _part(folder: Path) -> bytes:
    store = PartStore(folder)
    rows = [("a", 1.5, "cat"), ("b", float("nan"), "dog")]
    store.write("part", {"id": "text", "share": "double", "label": "text"}, rows, {"skipped": []})
    return (folder / "part.parquet").read_bytes()


def _read_samples(address: str) -> None:
    source = open_source(address, None)
    for sample in source.samples()[0]:
        source.read(sample)


def _read_tree(path: Path) -> None:
    tree = open_tree(path)
    for row in list(tree.sizes.rows()):
        try:
            decode_archive_picture(tree.read(tree.sizes.path(row.at)))
        except Unusable:
            continue


def _write_source(path: Path, content: bytes, name: str) -> Path:
    """A damaged annotation file beside its photo."""
    folder = path.with_suffix(".d")
    folder.mkdir(exist_ok=True)
    (folder / "a.jpg").write_bytes(_picture("JPEG"))
    (folder / name).write_bytes(content)
    return folder


def _manifest() -> bytes:
    from counterfoil.store.parquet import write_table

    with tempfile.TemporaryDirectory() as folder:
        rows = {name: np.array(["1" if kind == "text" else 1] * 2) for name, kind in MANIFEST_COLUMNS.items()}
        return write_table(Path(folder) / "t.parquet", MANIFEST_COLUMNS, rows).read_bytes()


def _onnx() -> bytes:
    from colour_network import mean_colour_network

    with tempfile.TemporaryDirectory() as folder:
        return mean_colour_network(Path(folder) / "net.onnx", 2).read_bytes()


_RECIPE = b"about: Two.\nworking_size: 256\nedits:\n  - edit: control\n  - {edit: size, levels: {rate: [full, 0.1]}}\n"
_DESCRIPTION = b'{"labels": ["a", "b"], "size": [224, 224], "resize": 256, "mean": [1, 2.5, 3], "std": [1, 1, 1]}'
_ANSWERS = b"variant_id,class,probability\n1,cat,0.5\n1,dog,0.25\n2,cat,1\n"
_RUN = (
    b'{"command": "", "images": "x", "models": ["a"], "sanity": {}, "preprocessing": {}, "seed": 1, "recipe": "r",'
    b' "recipe_digest": "0", "model_digests": {"a": "1"}, "main_edits": {"size": ["size", "0.1"]}, "references": []}'
)

Target = Callable[[bytes, Path], object]


@functools.cache
def _verification() -> Verification:
    """A small workspace with its database, which damaged files of answers are imported into."""
    folder = Path(tempfile.mkdtemp(prefix="counterfoil-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return begin_verification(write_workspace(folder / "workspace", 2).folder, None, None)


def _verdicts(form: str) -> bytes:
    """A whole file of answers about one picture, in a form that `verify import` reads."""
    verification = _verification()
    picture = next(row.variant.id for row in verification.workspace.pictures if row.variant.attribute == "size")
    if form == "label-studio":
        results = [
            {"type": "choices", "from_name": question, "value": {"choices": [answer]}, "meta": {"annotator": "Ada"}}
            for question, answer in YES.items()
        ]
        return json.dumps([{"data": {"variant_id": picture}, "annotations": [{"result": results}]}]).encode()
    rows = [
        {"annotator": "Ada", "variant_id": picture, "question": question, "answer": answer, "seconds": "2.5",
         "time": "2026-01-01T00:00:00+00:00"}
        for question, answer in YES.items()
    ]  # fmt: skip
    if form == "json":
        return json.dumps({"verdicts": rows, "workspace_digest": verification.project.workspace_digest}).encode()
    return "\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)]).encode()


def _import(suffix: str) -> Target:
    def target(content: bytes, path: Path) -> None:
        file = path.with_suffix(suffix)
        file.write_bytes(content)
        import_file(_verification(), file)

    return target


def list_targets() -> dict[str, tuple[Callable[[], bytes], Target]]:
    """A whole input of each kind, and what reads it."""

    def read_run_folder(content: bytes, path: Path) -> None:
        folder = path.with_suffix(".run")
        folder.mkdir(exist_ok=True)
        (folder / "variants.parquet").write_bytes(_manifest())
        (folder / "run.json").write_bytes(content)
        read_run(folder)

    def read_workspace(content: bytes, path: Path) -> None:
        folder = path.with_suffix(".work")
        (folder / "pictures").mkdir(parents=True, exist_ok=True)
        (folder / "variants.parquet").write_bytes(content)
        _ = Workspace(folder).pictures

    def read_part(content: bytes, path: Path) -> None:
        folder = path.with_suffix(".parts")
        folder.mkdir(exist_ok=True)
        (folder / "part.parquet").write_bytes(content)
        PartStore(folder).read("part")

    def part() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            return _part(Path(folder))

    def on_file(read: Callable[[Path], object], suffix: str) -> Target:
        def target(content: bytes, path: Path) -> None:
            file = path.with_suffix(suffix)
            file.write_bytes(content)
            read(file)

        return target

    return {
        "jpeg": (lambda: _picture("JPEG"), lambda content, path: decode_photo(content)),
        "png": (lambda: _picture("PNG"), lambda content, path: decode_picture(content, "x")),
        "webp": (lambda: _picture("WEBP"), lambda content, path: decode_archive_picture(content)),
        "mask": (lambda: _picture("PNG"), lambda content, path: decode_mask(content)),
        "recipe": (lambda: _RECIPE, on_file(lambda file: load_recipe(str(file)), ".yaml")),
        "description": (lambda: _DESCRIPTION, lambda content, path: _describe(content, path)),
        "manifest": (_manifest, on_file(lambda file: read_variants(read_table(file)), ".parquet")),
        "workspace": (_manifest, read_workspace),
        "run": (lambda: _RUN, read_run_folder),
        "part": (part, read_part),
        "webdataset": (_tar, on_file(lambda file: _read_samples(f"webdataset:{file}"), ".tar")),
        "tar": (_tar, on_file(_read_tree, ".tar")),
        "zip": (_zip, on_file(_read_tree, ".zip")),
        "coco": (_coco, lambda content, path: _read_samples(f"coco:{_write_source(path, content, 'labels.json')}")),
        "labelme": (_labelme, lambda content, path: _read_samples(f"labelme:{_write_source(path, content, 'a.json')}")),
        "answers": (
            lambda: _ANSWERS,
            on_file(lambda file: load_predictions(Request(f"predictions:{file}", str(file), ModelOptions())), ".csv"),
        ),
        "onnx": (_onnx, on_file(open_session, ".onnx")),
        "verdicts-csv": (lambda: _verdicts("csv"), _import(".csv")),
        "verdicts-json": (lambda: _verdicts("json"), _import(".json")),
        "label-studio": (lambda: _verdicts("label-studio"), _import(".json")),
        **list_record_targets(),
    }


def _describe(content: bytes, path: Path) -> None:
    file = path.with_suffix(".json")
    file.write_bytes(content)
    read_description(path.with_suffix(".onnx"), None)


def mutate(content: bytes, rng: np.random.Generator) -> bytes:
    """The content with one to four faults: flipped bits, cut ends, repeated or removed spans, extreme numbers."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        if not data:
            return bytes(data)
        place, kind = int(rng.integers(len(data))), int(rng.integers(6))
        span = int(rng.integers(1, 17))
        if kind == 0:
            data[place] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del data[place:]
        elif kind == 2:
            data[place:place] = data[place : place + span]
        elif kind == 3:
            del data[place : place + span]
        elif kind == 4:
            data[place : place + 4] = (b"\xff\xff\xff\x7f", b"\0\0\0\0", b"\xff\xff\xff\xff")[span % 3]
        else:
            data[place : place + 1] = (b"NaN", b"-1", b"1e999", b"[" * 2000, b"\0", b"\xed\xa0\x80", b"null")[span % 7]
    return bytes(data)


def try_input(name: str, content: bytes, folder: Path) -> str:
    """Read one input; empty where it is read or refused in one line, else the traceback."""
    _, target = list_targets()[name]
    try:
        target(content, folder / "input")
    except (UserError, Unusable) as error:
        return "" if "\n" not in str(error) else f"the message has several lines: {error}"
    except BaseException as error:  # anything else is what is looked for
        if isinstance(error, KeyboardInterrupt):
            raise
        return traceback.format_exc()
    return ""


def list_corpus() -> Iterator[tuple[str, Path]]:
    """The inputs that are kept: kind and file."""
    for path in sorted(CORPUS.glob("*/*")):
        yield path.parent.name, path


def fuzz(seconds: float, inputs: int, seed: int) -> tuple[int, list[str]]:
    """Try the corpus, then damaged inputs of every kind in turn; gives how many were tried and the failures."""
    rng, failures, tried = np.random.default_rng(seed), [], 0
    whole = {name: make() for name, (make, _) in list_targets().items()}
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        for name, path in list_corpus():
            tried += 1
            if fault := try_input(name, path.read_bytes(), Path(folder)):
                failures.append(f"{name} {path}: {fault}")
        while tried < inputs or (inputs == 0 and time.monotonic() < end):
            name = list(whole)[tried % len(whole)]
            content = mutate(whole[name], rng)
            tried += 1
            if fault := try_input(name, content, Path(folder)):
                FOUND.joinpath(name).mkdir(parents=True, exist_ok=True)
                kept = FOUND / name / f"{seed}-{tried}"
                kept.write_bytes(content)
                failures.append(f"{name} {kept}: {fault}")
    return tried, failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    tried, failures = fuzz(given.seconds, 0, given.seed)
    for failure in failures[:20]:
        print(failure)
    print(f"seed {given.seed}: {tried} inputs of {len(list_targets())} kinds, {len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
