"""Annotation formats: read as their own tools read them, and written so that they come back the same."""

from __future__ import annotations

import base64
import io
import json
import tarfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from PIL import Image
from pycocotools import mask as coco_masks
from pycocotools.coco import COCO
from skimage import data

from counterfoil.errors import Unusable, UserError
from counterfoil.sources.coco_masks import decode_run_lengths, draw_polygons, encode_run_lengths
from counterfoil.sources.conversion import WRITERS, choose_file_name, convert
from counterfoil.sources.source_loaders import open_source
from counterfoil.sources.webdataset import write_shard
from counterfoil.types import Sample, Skipped, Source, SourceBase

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
    """An object with a hole, which no polygon has."""
    y, x = np.mgrid[:height, :width]
    inside = ((y - height / 2) / (height / 3)) ** 2 + ((x - width / 2) / (width / 4)) ** 2 < 1
    inside[140:150, 200:220] = False
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
    return open_source(root / "images", root / "masks")


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
        np.testing.assert_array_equal(decode_run_lengths(packed, (57, 91)), mask)
        np.testing.assert_array_equal(
            decode_run_lengths({**packed, "counts": packed["counts"].decode()}, (57, 91)), mask
        )
        np.testing.assert_array_equal(decode_run_lengths(encode_run_lengths(mask), (57, 91)), mask)
        np.testing.assert_array_equal(
            coco_masks.decode(coco_masks.frPyObjects(encode_run_lengths(mask), 57, 91)), mask // 255
        )


def test_polygons_are_filled_as_pycocotools_fills_them_but_for_border_pixels() -> None:
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(60):
        size = (int(rng.integers(60, 200)), int(rng.integers(60, 200)))
        polygon = star(rng, size)
        theirs = coco_masks.decode(coco_masks.merge(coco_masks.frPyObjects([polygon], *size))) > 0
        ours = draw_polygons([polygon], size) > 0
        border = cv2.morphologyEx(theirs.astype(np.uint8), cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)) > 0
        assert not (ours ^ theirs)[~border].any()
        shares.append((ours & theirs).sum() / (ours | theirs).sum())
    assert np.mean(shares) > 0.99


@pytest.mark.parametrize("counts", ["!!", [3, -1], [1, 2], "0" * 5 + "P"])
def test_broken_run_lengths_are_one_unusable_picture(counts: object) -> None:
    with pytest.raises(Unusable):
        decode_run_lengths({"size": [4, 4], "counts": counts}, (4, 4))


@pytest.mark.parametrize("form", [name for name in WRITERS if name != "folder"])
def test_photos_and_masks_come_back_from_every_format(tmp_path: Path, form: str) -> None:
    source = folder_of_photos(tmp_path / "in")
    written, skipped = convert(source, tmp_path / form, form)
    assert (written, skipped) == (3, [])
    back, there = everything(open_source(f"{form}:{tmp_path / form}", None)), everything(source)
    assert back.keys() == there.keys()
    for key, (image, mask) in there.items():
        assert back[key][0] == image
        assert back[key][1] == mask


def test_a_source_of_any_format_is_found_again_by_its_address(tmp_path: Path) -> None:
    convert(folder_of_photos(tmp_path / "in"), tmp_path / "out", "coco")
    source = open_source(f"coco:{tmp_path / 'out'}", None)
    again = open_source(str(source.images), None)
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
    source = open_source(f"parquet:{tmp_path / 'saved'}", None)
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
    images = [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "b.png"}, {"id": 3, "file_name": "../x.png"}]
    categories = [{"id": 7, "name": "cat"}, {"id": 9, "name": "cup"}]
    file.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    source = open_source(f"coco:{file}", None)
    (sample,), skipped = source.samples()
    assert sample.label == "cat"
    assert [row.sample_id for row in skipped] == ["b.png", "../x.png"]
    _, mask = source.read(sample)
    assert mask is not None
    assert mask[60, 60] == 255
    assert mask[40, 230] == 255  # the second cat belongs to the object
    assert mask[50, 350] == 0  # the cup does not


