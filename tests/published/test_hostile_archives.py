"""Archives that were damaged or made to harm: said in one line or counted, and never read past what they hold."""

from __future__ import annotations

import io
import os
import shutil
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from archives import class_archives, edit_archives
from archives.class_colours import save
from archives.tar_files import as_tar
from counterfoil.errors import Unusable, UserError
from counterfoil.labels.benchmark_classes import imagenet_r
from counterfoil.published import file_tree
from counterfoil.published.archive import Archive
from counterfoil.published.catalogue import open_archive, recognise
from counterfoil.sources.bounded_reads import MOST_BYTES

NAMED = "n01440764/sketch_1.JPEG"


@pytest.fixture
def imagenet_e(tmp_path: Path) -> Path:
    return edit_archives.imagenet_e(tmp_path / "ImageNet-E")


def ids(archive: Archive) -> set[str]:
    return {stored.variant.id for stored in archive.pictures}


@pytest.mark.parametrize("line", [b"\xff\xfe\x80", b"ILSVRC2012_val_00000001.JPEG\t" + b"9" * 5000])
def test_a_label_file_of_other_bytes_or_numbers_is_said_in_one_line(imagenet_e: Path, line: bytes) -> None:
    (imagenet_e / "labels.txt").write_bytes(line)
    with pytest.raises(UserError, match=r"labels\.txt") as error:
        open_archive("imagenet-e", imagenet_e)
    assert "\n" not in str(error.value)
    (imagenet_e / "labels.txt").unlink()
    (imagenet_e / "labels.txt").symlink_to("nowhere")
    with pytest.raises(UserError, match=r"labels\.txt"):
        open_archive("imagenet-e", imagenet_e)


@pytest.mark.parametrize("line", [b"\xff", b"a" * 200_000])
def test_questions_that_are_no_table_are_said_in_one_line(tmp_path: Path, line: bytes) -> None:
    folder = class_archives.imagenet_d_archive(tmp_path / "d")
    with next(folder.rglob("texture.csv")).open("ab") as file:
        file.write(line)
    with pytest.raises(UserError, match=r"questions/texture\.csv.* cannot be read"):
        open_archive("imagenet-d", folder)


def test_an_object_with_two_files_of_one_kind_counts_once(imagenet_e: Path) -> None:
    whole = open_archive("imagenet-e", imagenet_e)
    save(imagenet_e / "ori" / "ILSVRC2012_val_00000001.png", 7)
    archive = open_archive("imagenet-e", imagenet_e)
    assert archive.digest == whole.digest
    assert [row.sample_id for row in archive.skipped if "same object" in row.reason] == [
        "ori/ILSVRC2012_val_00000001.png"
    ]


def test_a_second_copy_of_a_corruption_or_a_scenario_counts_once_and_is_said(tmp_path: Path) -> None:
    corrupted, scenarios = class_archives.imagenet_c(tmp_path / "c"), edit_archives.ximagenet_12(tmp_path / "x")
    shutil.copytree(corrupted / "weather" / "snow", corrupted / "snow")
    shutil.copytree(scenarios / "image", scenarios / "again" / "image")
    for name, folder, times in (("imagenet-c", corrupted, 50), ("ximagenet-12", scenarios, 24)):
        archive = open_archive(name, folder)
        assert len(ids(archive)) == len(archive.pictures)
        assert sum("same object" in row.reason for row in archive.skipped) == times


def test_a_picture_of_a_class_that_imagenet_has_not_is_counted(tmp_path: Path) -> None:
    folder = class_archives.imagenet_c(tmp_path / "c")
    save(folder / "weather" / "snow" / "1" / "n99999999" / "a.JPEG", 1)
    skipped = open_archive("imagenet-c", folder).skipped
    assert [row.sample_id for row in skipped if "n99999999" in row.sample_id] == ["weather/snow/1/n99999999/a.JPEG"]


def test_names_that_are_no_utf_8_are_strays(tmp_path: Path) -> None:
    folder = class_archives.imagenet_sketch(tmp_path / "set")
    picture = next(folder.rglob("sketch_0.JPEG"))
    (picture.parent / os.fsdecode(b"sketch_\xff.JPEG")).write_bytes(picture.read_bytes())
    archive = open_archive("imagenet-sketch", folder)
    assert len(archive.pictures) == 4
    assert [row.sample_id.encode()[-12:] for row in archive.skipped] == [b"_\\udcff.JPEG"]


def test_a_damaged_header_in_the_middle_is_no_end_of_the_tar(imagenet_e: Path, tmp_path: Path) -> None:
    path = as_tar(imagenet_e, tmp_path / "e.tar")
    with tarfile.open(path) as archive:
        place = archive.getmembers()[60].offset
    data = bytearray(path.read_bytes())
    data[place + 5] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match=f"truncated or damaged .no header at byte {place:,}"):
        open_archive("imagenet-e", path)


