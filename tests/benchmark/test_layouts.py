"""Benchmarks load unchanged with the programs that people have: `datasets`, torchvision, pyarrow, mlcroissant."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from counterfoil.benchmark.frozen_benchmark import open_benchmark
from counterfoil.benchmark.layouts import LAYOUTS, LayoutName
from counterfoil.benchmark.release import FreezeConfig, freeze_workspace
from counterfoil.benchmark.writer import Title
from freeze_workspaces import write_workspace
from torch_setup import library


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One benchmark in each layout, with several shards."""
    folder = tmp_path_factory.mktemp("loading")
    workspace = write_workspace(folder)
    title = Title("planted", "1.0.0", "Ovals on textures.", "https://example.org/planted", "2027-01-31")
    for layout in LAYOUTS:
        freeze_workspace(workspace, FreezeConfig(title=title, layout=layout, shard_bytes=60_000), folder / layout)
    return folder


def pixels_by_id(folder: Path, split: str) -> dict[str, NDArray[np.uint8]]:
    benchmark = open_benchmark(folder)
    rows = zip(benchmark.pictures, benchmark.manifest.table["split"], strict=True)
    return {one.variant.id: benchmark.read(one) for one, there in rows if there == split}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_hugging_face_datasets_loads_every_layout(
    sets: Path, tmp_path: Path, layout: LayoutName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    loaded = datasets.load_dataset(str(sets / layout), cache_dir=str(tmp_path))
    assert set(loaded) == {"test", "reference"}
    for split in loaded:
        expected = pixels_by_id(sets / layout, split)
        rows = [(row["json"], row["png"]) if layout == "webdataset" else (row, row["image"]) for row in loaded[split]]
        assert {about["id"] for about, _ in rows} == set(expected)
        for about, image in rows:
            np.testing.assert_array_equal(np.asarray(image), expected[about["id"]])
            assert about["sample_id"].startswith(about.get("label_name", about["label"]))
        streamed = datasets.load_dataset(str(sets / layout), split=split, streaming=True)
        assert [row.get("id") or row["json"]["id"] for row in streamed] == [about["id"] for about, _ in rows]


def test_the_label_of_parquet_shards_is_a_class_label_with_its_names(sets: Path, tmp_path: Path) -> None:
    import datasets

    rows = datasets.load_dataset(str(sets / "parquet"), cache_dir=str(tmp_path), split="test")
    label = rows.features["label"]
    assert isinstance(label, datasets.ClassLabel)
    assert label.names == ["azure", "crimson", "emerald", "violet"]
    assert [label.int2str(number) for number in rows["label"]] == list(rows["label_name"])


@pytest.mark.torch
def test_torchvision_reads_each_condition_as_an_image_folder(sets: Path) -> None:
    folder = sets / "folder" / "data" / "test" / "size" / "0.05"
    loaded = library("torchvision.datasets").ImageFolder(str(folder))
    assert loaded.classes == ["azure", "crimson", "emerald", "violet"]
    assert len(loaded) == 4
    for image, number in loaded:
        assert image.size == (120, 96)
        assert 0 <= number < 4
    labels = {Path(path).parent.name: loaded.classes[number] for path, number in loaded.samples}
    assert all(folder_name == label for folder_name, label in labels.items())


def test_pyarrow_reads_the_parquet_shards(sets: Path) -> None:
    import pyarrow.parquet

    expected = pixels_by_id(sets / "parquet", "test")
    shards = sorted((sets / "parquet" / "data").glob("test-*.parquet"))
    assert len(shards) > 1
    rows = [row for shard in shards for row in pyarrow.parquet.read_table(shard).to_pylist()]
    assert len(rows) == len(expected)
    for row in rows:
        image = np.asarray(Image.open(io.BytesIO(row["image"]["bytes"])))
        np.testing.assert_array_equal(image, expected[row["id"]])
        assert row["image"]["path"].endswith(".png")


def test_tar_reads_the_webdataset_shards(sets: Path) -> None:
    expected = pixels_by_id(sets / "webdataset", "test")
    labels = [
        one["label"] for one in json.loads((sets / "webdataset" / "benchmark.json").read_text())["labels"]["classes"]
    ]
    found: dict[str, dict[str, bytes]] = {}
    for shard in sorted((sets / "webdataset" / "data").glob("test-*.tar")):
        with tarfile.open(shard) as archive:
            for member in archive:
                key, _, ending = member.name.partition(".")
                found.setdefault(key, {})[ending] = _content(archive, member)
    assert set(found) == set(expected)
    for key, parts in found.items():
        np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(parts["png"]))), expected[key])
        assert json.loads(parts["json"])["label"] == labels[int(parts["cls"])]


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None
    return file.read()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_croissant_description_is_valid_and_gives_manifest_and_pictures(sets: Path, layout: LayoutName) -> None:
    import mlcroissant

    dataset = mlcroissant.Dataset(jsonld=str(sets / layout / "croissant.json"))
    assert dataset.metadata.ctx.issues.report() == ""
    rows: list[dict[str, Any]] = list(dataset.records("manifest"))
    assert {row["manifest/id"].decode() for row in rows} == {
        one.variant.id for one in open_benchmark(sets / layout).pictures
    }
    if layout == "webdataset":  # mlcroissant would mix up the tar files of different benchmarks
        return
    pictures: list[dict[str, Any]] = list(dataset.records("images"))
    expected = {**pixels_by_id(sets / layout, "test"), **pixels_by_id(sets / layout, "reference")}
    name = "file" if layout == "folder" else "id"
    ids = {row[f"manifest/{name}"]: row["manifest/id"].decode() for row in rows}
    assert {ids[row[f"images/{name}"]] for row in pictures} == set(expected)
    for row in pictures:
        np.testing.assert_array_equal(np.asarray(row["images/image"]), expected[ids[row[f"images/{name}"]]])


def test_fiftyone_finds_a_label_for_every_picture(sets: Path) -> None:
    """The form of FiftyOneImageClassificationDataset: paths below data/ without ending, numbers into the classes."""
    folder = sets / "folder"
    told = json.loads((folder / "labels.json").read_text())
    pictures = {str(path.relative_to(folder / "data").with_suffix("")) for path in folder.rglob("*.png")}
    assert set(told["labels"]) == pictures
    assert all(told["classes"][number] == Path(name).parent.name for name, number in told["labels"].items())