def test_an_object_in_run_lengths_counts_though_tools_mark_it_as_a_crowd(tmp_path: Path) -> None:
    """supervision marks objects with holes so, Datumaro and with it CVAT all that were painted."""
    (tmp_path / "images" / "default").mkdir(parents=True)
    (tmp_path / "annotations").mkdir()
    (tmp_path / "images" / "default" / "a.png").write_bytes(png(PHOTOS["tabby"]))
    square = [[10, 10, 110, 10, 110, 110, 10, 110]]
    annotations = [
        {"id": 1, "image_id": 1, "category_id": 90, "segmentation": encode_run_lengths(oval()), "iscrowd": 1},
        {"id": 2, "image_id": 1, "category_id": 7, "segmentation": square, "area": 10000.0, "iscrowd": 0},
    ]
    said = {
        "images": [{"id": 1, "file_name": "a.png"}],
        "annotations": annotations,
        "categories": [{"id": 7, "name": "cup"}, {"id": 90, "name": "tooth brush"}],
    }
    (tmp_path / "annotations" / "instances_default.json").write_text(json.dumps(said))
    source = open_source(f"coco:{tmp_path}", None)
    (sample,), _ = source.samples()
    assert sample.label == "tooth brush"
    np.testing.assert_array_equal(source.read(sample)[1], oval())


def test_a_folder_with_several_coco_files_asks_for_one(tmp_path: Path) -> None:
    (tmp_path / "annotations").mkdir()
    for split in ("train", "val"):
        (tmp_path / "annotations" / f"instances_{split}.json").write_text("{}")
    with pytest.raises(UserError, match=r"got annotations/instances_train\.json, annotations/instances_val\.json"):
        open_source(f"coco:{tmp_path}", None)


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
    source = open_source(f"labelme:{tmp_path}", None)
    (sample,), skipped = source.samples()
    assert {row.sample_id for row in skipped} == {"broken.json", "odd.json"}
    _, mask = source.read(sample)
    assert mask is not None
    area = 50 * 30 + np.pi * 50**2 + 20 * 30
    assert abs((mask > 0).sum() - area) < 0.02 * area
    assert mask[280, 415] == 255


def test_a_labelme_photo_is_found_where_its_file_says_but_not_outside_of_the_folder(tmp_path: Path) -> None:
    for name in ("set/json", "set/photos", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("set/photos/a.png", "elsewhere/b.png"):
        (tmp_path / name).write_bytes(png(PHOTOS["tabby"]))
    corners = [[10, 10], [60, 20], [50, 70], [0, 60]]
    shapes = [{"label": "tabby", "shape_type": "oriented_rectangle", "points": corners}]
    for name, path in (("a", "..\\photos\\a.png"), ("b", "../../elsewhere/b.png")):
        (tmp_path / "set" / "json" / f"{name}.json").write_text(json.dumps({"imagePath": path, "shapes": shapes}))
    source = open_source(f"labelme:{tmp_path / 'set'}", None)
    (sample,), skipped = source.samples()
    assert (sample.id, [row.sample_id for row in skipped]) == ("tabby/a", ["json/b.json"])
    mask = source.read(sample)[1]
    assert mask is not None
    assert abs((mask > 0).sum() - 2600) < 60


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
    source = open_source(f"voc:{tmp_path}", None)
    (sample,), _ = source.samples()
    assert sample.label == "cat"
    _, mask = source.read(sample)
    assert mask is not None
    assert [mask[150, 200], mask[102, 200], mask[15, 15], mask[255, 410]] == [255, 128, 0, 0]


def test_voc_masks_in_colours_are_read_by_their_label_map(tmp_path: Path) -> None:
    """As Datumaro and CVAT write them: colours of one's own, or none, which means VOC's."""
    colours = np.zeros((300, 451, 3), np.uint8)
    colours[100:200, 100:300] = (10, 20, 30)
    colours[10:20, 10:20] = (0, 128, 0)  # VOC's second
    colours[200:203, 100:300] = (224, 224, 192)  # VOC's void
    for name in ("JPEGImages", "SegmentationClass"):
        (tmp_path / name).mkdir()
    (tmp_path / "labelmap.txt").write_text("# label:color_rgb:parts:actions\nbackground:::\ncat:10,20,30::\ncup:::\n")
    for name in ("a", "b"):
        Image.fromarray(np.roll(PHOTOS["tabby"], ord(name), axis=1)).save(tmp_path / "JPEGImages" / f"{name}.jpg")
        Image.fromarray(colours).save(tmp_path / "SegmentationClass" / f"{name}.png")
        colours[0, 0] = (1, 2, 3)
    source = open_source(f"voc:{tmp_path}", None)
    (sample,), (strange,) = source.samples()
    assert sample.label == "cat"
    mask = source.read(sample)[1]
    assert mask is not None
    assert [mask[150, 200], mask[15, 15], mask[201, 200], (mask == 255).sum()] == [255, 0, 128, 100 * 200]
    assert "the colour 1,2,3" in strange.reason


def test_the_background_of_voc_may_stand_anywhere_in_the_label_map(tmp_path: Path) -> None:
    indices = np.ones((300, 451), np.uint8)
    indices[100:200, 100:300] = 0
    for name in ("JPEGImages", "SegmentationClass"):
        (tmp_path / name).mkdir()
    (tmp_path / "labelmap.txt").write_text("cat:128,0,0::\nbackground:0,0,0::\n")
    Image.fromarray(PHOTOS["tabby"]).save(tmp_path / "JPEGImages" / "a.jpg")
    Image.fromarray(indices).save(tmp_path / "SegmentationClass" / "a.png")
    source = open_source(f"voc:{tmp_path}", None)
    (sample,), _ = source.samples()
    mask = source.read(sample)[1]
    assert mask is not None
    assert (sample.label, (mask == 255).sum()) == ("cat", 100 * 200)


def test_voc_has_no_room_for_more_classes_than_a_byte(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="at most 255 classes, background included, as VOC's masks have, got 256"):
        WRITERS["voc"]((), [f"class {number}" for number in range(255)], tmp_path)


def test_all_parquet_files_of_a_set_number_their_classes_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`datasets` takes the names of the first file for all, so that tabbies became espressos."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr("counterfoil.sources.conversion._SAMPLES_PER_SHARD", 1)
    convert(folder_of_photos(tmp_path / "in"), tmp_path / "out", "parquet")
    files = sorted(str(path) for path in (tmp_path / "out").glob("*.parquet"))
    assert len(files) == 3
    rows = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(tmp_path / "cache"))
    names = rows.features["label"].names
    assert [names[row["label"]] for row in rows] == ["espresso", "tabby", "tabby"]


