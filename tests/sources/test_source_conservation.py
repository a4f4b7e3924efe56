"""Everything that a source lists is a sample or a row with a reason: dangling links, FIFOs, circles, locked folders."""

from __future__ import annotations

import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skimage import data

from counterfoil.errors import Unusable, UserError
from counterfoil.sources.bounded_reads import MOST_BYTES, map_files, read_user_file
from counterfoil.sources.source_loaders import open_source

CAT = data.chelsea()  # (300, 451, 3)


def jpeg(number: int = 0) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.roll(CAT[::4, ::4], number, axis=1)).save(file, "JPEG")
    return file.getvalue()


def photo(path: Path, number: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(jpeg(number))
    return path


def reasons_of(images: str | Path) -> tuple[list[str], dict[str, str]]:
    samples, skipped = open_source(images, None).samples()
    assert len({row.sample_id for row in skipped}) == len(skipped)
    return [sample.id for sample in samples], {row.sample_id: row.reason for row in skipped}


def make_faults(folder: Path, ending: str) -> None:
    """A dangling link as git-annex leaves it, two links in a circle, and a FIFO."""
    (folder / f"annexed{ending}").symlink_to("../.git/annex/objects/x")
    (folder / f"one{ending}").symlink_to(folder / f"two{ending}")
    (folder / f"two{ending}").symlink_to(folder / f"one{ending}")
    os.mkfifo(folder / f"pipe{ending}")


FAULTS = {
    "annexed": "the link leads to nothing: ../.git/annex/objects/x is not there",
    "one": "the link leads in a circle",
    "two": "the link leads in a circle",
    "pipe": "it is a FIFO, not a file",
}


def test_links_and_fifos_in_a_photo_folder_are_rows_and_good_links_are_photos(tmp_path: Path) -> None:
    photo(tmp_path / "images" / "tabby" / "good.jpg")
    photo(tmp_path / "store" / "linked.jpg", 7)
    (tmp_path / "images" / "tabby" / "linked.jpg").symlink_to(tmp_path / "store" / "linked.jpg")
    make_faults(tmp_path / "images" / "tabby", ".jpg")
    photo(tmp_path / "images" / "tabby" / "deeper" / "below.jpg", 9)
    (tmp_path / "images" / "gone").symlink_to("nowhere")
    os.mkfifo(tmp_path / "images" / "pipe")
    samples, reasons = reasons_of(tmp_path / "images")
    assert samples == ["tabby/good.jpg", "tabby/linked.jpg"]
    assert reasons == {
        "gone": "the link leads to nothing: nowhere is not there",
        "pipe": "it is a FIFO, not a file",
        "tabby/deeper": "it is a folder inside a class folder, which is not read",
        **{f"tabby/{name}.jpg": reason for name, reason in FAULTS.items()},
    }


def test_a_folder_of_dangling_links_alone_says_so(tmp_path: Path) -> None:
    (tmp_path / "tabby").mkdir()
    (tmp_path / "tabby" / "a.jpg").symlink_to("missing")
    with pytest.raises(UserError, match=r"found none; tabby/a\.jpg was left out because the link leads to nothing"):
        open_source(tmp_path, None).samples()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that an ordinary user may enter; as root the test goes on as one, since root may read everything."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        before = os.geteuid()
        yield Path(name)
        os.seteuid(before)


def test_a_class_folder_without_permission_is_a_row(open_folder: Path) -> None:
    photo(open_folder / "tabby" / "a.jpg")
    photo(open_folder / "locked" / "b.jpg", 3)
    (open_folder / "locked").chmod(0)
    if os.geteuid() == 0:
        os.seteuid(65534)
    samples, reasons = reasons_of(open_folder)
    assert samples == ["tabby/a.jpg"]
    assert reasons == {"locked": "the folder cannot be read: Permission denied"}


def test_imagenet_s_counts_links_and_fifos(tmp_path: Path) -> None:
    wnid = "n01440764"
    photo(tmp_path / "validation" / wnid / "a.JPEG")
    masks = tmp_path / "validation-segmentation" / wnid
    masks.mkdir(parents=True)
    for name in ("a", *FAULTS):
        Image.fromarray(np.zeros((75, 113, 3), np.uint8)).save(masks / f"{name}.png")
    make_faults(tmp_path / "validation" / wnid, ".JPEG")
    (tmp_path / "validation" / "n01443537").symlink_to("nowhere")
    samples, reasons = reasons_of(f"imagenet-s:{tmp_path}")
    assert samples == [f"{wnid}/a.JPEG"]
    assert reasons == {
        "n01443537": "the link leads to nothing: nowhere is not there",
        **{f"{wnid}/{name}.JPEG": reason for name, reason in FAULTS.items()},
    }


def test_labelme_counts_links_fifos_and_circles_of_folders(tmp_path: Path) -> None:
    photo(tmp_path / "a.jpg")
    shape = {"label": "tabby", "shape_type": "rectangle", "points": [[10, 10], [60, 60]]}
    (tmp_path / "a.json").write_text(json.dumps({"imagePath": "a.jpg", "shapes": [shape]}))
    make_faults(tmp_path, ".json")
    (tmp_path / "again").symlink_to(tmp_path)
    samples, reasons = reasons_of(f"labelme:{tmp_path}")
    assert samples == ["tabby/a"]
    assert reasons == {
        "again": "the link leads to a folder that holds it",
        **{f"{name}.json": reason for name, reason in FAULTS.items()},
    }


def test_voc_counts_links_and_fifos(tmp_path: Path) -> None:
    photo(tmp_path / "JPEGImages" / "a.jpg")
    masks = tmp_path / "SegmentationClass"
    masks.mkdir()
    Image.fromarray(np.full((75, 113), 8, np.uint8)).save(masks / "a.png")
    make_faults(masks, ".png")
    samples, reasons = reasons_of(f"voc:{tmp_path}")
    assert samples == ["cat/a.jpg"]
    assert reasons == {f"{name}.png": reason for name, reason in FAULTS.items()}


def test_coco_counts_photos_that_are_links_to_nothing_and_regions_of_unlisted_photos(tmp_path: Path) -> None:
    photo(tmp_path / "images" / "a.jpg")
    make_faults(tmp_path / "images", ".jpg")
    names = ["a.jpg", *(f"{name}.jpg" for name in FAULTS)]
    region = [[10, 10, 60, 10, 60, 60]]
    content = {
        "images": [{"id": number, "file_name": name} for number, name in enumerate(names)],
        "categories": [{"id": 1, "name": "tabby"}],
        "annotations": [{"image_id": number, "category_id": 1, "segmentation": region} for number in (*range(5), 99)],
    }
    (tmp_path / "annotations.json").write_text(json.dumps(content))
    samples, reasons = reasons_of(f"coco:{tmp_path}")
    assert samples == ["tabby/a.jpg"]
    assert reasons.keys() == {*names[1:], "image id 99"}


def add_member(archive: tarfile.TarFile, name: str, content: bytes, kind: bytes = tarfile.REGTYPE) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, len(content)
    member.linkname = "elsewhere" if kind == tarfile.SYMTYPE else ""
    archive.addfile(member, io.BytesIO(content))


def test_a_webdataset_counts_links_and_names_that_stand_twice(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "0.tar", "w") as archive:
        for number, name in enumerate(["a", "b", "a"]):
            add_member(archive, f"{name}.jpg", jpeg(number))
            add_member(archive, f"{name}.cls.txt", b"tabby")
        add_member(archive, "linked.jpg", b"", tarfile.SYMTYPE)
        add_member(archive, "linked.cls.txt", b"tabby")
    samples, reasons = reasons_of(f"webdataset:{tmp_path}")
    assert samples == ["tabby/a", "tabby/b"]
    assert reasons == {
        "a.jpg": "the shard 0.tar has two files of this name",
        "a.cls.txt": "the shard 0.tar has two files of this name",
        "tabby/linked": "the shard holds a link or a file with holes in its place",
    }


def test_a_webdataset_member_of_five_gigabytes_is_a_row_and_is_not_read(tmp_path: Path) -> None:
    shard = tmp_path / "0.tar"
    with tarfile.open(shard, "w") as archive:
        add_member(archive, "a.jpg", jpeg())
        add_member(archive, "a.cls.txt", b"tabby")
        add_member(archive, "bomb.cls.txt", b"tabby")
        member = tarfile.TarInfo("bomb.jpg")
        member.size = 5 << 30
        archive.fileobj.write(member.tobuf())
        start = archive.fileobj.tell()
    with shard.open("r+b") as file:
        file.truncate(start)
        file.truncate(start + member.size + 2 * tarfile.BLOCKSIZE)  # holes: the file takes no room on the disk
    samples, reasons = reasons_of(f"webdataset:{tmp_path}")
    assert samples == ["tabby/a"]
    assert reasons == {"tabby/bomb": f"{5 << 30:,} bytes are more than {MOST_BYTES:,} allowed"}


def test_a_shard_that_ends_between_two_members_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "0.tar", "w") as archive:
        for name in ("a", "b"):
            add_member(archive, f"{name}.jpg", jpeg())
            add_member(archive, f"{name}.cls.txt", b"tabby")
    with tarfile.open(tmp_path / "0.tar") as archive:
        end_of_first = archive.getmembers()[2].offset
    with (tmp_path / "0.tar").open("r+b") as file:
        file.truncate(end_of_first)
    with pytest.raises(UserError, match="truncated or damaged"):
        open_source(f"webdataset:{tmp_path}", None)


