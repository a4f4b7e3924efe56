"""Tars and zips as strangers make them: what they do not hold whole is counted or refused, never read as something."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from archives.class_colours import index_of, save
from counterfoil.errors import Unusable, UserError
from counterfoil.published.archive import Archive
from counterfoil.published.catalogue import open_archive
from counterfoil.sources.webdataset import open_webdataset

NAMES = [f"n01440764/sketch_{number}.JPEG" for number in range(3)]


def pictures(folder: Path) -> dict[str, bytes]:
    """Three pictures by name, each of another class."""
    return {name: save(folder / name, index).read_bytes() for index, name in enumerate(NAMES)}


def tar_of(file: Path, files: Mapping[str, bytes], *named: tarfile.TarInfo) -> Path:
    with tarfile.open(file, "w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for member in named:
            archive.addfile(member)
    return file


def named_only(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def told(archive: Archive) -> dict[str, int | str]:
    """Of each picture by its name which class it says, or why it says none."""
    found: dict[str, int | str] = {}
    for stored in archive.pictures:
        try:
            found[stored.file.rpartition("/")[2]] = index_of(archive.read(stored))
        except Unusable as error:
            found[stored.file.rpartition("/")[2]] = str(error)
    return found


def test_what_a_tar_names_without_its_bytes_is_counted(tmp_path: Path) -> None:
    links = [
        named_only("n01440764/sketch_4.JPEG", tarfile.SYMTYPE, "sketch_0.JPEG"),
        named_only("n01440764/sketch_5.JPEG", tarfile.LNKTYPE, "n01440764/gone.JPEG"),
        named_only("n01440764/sketch_6.JPEG", tarfile.LNKTYPE, NAMES[1]),
        named_only("n01440764/sketch_7.JPEG", tarfile.CHRTYPE),
    ]
    found = told(open_archive("imagenet-sketch", tar_of(tmp_path / "set.tar", pictures(tmp_path), *links)))
    assert {name: said for name, said in found.items() if isinstance(said, int)} == {
        "sketch_0.JPEG": 0, "sketch_1.JPEG": 1, "sketch_2.JPEG": 2, "sketch_6.JPEG": 1,
    }  # fmt: skip
    assert {found[f"sketch_{number}.JPEG"] for number in (4, 5, 7)} == {
        "the tar holds a link or a file with holes in its place; unpack it and give the folder"
    }


def test_a_file_with_holes_is_not_read_into_the_next_one(tmp_path: Path) -> None:
    """As `tar --sparse` keeps it: the size is the whole file's, the bytes are some of it."""
    files = pictures(tmp_path)
    data = files[NAMES[0]]
    sparse = tarfile.TarInfo(NAMES[0])
    sparse.size = len(data)
    sparse.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.size": f"{len(data) + 999}",
                          "GNU.sparse.name": NAMES[0], "GNU.sparse.map": f"0,{len(data)}"}  # fmt: skip
    with tarfile.open(tmp_path / "set.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(sparse, io.BytesIO(data))
        archive.add(tmp_path / NAMES[1], NAMES[1])
    found = told(open_archive("imagenet-sketch", tmp_path / "set.tar"))
    assert found["sketch_1.JPEG"] == 1
    assert "a file with holes" in str(found["sketch_0.JPEG"])


@pytest.mark.parametrize("size", [-512, 1 << 62, 1 << 70])
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, b"Z"])
def test_a_member_that_leads_back_or_beyond_is_refused(size: int, kind: bytes, tmp_path: Path) -> None:
    """A size of -512 leads to the member's own header once more, for ever."""
    file = tar_of(tmp_path / "set.tar", pictures(tmp_path), named_only("n01440764/sketch_9.JPEG", kind))
    data = bytearray(file.read_bytes())
    place = data.find(b"n01440764/sketch_9.JPEG")
    header = data[place : place + 512]
    header[124:136] = bytes([255 if size < 0 else 128]) + (size % (1 << 88)).to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    data[place : place + 512] = header
    file.write_bytes(data)
    with pytest.raises(UserError, match=r"expected a whole tar.*damaged"):
        open_archive("imagenet-sketch", file)
    if size < 0:
        with pytest.raises(UserError, match="does not lie within it"):
            open_webdataset(file)