def test_pictures_that_datasets_only_names_are_read_from_below_the_folder(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    paths = [tmp_path / "in" / "a.png", tmp_path / "outside.png"]
    paths[0].parent.mkdir()
    for path, photo in zip(paths, PHOTOS.values(), strict=True):
        path.write_bytes(png(photo))
    features = datasets.Features({
        "image": datasets.Image(), "labels": datasets.ClassLabel(names=["espresso", "tabby"]),
        "annotation": datasets.Sequence(datasets.Value("int32")),
    })  # fmt: skip
    rows = {"image": [str(path) for path in paths], "labels": [1, 0], "annotation": [[1], [2]]}
    datasets.Dataset.from_dict(rows, features=features).to_parquet(str(tmp_path / "in" / "set.parquet"))
    source = open_source(f"parquet:{tmp_path / 'in'}", None)
    (sample,), (left_out,) = source.samples()
    np.testing.assert_array_equal(source.read(sample)[0], PHOTOS["tabby"])
    assert "not below the folder given" in left_out.reason


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd"])
@pytest.mark.parametrize(
    ("text", "pictures"),
    [
        (pa.string(), pa.binary()), (pa.large_string(), pa.large_binary()),
        (pa.dictionary(pa.int8(), pa.string()), pa.binary()),
    ],
)  # fmt: skip
def test_parquet_of_other_programs_is_a_source(
    tmp_path: Path, codec: str, text: pa.DataType, pictures: pa.DataType
) -> None:
    labels = [*PHOTOS, None]
    columns = {
        "image": pa.array([*map(png, PHOTOS.values()), b""], pictures),
        "label": pa.array(labels).cast(text),
        "tags": pa.array([["a"], None, []]),
    }
    pq.write_table(pa.table(columns), tmp_path / "set.parquet", compression=codec, row_group_size=1)
    source = open_source(f"parquet:{tmp_path / 'set.parquet'}", None)
    samples, left_out = source.samples()
    assert {sample.label for sample in samples} == set(PHOTOS)
    for sample in samples:
        np.testing.assert_array_equal(source.read(sample)[0], PHOTOS[sample.label])
    assert [one.sample_id for one in left_out] == ["set-000002"]


@pytest.mark.parametrize("keep", [0, 3, 200, -4])
def test_damaged_parquet_is_said_in_one_line(tmp_path: Path, keep: int) -> None:
    pq.write_table(pa.table({"image": [png(PHOTOS["tabby"])], "label": ["tabby"]}), tmp_path / "set.parquet")
    (tmp_path / "set.parquet").write_bytes((tmp_path / "set.parquet").read_bytes()[:keep])
    with pytest.raises(UserError, match=r"expected a whole Parquet file, got .*set\.parquet") as error:
        open_source(f"parquet:{tmp_path / 'set.parquet'}", None).samples()
    assert "\n" not in str(error.value)


def test_numbers_as_labels_need_their_names(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "shard.tar", "w") as archive:
        for name, content in (("a.png", png(PHOTOS["tabby"])), ("a.cls", b"1"), ("b.png", png(PHOTOS["espresso"]))):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    with pytest.raises(UserError, match=r"number 1, and classes\.txt"):
        open_source(f"webdataset:{tmp_path}", None).samples()
    (tmp_path / "classes.txt").write_text("espresso\ntabby\n")
    samples, skipped = open_source(f"webdataset:{tmp_path}", None).samples()
    assert [sample.label for sample in samples] == ["tabby"]
    assert "no label" in skipped[0].reason


def test_a_number_without_a_name_gives_way_to_a_name_beside_it(tmp_path: Path) -> None:
    """As in the shards of frozen benchmarks; and a name in JSON may be made of digits."""
    parts = {"png": png(PHOTOS["tabby"]), "cls": b"1", "json": b'{"label": "007"}'}
    write_shard(tmp_path / "shard.tar", [("long" * 40, parts)])
    (sample,), _ = open_source(f"webdataset:{tmp_path}", None).samples()
    assert (sample.label, sample.id) == ("007", f"007/{'long' * 40}")


def test_a_truncated_shard_is_said(tmp_path: Path) -> None:
    convert(folder_of_photos(tmp_path / "in"), tmp_path / "out", "webdataset")
    (shard,) = (tmp_path / "out").glob("*.tar")
    shard.write_bytes(shard.read_bytes()[:2000])
    with pytest.raises(UserError):
        open_source(f"webdataset:{tmp_path / 'out'}", None).samples()


def test_a_broken_header_is_not_the_end_of_a_shard(tmp_path: Path) -> None:
    convert(folder_of_photos(tmp_path / "in"), tmp_path / "out", "webdataset")
    (shard,) = (tmp_path / "out").glob("*.tar")
    with tarfile.open(shard) as archive:
        place = archive.getmembers()[4].offset
    data = bytearray(shard.read_bytes())
    data[place + 5] ^= 1
    shard.write_bytes(data)
    with pytest.raises(UserError, match=f"no header at byte {place:,}"):
        open_source(f"webdataset:{tmp_path / 'out'}", None).samples()


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
    source = open_source(f"fiftyone:{tmp_path}", None)
    (found,), skipped = source.samples()
    assert found.label == "tabby"
    np.testing.assert_array_equal(source.read(found)[1], oval())
    assert len(skipped) == 1


def test_a_mask_inside_a_fiftyone_sample_is_read(tmp_path: Path) -> None:
    """NumPy's file format, packed, as FiftyOne writes masks that lie in its database."""
    (tmp_path / "data" / "cats").mkdir(parents=True)
    (tmp_path / "data" / "cats" / "0.png").write_bytes(png(PHOTOS["tabby"]))
    array = io.BytesIO()
    np.save(array, oval())
    packed = base64.b64encode(zlib.compress(array.getvalue())).decode()
    mask = {"_cls": "Segmentation", "mask": {"$binary": {"base64": packed, "subType": "00"}}}
    broken = {"_cls": "Segmentation", "mask": {"$binary": {"base64": "AAAA", "subType": "00"}}}
    label = {"_cls": "Classification", "label": "tabby"}
    rows = [{"filepath": "data/cats/0.png", "ground_truth": label, "object": one} for one in (mask, broken)]
    (tmp_path / "samples.json").write_text(json.dumps({"samples": rows}))
    source = open_source(f"fiftyone:{tmp_path}", None)
    (sample,), (left_out,) = source.samples()
    np.testing.assert_array_equal(source.read(sample)[1], oval())
    assert "cannot be unpacked" in left_out.reason


def test_fiftyone_photos_in_folders_are_found_and_boxes_are_no_labels(tmp_path: Path) -> None:
    for number, name in enumerate(("a/0.png", "b/0.png", "c.png")):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(np.roll(PHOTOS["tabby"], number, axis=1)))
    boxes = [{"label": "cup", "bounding_box": [0.1, 0.1, 0.2, 0.2]}]
    labels = {"a/0": 0, "b/0": {"label": "espresso", "confidence": 0.5}, "c": boxes}
    (tmp_path / "labels.json").write_text(json.dumps({"classes": ["tabby"], "labels": labels}))
    source = open_source(f"fiftyone:{tmp_path}", None)
    samples, skipped = source.samples()
    assert [sample.id for sample in samples] == ["espresso/0.png", "tabby/0.png"]
    np.testing.assert_array_equal(source.read(samples[1])[0], PHOTOS["tabby"])
    assert [row.sample_id for row in skipped] == ["c"]


