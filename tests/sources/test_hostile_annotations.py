"""Strangers' annotation files: what they say wrongly is said in one line, and never leads out of the folder."""

from __future__ import annotations

import base64
import io
import json
import resource
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from counterfoil.builder import build_pictures
from counterfoil.errors import Unusable, UserError
from counterfoil.run_config import RunConfig
from counterfoil.sources.conversion import convert
from counterfoil.sources.source_loaders import FORMATS, open_source
from counterfoil.store.workspace import Workspace
from freeze_workspaces import RECIPE

TRIANGLE = [[1, 1, 30, 1, 30, 30]]


def photo(value: int = 90) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.full((40, 50, 3), value, np.uint8)).save(file, "PNG")
    return file.getvalue()


def coco(folder: Path, label: str = "cat", **region: Any) -> Path:
    """One photo with one region."""
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "a.png").write_bytes(photo())
    said = {"image_id": 1, "category_id": 1, "area": 9, "segmentation": TRIANGLE, **region}
    content = {
        "images": [{"id": 1, "file_name": "a.png"}], "annotations": [said], "categories": [{"id": 1, "name": label}],
    }  # fmt: skip
    (folder / "labels.json").write_text(json.dumps(content))
    return folder


def labelme(folder: Path, **shape: Any) -> Path:
    folder.mkdir(parents=True)
    (folder / "a.png").write_bytes(photo())
    said = {"label": "cat", "shape_type": "polygon", "points": [[1, 1], [30, 1], [30, 30]], **shape}
    (folder / "a.json").write_text(json.dumps({"imagePath": "a.png", "shapes": [said]}))
    return folder


def shard(path: Path, **files: bytes) -> None:
    with tarfile.open(path, "w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name.replace("_", "."))
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("label", ["../../../outside", "{}/outside", "..", "a/../../../b", "a\0b\n", "x" * 400])
def test_a_label_leads_nowhere_but_into_one_folder(tmp_path: Path, label: str) -> None:
    label = label.format(tmp_path)
    source = open_source(f"coco:{coco(tmp_path / 'set', label)}", None)
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    before = files_in(tmp_path)
    assert convert(source, tmp_path / "converted" / "out", "folder") == (1, [])
    build_pictures(
        RunConfig(source=source, models=(), recipe=str(tmp_path / "recipe.yaml")), tmp_path / "built" / "out"
    )
    written = files_in(tmp_path) - before
    assert all(name.startswith(("converted/out/", "built/out/")) for name in written)
    assert {len(Path(name).parts) for name in written if name.startswith("converted")} == {5}
    workspace = Workspace(tmp_path / "built" / "out")
    assert {one.variant.label for one in workspace.pictures} == {label}
    assert all(workspace.read(one).shape == (40, 50, 3) for one in workspace.pictures)


def test_photos_of_one_name_in_several_shards_keep_their_own_pixels(tmp_path: Path) -> None:
    for number, value in enumerate((10, 200)):
        shard(tmp_path / f"{number}.tar", a_png=photo(value), a_cls=b"cat")
    source = FORMATS["webdataset"](tmp_path)
    samples = source.samples()[0]
    assert len({sample.id for sample in samples}) == 2
    assert [int(source.read(sample)[0].max()) for sample in samples] == [10, 200]


def test_photos_of_one_name_in_several_folders_keep_their_own_pixels(tmp_path: Path) -> None:
    for name, value in (("x", 10), ("y", 200)):
        labelme(tmp_path / "set" / name)
        (tmp_path / "set" / name / "a.png").write_bytes(photo(value))
    source = FORMATS["labelme"](tmp_path / "set")
    assert [int(source.read(sample)[0].max()) for sample in source.samples()[0]] == [10, 200]


@pytest.mark.parametrize("region", [{"category_id": [1]}, {"area": "large"}, {"image_id": {}}])
def test_coco_entries_of_another_kind_are_said_in_one_line(tmp_path: Path, region: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="an entry cannot be understood") as error:
        FORMATS["coco"](coco(tmp_path / "set", **region))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "segmentation",
    [[1, 1, 20, 1, 20, 20], [["a"] * 6], [[10**400, 1, 2, 3, 4, 5]], {"counts": [2000], "size": 5}, "text", 7],
)
def test_regions_that_cannot_be_drawn_leave_the_photo_out(tmp_path: Path, segmentation: Any) -> None:
    source = FORMATS["coco"](coco(tmp_path / "set", segmentation=segmentation))
    (sample,) = source.samples()[0]
    with pytest.raises(Unusable):
        source.read(sample)


@pytest.mark.parametrize("area", [None, 0])
def test_where_a_file_says_no_area_the_larger_region_still_names_the_photo(tmp_path: Path, area: int | None) -> None:
    """A triangle of 18 pixels, run lengths of 100, a triangle of 420."""
    folder = coco(tmp_path / "set", "ant", area=area, segmentation=[[1, 1, 7, 1, 7, 7]])
    said = json.loads((folder / "labels.json").read_text())
    for number, region in enumerate(({"counts": [0, 100, 1900], "size": [40, 50]}, TRIANGLE), 2):
        said["annotations"].append({**said["annotations"][0], "category_id": number, "segmentation": region})
    said["categories"] += [{"id": 2, "name": "bee"}, {"id": 3, "name": "cow"}]
    (folder / "labels.json").write_text(json.dumps(said))
    assert [sample.label for sample in FORMATS["coco"](folder).samples()[0]] == ["cow"]
    del said["annotations"][2]
    (folder / "labels.json").write_text(json.dumps(said))
    assert [sample.label for sample in FORMATS["coco"](folder).samples()[0]] == ["bee"]