def test_tars_joined_in_one_file_are_refused(tmp_path: Path) -> None:
    files = pictures(tmp_path)
    parts = [tar_of(tmp_path / f"{number}.tar", {name: files[name]}) for number, name in enumerate(NAMES)]
    (tmp_path / "all.tar").write_bytes(b"".join(part.read_bytes() for part in parts))
    with pytest.raises(UserError, match=r"expected one tar in .*, got several joined in one file"):
        open_archive("imagenet-sketch", tmp_path / "all.tar")


@pytest.mark.parametrize("top", ["PK_photos", "BZh_photos"])
def test_a_tar_may_begin_with_the_letters_of_another_format(top: str, tmp_path: Path) -> None:
    files = {f"{top}/{name}": data for name, data in pictures(tmp_path).items()}
    archive = open_archive("imagenet-sketch", tar_of(tmp_path / "set.tar", files))
    assert [*told(archive).values()] == [0, 1, 2]


class OneWay(io.BytesIO):
    """A file that cannot be gone back in: a zip's sums then stand behind the data."""

    def seekable(self) -> bool:
        return False

    def seek(self, place: int, whence: int = 0) -> int:
        raise io.UnsupportedOperation

    def tell(self) -> int:
        raise io.UnsupportedOperation


@pytest.mark.parametrize("file", [io.BytesIO, OneWay])
def test_a_wrong_bit_in_a_zip_is_found_though_the_picture_still_shows(file: type[io.BytesIO], tmp_path: Path) -> None:
    files, written = pictures(tmp_path), file()
    with zipfile.ZipFile(written, "w") as archive:
        for name, picture in files.items():
            archive.writestr(name, picture)
    data, second_picture = bytearray(written.getvalue()), files[NAMES[1]]
    (tmp_path / "whole.zip").write_bytes(data)
    assert [*told(open_archive("imagenet-sketch", tmp_path / "whole.zip")).values()] == [0, 1, 2]
    data[data.find(second_picture) + len(second_picture) // 2] ^= 4
    (tmp_path / "set.zip").write_bytes(data)
    first, second, third = told(open_archive("imagenet-sketch", tmp_path / "set.zip")).values()
    assert (first, third) == (0, 2)
    assert second == "the archive is damaged: a file has not the check sum that the zip says"


def test_a_zip_that_no_program_here_understands_is_said_in_one_line(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        archive.writestr("n01440764/sketch_\N{LATIN SMALL LETTER E WITH ACUTE}.JPEG", b"")
    data = (tmp_path / "set.zip").read_bytes()
    newer = bytearray(data)
    newer[newer.find(b"PK\x01\x02") + 6] = 99  # the version that is needed
    for damaged in (bytes(newer), data.replace("\N{LATIN SMALL LETTER E WITH ACUTE}".encode(), b"\xff\xfe")):
        (tmp_path / "set.zip").write_bytes(damaged)
        with pytest.raises(UserError, match="expected a whole zip"):
            open_archive("imagenet-sketch", tmp_path / "set.zip")


def test_a_link_to_itself_is_one_picture_that_cannot_be_read(tmp_path: Path) -> None:
    pictures(tmp_path / "set")
    loop = tmp_path / "set" / "n01440764" / "sketch_9.JPEG"
    loop.symlink_to(loop)
    found = told(open_archive("imagenet-sketch", tmp_path / "set"))
    assert len(found) == 4
    assert "the link leads in a circle" in str(found["sketch_9.JPEG"])


def test_a_zip_with_an_empty_name_and_an_unheard_of_packing_is_counted(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        for name, picture in pictures(tmp_path).items():
            archive.writestr(name, picture)
        archive.writestr("x", b"")
    data = bytearray((tmp_path / "set.zip").read_bytes())
    last = data.rfind(b"PK\x01\x02")
    data[last + 28] = 0  # the length of the name "x", which becomes the comment
    data[last + 32] = 1
    first = data.find(b"PK\x01\x02")
    data[first + 10 : first + 12] = b"\xff\xff"
    (tmp_path / "set.zip").write_bytes(data)
    found = told(open_archive("imagenet-sketch", tmp_path / "set.zip"))
    assert [*found.values()][1:] == [1, 2]
    assert "in a way other than deflate" in str(found["sketch_0.JPEG"])