def test_a_zip_is_never_unpacked_past_what_a_picture_can_have(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(NAMED, "w") as file:
        for _ in range((MOST_BYTES >> 20) + 1):
            file.write(bytes(1 << 20))
    bomb = open_archive("imagenet-sketch", path)
    with pytest.raises(Unusable, match="more than 268,435,456 allowed"):
        bomb.read(bomb.pictures[0])


def test_a_compressed_tar_is_not_unpacked_far_past_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTERFOIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(file_tree, "_MOST_UNPACKED", 1 << 20)  # the shipped bound would make the test slow
    path = tmp_path / "bomb.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo(NAMED)
        member.size = 64 << 20
        archive.addfile(member, io.BytesIO(bytes(member.size)))
    with pytest.raises(UserError, match=r"unpacks to more than 0\.0 GB, 20 times its size"):
        open_archive("imagenet-sketch", path)
    assert not list((tmp_path / "cache" / "archives").iterdir())


def test_a_zip_that_says_too_small_a_size_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "lies.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(NAMED, bytes(5_000_000))
    path.write_bytes(path.read_bytes().replace(struct.pack("<I", 5_000_000), struct.pack("<I", 1000)))
    lies = open_archive("imagenet-sketch", path)
    with pytest.raises(Unusable, match="damaged"):
        lies.read(lies.pictures[0])


def test_names_that_lead_out_are_names_inside_the_archive(tmp_path: Path) -> None:
    secret = save(tmp_path / "n01440764" / "sketch_1.JPEG", 3)
    path = tmp_path / "slip.tar"
    with tarfile.open(path, "w") as archive:
        for name in (f"../{NAMED}", f"{tmp_path}/{NAMED}"):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
        link = tarfile.TarInfo("n01440764/sketch_2.JPEG")
        link.type, link.linkname = tarfile.SYMTYPE, str(secret)
        archive.addfile(link)
    slip = open_archive("imagenet-sketch", path)
    (link_inside,) = slip.pictures
    with pytest.raises(Unusable, match="the tar holds a link"):
        slip.read(link_inside)
    assert files_of(tmp_path) == {"slip.tar", NAMED}


def files_of(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_links_that_lead_up_are_not_followed_for_ever(imagenet_e: Path) -> None:
    for name in ("one", "two", "three"):  # each within each: more paths than could ever be walked
        (imagenet_e / name).symlink_to(imagenet_e)
    (imagenet_e / "ori" / "aside").symlink_to(imagenet_e / "rec")
    (imagenet_e / "rec" / "aside").symlink_to(imagenet_e / "ori")
    assert len(open_archive("imagenet-e", imagenet_e).pictures) == 72


def _packed() -> bytes:
    file = io.BytesIO()
    np.savez(file, mask=np.ones((2, 2)))
    return file.getvalue()


def _pickled() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([[{}]], object), allow_pickle=True)
    return file.getvalue()


def _header(text: bytes) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


@pytest.mark.parametrize(
    "data",
    [b"", _packed(), _pickled(), _header(b"((("),
     _header(b"{'descr': '|u1', 'fortran_order': False, 'shape': (10000000000, 100000)}\n")],
    ids=["empty", "npz", "pickle", "header", "size"],
)  # fmt: skip
def test_a_mask_that_is_no_plain_array_is_one_unusable_picture(tmp_path: Path, data: bytes) -> None:
    folder = edit_archives.imagenet_9(tmp_path / "nine")
    path = next(folder.rglob("*.npy"))
    path.write_bytes(data)
    archive = open_archive("imagenet-9-challenge", folder)
    laid = [one for one in archive.pictures if one.file.startswith(path.relative_to(folder).as_posix())]
    assert len(laid) == 18  # one foreground on every background
    for stored in laid:
        with pytest.raises(Unusable, match="the mask cannot be read"):
            archive.read(stored)


def test_validation_pictures_of_the_200_classes_are_not_taken_for_renditions(tmp_path: Path) -> None:
    for number, wnid in enumerate(imagenet_r().labels, 1):
        save(tmp_path / wnid / f"ILSVRC2012_val_{number:08d}.JPEG", 1, (8, 8))
    assert recognise(tmp_path) == "imagenet-val"
    assert len(open_archive("imagenet-val", tmp_path).pictures) == 200


def test_a_partial_copy_without_the_background_kinds_is_still_imagenet_e(imagenet_e: Path) -> None:
    for name in ("20_smooth", "20_hard", "20_adv", "random_bg"):
        shutil.rmtree(imagenet_e / name)
    assert recognise(imagenet_e) == "imagenet-e"
    assert len(open_archive("imagenet-e", imagenet_e).pictures) == 48