@pytest.mark.parametrize("points", [[["a", "b"]], [], [[float("nan"), 1]], [5]])
def test_stamps_without_a_place_leave_the_photo_out(tmp_path: Path, points: Any) -> None:
    stamp = base64.b64encode(photo()).decode()
    source = FORMATS["labelme"](labelme(tmp_path / "set", shape_type="mask", mask=stamp, points=points))
    (sample,) = source.samples()[0]
    with pytest.raises(Unusable, match="cannot be understood"):
        source.read(sample)


def test_a_stamp_that_begins_outside_the_photo_is_cut(tmp_path: Path) -> None:
    stamp = base64.b64encode(photo()).decode()  # 50 x 40
    source = FORMATS["labelme"](labelme(tmp_path / "set", shape_type="mask", mask=stamp, points=[[-20, -30]]))
    _, mask = source.read(source.samples()[0][0])
    expected = np.zeros((40, 50), np.uint8)
    expected[:10, :30] = 255
    np.testing.assert_array_equal(mask, expected)


@pytest.mark.parametrize("form", ["coco", "labelme"])
def test_regions_of_a_photo_that_was_turned_since_are_not_drawn_elsewhere(tmp_path: Path, form: str) -> None:
    """As where a tool drew on the pixels as stored, and the photo is turned by its EXIF when it is read."""
    folder = (coco if form == "coco" else labelme)(tmp_path / form)
    file = folder / ("labels.json" if form == "coco" else "a.json")
    said = json.loads(file.read_text())
    for height, width in ((40, 50), (50, 40)):
        if form == "coco":
            said["images"][0] |= {"height": height, "width": width}
        else:
            said |= {"imageHeight": height, "imageWidth": width}
        file.write_text(json.dumps(said))
        source = open_source(f"{form}:{folder}", None)
        (sample,), _ = source.samples()
        if (height, width) == (40, 50):
            source.read(sample)
        else:
            with pytest.raises(Unusable, match="drawn on 40 x 50 pixels, the photo has 50 x 40"):
                source.read(sample)


def test_a_point_far_outside_stays_on_its_side(tmp_path: Path) -> None:
    source = open_source(f"coco:{coco(tmp_path / 'far', segmentation=[[25, 0, 1e30, 0, 1e30, 40, 25, 40]])}", None)
    (sample,), _ = source.samples()
    mask = source.read(sample)[1]
    assert mask is not None
    assert (mask[:, 26:] == 255).all()
    assert not mask[:, :24].any()


def test_names_that_no_file_can_have_are_photos_that_are_not_there(tmp_path: Path) -> None:
    folder = coco(tmp_path / "set")
    said = json.loads((folder / "labels.json").read_text())
    for number, name in enumerate(("a" * 5000, "a\0.png", "\ud800.png", "../../etc/passwd"), 2):
        said["images"].append({"id": number, "file_name": name})
        said["annotations"].append({**said["annotations"][0], "image_id": number})
    (folder / "labels.json").write_text(json.dumps(said))
    samples, skipped = FORMATS["coco"](folder).samples()
    assert [sample.id for sample in samples] == ["cat/a.png"]
    assert [row.reason.split(",")[0] for row in skipped] == ["the photo is not beside the annotations"] * 4
    "".join(row.sample_id + row.reason for row in skipped).encode()  # skipped.csv is UTF-8


@pytest.mark.parametrize("label", ["", "9" * 5000])
def test_labels_that_name_nothing_leave_the_photo_out(tmp_path: Path, label: str) -> None:
    shard(tmp_path / "0.tar", a_png=photo(), a_cls=label.encode(), b_png=photo(), b_cls=b"cat")
    samples, skipped = FORMATS["webdataset"](tmp_path).samples()
    assert ([sample.label for sample in samples], len(skipped)) == (["cat"], 1)


def test_json_without_an_end_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text("[" * 100_000)
    with pytest.raises(UserError, match="no JSON"):
        FORMATS["coco"](tmp_path)


def test_a_disk_that_fills_while_converting_ends_in_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    folder = coco(tmp_path / "set")
    noise = np.random.default_rng(0).integers(0, 255, (200, 200, 3), dtype=np.uint8)
    Image.fromarray(noise).save(folder / "data" / "a.png")
    command = ["convert", "--images", f"coco:{folder}", "--to", "folder", "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-m", "counterfoil", *command], capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)),
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "nothing of it was kept" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_a_folder_named_by_a_link_and_one_that_is_a_file(tmp_path: Path) -> None:
    source = FORMATS["coco"](coco(tmp_path / "set"))
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    assert convert(source, tmp_path / "link", "coco") == (1, [])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "empty" / "labels.json").is_file()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match="expected an empty folder"):
        convert(source, tmp_path / "file", "coco")
    assert (tmp_path / "file").read_text() == "mine"