def test_a_photo_that_lies_in_two_splits_counts_once(tmp_path: Path) -> None:
    parts = {"png": png(PHOTOS["tabby"]), "txt": b"tabby"}
    for split in ("train", "test"):
        write_shard(tmp_path / f"{split}.tar", [(split, parts)])
    samples, skipped = open_source(f"webdataset:{tmp_path}", None).samples()
    assert [sample.id for sample in samples] == ["tabby/test"]
    assert [row.reason for row in skipped] == ["the same photo as tabby/test"]


@pytest.mark.parametrize("form", ["coco", "labelme", "voc", "webdataset", "parquet", "fiftyone"])
def test_a_path_that_is_not_there_is_one_line(tmp_path: Path, form: str) -> None:
    with pytest.raises(UserError, match="expected"):
        open_source(f"{form}:{tmp_path / 'nowhere'}", None).samples()


def test_converting_never_writes_over_files(tmp_path: Path) -> None:
    source = folder_of_photos(tmp_path / "in")
    with pytest.raises(UserError, match="holds files"):
        convert(source, tmp_path / "in", "coco")


def test_names_do_not_grow_however_often_photos_are_converted(tmp_path: Path) -> None:
    source = folder_of_photos(tmp_path / "in")
    before = {PurePosixPath(sample.id).with_suffix("") for sample in source.samples()[0]}
    convert(source, tmp_path / "folder", "folder")
    again = open_source(tmp_path / "folder" / "images", tmp_path / "folder" / "masks")
    assert {PurePosixPath(sample.id).with_suffix("") for sample in again.samples()[0]} == before
    names = []
    for number, form in enumerate(("coco", "voc", "coco")):
        convert(source, tmp_path / str(number), form)
        source = open_source(f"{form}:{tmp_path / str(number)}", None)
        names.append({PurePosixPath(sample.id).stem for sample in source.samples()[0]})
    assert names[0] == names[1] == names[2]


def test_photos_of_labels_that_share_a_folder_stay_apart(tmp_path: Path) -> None:
    used: set[str] = set()
    samples = [
        Sample(id=f"{label}/x.png", label=label, image="", mask=None, digest="") for label in ("a/b", "a_b", "c")
    ]
    assert [choose_file_name(sample, used, "folder") for sample in samples] == ["x", "x-2", "x"]


def test_converting_lists_the_photos_once(tmp_path: Path) -> None:
    counted = Counted(folder_of_photos(tmp_path / "in"))
    convert(counted, tmp_path / "out", "coco")
    assert counted.listings == 1


@dataclass
class Counted(SourceBase):
    """A source that counts how often its photos are listed, which reads every file."""

    source: Source
    listings: int = 0
    images: str = "counted:"

    def samples(self) -> tuple[Sequence[Sample], Sequence[Skipped]]:
        self.listings += 1
        return self.source.samples()

    def read(self, sample: Sample) -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None]:
        return self.source.read(sample)
