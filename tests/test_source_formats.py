"""Annotation formats: read as their own tools read them, and written so that they come back the same."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from pycocotools import mask as coco_masks
from pycocotools.coco import COCO
from skimage import data

from counterfoil.errors import Unusable, UserError
from counterfoil.pipeline import source_at
from counterfoil.pipeline.converting import convert
from counterfoil.source.formats.regions import as_run_lengths, filled, outlines, run_lengths
from counterfoil.source.formats.writing import WRITERS, file_name
from counterfoil.types import Sample, Skipped, Source

PHOTOS = {"tabby": data.chelsea(), "espresso": data.coffee()[:300, :451]}
Mask = NDArray[np.uint8]


def star(rng: np.random.Generator, size: tuple[int, int]) -> list[float]:
    """A polygon of a few points around the middle."""
    height, width = size
    angles = np.sort(rng.uniform(0, 2 * np.pi, int(rng.integers(5, 12))))
    radius = rng.uniform(0.2, 0.5, len(angles))
    x, y = width / 2 + radius * width * np.cos(angles), height / 2 + radius * height * np.sin(angles)
    return [float(value) for value in np.stack([x, y], 1).ravel()]


def oval(height: int = 300, width: int = 451) -> Mask:
    y, x = np.mgrid[:height, :width]
    inside = ((y - height / 2) / (height / 3)) ** 2 + ((x - width / 2) / (width / 4)) ** 2 < 1
    return np.where(inside, 255, 0).astype(np.uint8)


def png(pixels: NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def folder_of_photos(root: Path) -> Source:
    """Two classes, three photos, masks of ovals."""
    for label, photo in PHOTOS.items():
        for number in range(2 if label == "tabby" else 1):
            for kind, pixels in (("images", np.roll(photo, 40 * number, axis=1)), ("masks", oval())):
                path = root / kind / label / f"{number}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(png(pixels))
    return source_at(root / "images", root / "masks")


def everything(source: Source) -> dict[str, tuple[bytes, bytes]]:
    """Pixels and mask of every photo, by label and content."""
    found = {}
    for sample in source.samples()[0]:
        image, mask = source.read(sample)
        assert mask is not None
        found[f"{sample.label} {hash(image.tobytes())}"] = (image.tobytes(), (mask >= 128).tobytes())
    return found


def test_run_lengths_are_those_of_pycocotools_both_ways() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        mask = np.where(cv2.blur(rng.random((57, 91)), (9, 9)) > 0.5, 255, 0).astype(np.uint8)
        mask[0, 0] = rng.choice([0, 255])
        packed = coco_masks.encode(np.asfortranarray(mask // 255))
        np.testing.assert_array_equal(run_lengths(packed, (57, 91)), mask)
        np.testing.assert_array_equal(run_lengths({**packed, "counts": packed["counts"].decode()}, (57, 91)), mask)
        np.testing.assert_array_equal(run_lengths(as_run_lengths(mask), (57, 91)), mask)
        np.testing.assert_array_equal(
            coco_masks.decode(coco_masks.frPyObjects(as_run_lengths(mask), 57, 91)), mask // 255
        )


def test_polygons_are_filled_as_pycocotools_fills_them_but_for_border_pixels() -> None:
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(60):
        size = (int(rng.integers(60, 200)), int(rng.integers(60, 200)))
        polygon = star(rng, size)
        theirs = coco_masks.decode(coco_masks.merge(coco_masks.frPyObjects([polygon], *size))) > 0
        ours = filled([polygon], size) > 0
        border = cv2.morphologyEx(theirs.astype(np.uint8), cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)) > 0
        assert not (ours ^ theirs)[~border].any()
        shares.append((ours & theirs).sum() / (ours | theirs).sum())
    assert np.mean(shares) > 0.99


def test_a_mask_comes_back_from_its_outlines() -> None:
    back = filled(outlines(oval()), (300, 451))
    assert ((back > 0) ^ (oval() > 0)).mean() < 1e-4


@pytest.mark.parametrize("counts", ["!!", [3, -1], [1, 2], "0" * 5 + "P"])
def test_broken_run_lengths_are_one_unusable_picture(counts: object) -> None:
    with pytest.raises(Unusable):
        run_lengths({"size": [4, 4], "counts": counts}, (4, 4))


@pytest.mark.parametrize("form", [name for name in WRITERS if name != "folder"])
def test_photos_and_masks_come_back_from_every_format(tmp_path: Path, form: str) -> None:
    source = folder_of_photos(tmp_path / "in")
    written, skipped = convert(source, tmp_path / form, form)
    assert (written, skipped) == (3, [])
    back, there = everything(source_at(f"{form}:{tmp_path / form}", None)), everything(source)
    assert back.keys() == there.keys()
    for key, (image, mask) in there.items():
        assert back[key][0] == image
        different = np.frombuffer(back[key][1], bool) != np.frombuffer(mask, bool)
        assert different.mean() <= (1e-4 if form == "labelme" else 0)  # LabelMe alone knows outlines only


def test_a_source_of_any_format_is_found_again_by_its_address(tmp_path: Path) -> None:
    convert(folder_of_photos(tmp_path / "in"), tmp_path / "out", "coco")
    source = source_at(f"coco:{tmp_path / 'out'}", None)
    again = source_at(str(getattr(source, "images", "")), None)
    assert [sample.digest for sample in again.samples()[0]] == [sample.digest for sample in source.samples()[0]]


def test_pycocotools_opens_what_we_write(tmp_path: Path) -> None:
    convert(folder_of_photos(tmp_path / "in"), tmp_path / "out", "coco")
    theirs = COCO(str(tmp_path / "out" / "labels.json"))
    assert sorted(row["name"] for row in theirs.loadCats(theirs.getCatIds())) == ["espresso", "tabby"]
    for number in theirs.getAnnIds():
        (annotation,) = theirs.loadAnns(number)
        np.testing.assert_array_equal(theirs.annToMask(annotation), oval() // 255)
        assert annotation["area"] == int((oval() > 0).sum())
        assert annotation["bbox"] == coco_masks.toBbox(theirs.annToRLE(annotation)).tolist()


def test_datasets_opens_what_we_write(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    convert(folder_of_photos(tmp_path / "in"), tmp_path / "out", "parquet")
    files = [str(path) for path in (tmp_path / "out").glob("*.parquet")]
    rows = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(tmp_path / "cache"))
    names = rows.features["label"].names
    assert sorted(names[row["label"]] for row in rows) == ["espresso", "tabby", "tabby"]
    np.testing.assert_array_equal(np.asarray(rows[0]["mask"]), oval())


def test_a_dataset_saved_by_datasets_is_read(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"img": datasets.Image(), "label": datasets.ClassLabel(names=["espresso", "tabby"])})
    rows = {"img": [Image.fromarray(PHOTOS["tabby"]), Image.fromarray(PHOTOS["espresso"])], "label": [1, 0]}
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(str(tmp_path / "saved"))
    source = source_at(f"parquet:{tmp_path / 'saved'}", None)
    samples = {sample.label: sample for sample in source.samples()[0]}
    np.testing.assert_array_equal(source.read(samples["tabby"])[0], PHOTOS["tabby"])
    assert source.read(samples["espresso"])[1] is None


def test_a_coco_photo_counts_as_the_class_that_covers_most_of_it(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(png(PHOTOS["tabby"]))
    (tmp_path / "images" / "b.png").write_bytes(png(PHOTOS["espresso"]))
    square = [[10, 10, 110, 10, 110, 110, 10, 110]]
    small, other = [[200, 10, 260, 10, 260, 70, 200, 70]], [[300, 10, 420, 10, 420, 100, 300, 100]]
    rows = [(1, "cat", square, 10000), (1, "cat", small, 3600), (1, "cup", other, 10800)]
    file = tmp_path / "annotations.json"
    annotations = [
        {"id": i, "image_id": image, "category_id": {"cat": 7, "cup": 9}[label], "segmentation": shape, "area": area}
        for i, (image, label, shape, area) in enumerate(rows)
    ]
    crowd = {"id": 9, "image_id": 2, "category_id": 9, "segmentation": square, "area": 1.0, "iscrowd": 1}
    images = [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "b.png"}, {"id": 3, "file_name": "../x.png"}]
    categories = [{"id": 7, "name": "cat"}, {"id": 9, "name": "cup"}]
    file.write_text(json.dumps({"images": images, "annotations": [*annotations, crowd], "categories": categories}))
    source = source_at(f"coco:{file}", None)
    (sample,), skipped = source.samples()
    assert sample.label == "cat"
    assert [row.sample_id for row in skipped] == ["b.png", "../x.png"]
    _, mask = source.read(sample)
    assert mask is not None
    assert mask[60, 60] == 255
    assert mask[40, 230] == 255  # the second cat belongs to the object
    assert mask[50, 350] == 0  # the cup does not


def test_labelme_shapes_of_every_kind_are_drawn(tmp_path: Path) -> None:
    stamp = np.ones((20, 30), np.uint8) * 255
    shapes = [
        {"label": "tabby", "shape_type": "rectangle", "points": [[10, 20], [60, 50]]},
        {"label": "tabby", "shape_type": "circle", "points": [[200, 150], [250, 150]]},
        {"label": "tabby", "shape_type": "mask", "points": [[400, 270], [430, 290]],
         "mask": base64.b64encode(png(stamp)).decode()},
        {"label": "cup", "shape_type": "line", "points": [[0, 0], [450, 299]]},
    ]  # fmt: skip
    photo = base64.b64encode(png(PHOTOS["tabby"])).decode()
    (tmp_path / "cat.json").write_text(json.dumps({"imagePath": "gone.png", "imageData": photo, "shapes": shapes}))
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "odd.json").write_text(json.dumps({"shapes": [{"label": "x", "points": "none"}]}))
    source = source_at(f"labelme:{tmp_path}", None)
    (sample,), skipped = source.samples()
    assert {row.sample_id for row in skipped} == {"broken.json", "odd.json"}
    _, mask = source.read(sample)
    assert mask is not None
    area = 50 * 30 + np.pi * 50**2 + 20 * 30
    assert abs((mask > 0).sum() - area) < 0.02 * area
    assert mask[280, 415] == 255


def test_the_void_border_of_voc_is_unknown(tmp_path: Path) -> None:
    indices = np.zeros((300, 451), np.uint8)
    indices[100:200, 100:300] = 255
    indices[104:196, 104:296] = 8
    indices[10:20, 10:20] = 15
    indices[250:260, 400:420] = 255
    for name in ("JPEGImages", "SegmentationClass"):
        (tmp_path / name).mkdir()
    Image.fromarray(PHOTOS["tabby"]).save(tmp_path / "JPEGImages" / "2007_1.jpg", quality=95)
    picture = Image.fromarray(indices, mode="P")
    picture.putpalette([3, 141, 59] * 256)  # colours must not matter
    picture.save(tmp_path / "SegmentationClass" / "2007_1.png")
    source = source_at(f"voc:{tmp_path}", None)
    (sample,), _ = source.samples()
    assert sample.label == "cat"
    _, mask = source.read(sample)
    assert mask is not None
    assert [mask[150, 200], mask[102, 200], mask[15, 15], mask[255, 410]] == [255, 128, 0, 0]


def test_numbers_as_labels_need_their_names(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "shard.tar", "w") as archive:
        for name, content in (("a.png", png(PHOTOS["tabby"])), ("a.cls", b"1"), ("b.png", png(PHOTOS["espresso"]))):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    with pytest.raises(UserError, match=r"number 1, and classes\.txt"):
        source_at(f"webdataset:{tmp_path}", None).samples()
    (tmp_path / "classes.txt").write_text("espresso\ntabby\n")
    samples, skipped = source_at(f"webdataset:{tmp_path}", None).samples()
    assert [sample.label for sample in samples] == ["tabby"]
    assert "no label" in skipped[0].reason


def test_a_truncated_shard_is_said(tmp_path: Path) -> None:
    convert(folder_of_photos(tmp_path / "in"), tmp_path / "out", "webdataset")
    (shard,) = (tmp_path / "out").glob("*.tar")
    shard.write_bytes(shard.read_bytes()[:2000])
    with pytest.raises(UserError):
        source_at(f"webdataset:{tmp_path / 'out'}", None).samples()


def test_a_whole_fiftyone_dataset_is_read(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "fields").mkdir()
    (tmp_path / "data" / "cat.png").write_bytes(png(PHOTOS["tabby"]))
    (tmp_path / "fields" / "cat.png").write_bytes(png(oval()))
    sample = {
        "filepath": "data/cat.png",
        "ground_truth": {"_cls": "Classification", "label": "tabby"},
        "object": {"_cls": "Segmentation", "mask_path": "fields/cat.png"},
    }
    (tmp_path / "samples.json").write_text(json.dumps({"samples": [sample, {"filepath": "data/none.png"}]}))
    source = source_at(f"fiftyone:{tmp_path}", None)
    (found,), skipped = source.samples()
    assert found.label == "tabby"
    np.testing.assert_array_equal(source.read(found)[1], oval())
    assert len(skipped) == 1


@pytest.mark.parametrize("form", ["coco", "labelme", "voc", "webdataset", "parquet", "fiftyone"])
def test_a_path_that_is_not_there_is_one_line(tmp_path: Path, form: str) -> None:
    with pytest.raises(UserError, match="expected"):
        source_at(f"{form}:{tmp_path / 'nowhere'}", None).samples()


def test_converting_never_writes_over_files(tmp_path: Path) -> None:
    source = folder_of_photos(tmp_path / "in")
    with pytest.raises(UserError, match="holds files"):
        convert(source, tmp_path / "in", "coco")


def test_names_do_not_grow_however_often_photos_are_converted(tmp_path: Path) -> None:
    source = folder_of_photos(tmp_path / "in")
    before = {PurePosixPath(sample.id).with_suffix("") for sample in source.samples()[0]}
    convert(source, tmp_path / "folder", "folder")
    again = source_at(tmp_path / "folder" / "images", tmp_path / "folder" / "masks")
    assert {PurePosixPath(sample.id).with_suffix("") for sample in again.samples()[0]} == before
    names = []
    for number, form in enumerate(("coco", "voc", "coco")):
        convert(source, tmp_path / str(number), form)
        source = source_at(f"{form}:{tmp_path / str(number)}", None)
        names.append({PurePosixPath(sample.id).stem for sample in source.samples()[0]})
    assert names[0] == names[1] == names[2]


def test_photos_of_labels_that_share_a_folder_stay_apart(tmp_path: Path) -> None:
    used: set[str] = set()
    samples = [Sample(f"{label}/x.png", label, "", None, "") for label in ("a/b", "a_b", "c")]
    assert [file_name(sample, used, "folder") for sample in samples] == ["x", "x-2", "x"]


def test_converting_lists_the_photos_once(tmp_path: Path) -> None:
    counted = Counted(folder_of_photos(tmp_path / "in"))
    convert(counted, tmp_path / "out", "coco")
    assert counted.listings == 1


@dataclass
class Counted:
    """A source that counts how often its photos are listed, which reads every file."""

    source: Source
    listings: int = 0

    def samples(self) -> tuple[Sequence[Sample], Sequence[Skipped]]:
        self.listings += 1
        return self.source.samples()

    def read(self, sample: Sample) -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None]:
        return self.source.read(sample)