@pytest.mark.parametrize("name", ["b.tar", "b.tar.gz"])
def test_a_shard_that_cannot_be_opened_is_refused_since_its_photos_would_be_missing(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        add_member(archive, "a.jpg", jpeg())
    if name == "b.tar":
        (tmp_path / name).symlink_to("nowhere")
    else:
        (tmp_path / name).write_bytes(b"\x1f\x8b")
    with pytest.raises(UserError, match=f"expected plain tar shards in .*, got {name}: "):
        open_source(f"webdataset:{tmp_path}", None)


def test_a_dangling_parquet_file_is_refused_since_its_photos_would_be_missing(tmp_path: Path) -> None:
    (tmp_path / "train.parquet").symlink_to("nowhere")
    with pytest.raises(UserError, match=r"train\.parquet cannot be used: the link leads to nothing"):
        open_source(f"parquet:{tmp_path}", None)


def test_a_file_larger_than_any_picture_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large.jpg").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(Unusable, match="bytes are more than"):
        read_user_file(tmp_path / "large.jpg")


def test_a_device_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="it is a device, not a file"):
        read_user_file(Path("/dev/zero"))


def test_many_files_are_read_in_order_by_threads() -> None:
    places = list(range(3000))  # more than are handed to the threads at once
    assert list(map_files(lambda place: -place, places, threads=3)) == [-place for place in places]
