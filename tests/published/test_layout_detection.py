"""Archives that are not what they should be: recognised, and said with what was expected."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from archives import class_archives, edit_archives
from archives.class_colours import save, save_bytes
from archives.tar_files import as_tar, as_zip
from counterfoil.cli import commands
from counterfoil.errors import Unusable, UserError
from counterfoil.labels.benchmark_classes import imagenet_a, imagenet_r
from counterfoil.labels.label_space import imagenet1k
from counterfoil.published.catalogue import describe_collection as told_of
from counterfoil.published.catalogue import open_archive, open_collection, recognise
from counterfoil.published.imagenet_validation import INDICES


@pytest.fixture
def imagenet_e(tmp_path: Path) -> Path:
    return edit_archives.imagenet_e(tmp_path / "ImageNet-E")


def test_a_path_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"expected a folder, a .tar or a .zip, got .*which is not there"):
        open_archive("imagenet-e", tmp_path / "nowhere")


def test_a_name_that_is_misspelt_gets_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean 'imagenet-e'"):
        open_archive("imagenete", tmp_path)


def test_a_folder_of_something_else_says_what_was_expected(tmp_path: Path) -> None:
    save_bytes(tmp_path / "notes" / "a.txt", b"x")
    assert recognise(tmp_path) is None
    with pytest.raises(
        UserError, match=r"expected imagenet-e with labels.txt and the folders ori.*found 1 files in 'notes/'"
    ):
        open_archive("imagenet-e", tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="found no file at all"):
        open_archive("imagenet-c", tmp_path / "empty")


@pytest.mark.parametrize(
    "name", ["imagenet-d", "imagenet-9", "imagenet-c", "imagenet-a", "imagenet-v2", "imagenet-val"]
)
def test_another_benchmark_is_called_by_its_name(name: str, imagenet_e: Path) -> None:
    with pytest.raises(UserError, match=rf"expected {name} with .* looks like imagenet-e; say imagenet-e:"):
        open_archive(name, imagenet_e)


def test_neither_200_classes_nor_corruptions_pass_for_the_validation_set(tmp_path: Path) -> None:
    renditions, corrupted = class_archives.imagenet_r_archive(tmp_path / "r"), class_archives.imagenet_c(tmp_path / "c")
    with pytest.raises(UserError, match="looks like imagenet-r"):
        open_archive("imagenet-val", renditions)
    with pytest.raises(UserError, match="looks like imagenet-r"):
        open_archive("imagenet-a", renditions)
    with pytest.raises(UserError, match="looks like imagenet-c"):
        open_archive("imagenet-val", corrupted)


def test_classes_of_another_benchmark_are_refused_even_where_names_tell_nothing(tmp_path: Path) -> None:
    save(tmp_path / "n01440764" / "one.jpg", 0)  # tench: in neither list of 200
    with pytest.raises(UserError, match=r"expected only classes of imagenet-a .* such as n01440764"):
        open_archive("imagenet-a", tmp_path)


def test_a_missing_folder_is_a_counted_row_and_a_note(imagenet_e: Path) -> None:
    shutil.rmtree(imagenet_e / "rp")
    archive = open_archive("imagenet-e", imagenet_e)
    assert ("every photo", "position", "the folder rp is missing") in [
        (row.sample_id, row.edit, row.reason) for row in archive.skipped
    ]
    assert any("rp" in note and "not the paper's" in note for note in archive.notes)


def test_a_wrong_count_is_said(imagenet_e: Path) -> None:
    (imagenet_e / "20_hard" / "ILSVRC2012_val_00000003.png").unlink()
    archive = open_archive("imagenet-e", imagenet_e)
    assert "The archive holds 5 of 6 pictures in 20_hard: a partial copy." in archive.notes
    assert len(archive.pictures) == 71


def test_without_originals_or_labels_there_is_no_imagenet_e(imagenet_e: Path) -> None:
    labels = (imagenet_e / "labels.txt").read_bytes()
    (imagenet_e / "labels.txt").unlink()
    with pytest.raises(UserError, match=r"expected labels.txt beside the folder ori"):
        open_archive("imagenet-e", imagenet_e)
    save_bytes(imagenet_e / "labels.txt", labels)
    shutil.rmtree(imagenet_e / "ori")
    with pytest.raises(UserError, match="expected the folder ori in imagenet-e"):
        open_archive("imagenet-e", imagenet_e)


@pytest.mark.parametrize("line", ["ILSVRC2012_val_00000001.JPEG\t1000", "ILSVRC2012_val_00000001.JPEG 3", "tench"])
def test_a_damaged_line_of_labels_is_named(line: str, imagenet_e: Path) -> None:
    save_bytes(imagenet_e / "labels.txt", f"\n{line}\n".encode())
    with pytest.raises(UserError, match=r"expected NAME, a tab and a class from 0 to 999 in line 2 of labels.txt"):
        open_archive("imagenet-e", imagenet_e)


def test_a_picture_without_a_label_is_skipped_by_name(imagenet_e: Path) -> None:
    lines = (imagenet_e / "labels.txt").read_text().splitlines()
    save_bytes(imagenet_e / "labels.txt", "\n".join(lines[1:]).encode())
    archive = open_archive("imagenet-e", imagenet_e)
    lost = [row for row in archive.skipped if row.reason == "the picture has no line in labels.txt"]
    assert {row.sample_id for row in lost} == {"ILSVRC2012_val_00000001"}
    assert len(lost) == 12


@pytest.mark.parametrize("pack", [as_tar, as_zip])
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_truncated_archive_is_refused(pack: Callable[[Path, Path], Path], share: float, imagenet_e: Path) -> None:
    file = pack(imagenet_e, imagenet_e.parent / "archive")
    data = file.read_bytes()
    file.write_bytes(data[: int(share * len(data))])
    with pytest.raises(UserError, match=r"expected a whole (tar|zip), got .*truncated or damaged.*fetch it again"):
        open_archive("imagenet-e", file)


def test_a_tar_cut_off_between_two_pictures_is_refused(imagenet_e: Path) -> None:
    file = as_tar(imagenet_e, imagenet_e.parent / "archive.tar")
    data = file.read_bytes().rstrip(b"\0")
    file.write_bytes(data + b"\0" * (-len(data) % 512))
    with pytest.raises(UserError, match="its end mark is missing"):
        open_archive("imagenet-e", file)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COUNTERFOIL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "archives"


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz"])
def test_an_archive_packed_as_a_whole_is_unpacked_once(mode: str, imagenet_e: Path, cache: Path) -> None:
    file = as_tar(imagenet_e, imagenet_e.parent / "ImageNet-E.tgz", mode)
    archive = open_archive("imagenet-e", file)
    assert archive.digest == open_archive("imagenet-e", imagenet_e).digest
    made = {path.name: path.stat().st_mtime_ns for path in cache.iterdir()}
    assert {path.suffix for path in cache.iterdir()} == {".tar", ".sha256"}
    moved = file.rename(file.with_name("moved.bin"))
    again = open_archive("imagenet-e", moved)
    assert (again.read(again.pictures[0]) == archive.read(archive.pictures[0])).all()
    assert {path.name: path.stat().st_mtime_ns for path in cache.iterdir()} == made


def test_an_unpacked_archive_with_a_flipped_bit_is_unpacked_again(
    imagenet_e: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = as_tar(imagenet_e, imagenet_e.parent / "ImageNet-E.tar.gz", "w:gz")
    open_archive("imagenet-e", file)
    (unpacked,) = cache.glob("*.tar")
    whole = unpacked.read_bytes()
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 4
    unpacked.write_bytes(damaged)
    open_archive("imagenet-e", file)
    assert unpacked.read_bytes() == whole
    assert "has not the hash recorded when it was unpacked" in caplog.text


def test_what_a_killed_unpacking_left_is_removed_by_the_next_one(imagenet_e: Path, cache: Path) -> None:
    file = as_tar(imagenet_e, imagenet_e.parent / "ImageNet-E.tar.gz", "w:gz")
    open_archive("imagenet-e", file)
    (unpacked,) = cache.glob("*.tar")
    unpacked.rename(cache / f".{unpacked.name}.0123abcd")  # as far as it came
    others = save_bytes(cache / ".another.tar.0123abcd", b"still being written")
    open_archive("imagenet-e", file)
    assert set(cache.iterdir()) == {unpacked, unpacked.with_suffix(".sha256"), others}


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz"])
def test_a_packed_archive_that_is_damaged_or_no_tar_leaves_nothing_behind(
    mode: str, imagenet_e: Path, cache: Path
) -> None:
    file = as_tar(imagenet_e, imagenet_e.parent / "ImageNet-E.tar.gz", mode)
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    with pytest.raises(UserError, match=r"expected a whole packed tar, got .*truncated or damaged"):
        open_archive("imagenet-e", file)
    save_bytes(file, gzip.compress(b"notes" * 400))
    with pytest.raises(UserError, match=r"expected a tar within .*found something else"):
        open_archive("imagenet-e", file)
    assert list(cache.iterdir()) == []


def test_a_packed_archive_is_not_unpacked_onto_a_full_disk(
    imagenet_e: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = as_tar(imagenet_e, imagenet_e.parent / "ImageNet-E.tar.gz", "w:gz")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1 << 30))
    with pytest.raises(UserError, match=r"expected room to unpack .* 1\.1 GB are free"):
        open_archive("imagenet-e", file)
    assert list(cache.iterdir()) == []


def test_a_tar_that_holds_one_file_under_two_names_gives_both(tmp_path: Path) -> None:
    folder = edit_archives.imagenet_e(tmp_path / "e")
    twin = folder / "rec" / "ILSVRC2012_val_00000006.png"
    twin.unlink()
    twin.hardlink_to(folder / "rd" / "ILSVRC2012_val_00000006.png")
    archive = open_archive("imagenet-e", as_tar(folder, tmp_path / "e.tar"))
    assert len(archive.pictures) == 72
    pictures = {stored.file: archive.read(stored) for stored in archive.pictures if stored.file.endswith("06.png")}
    assert (pictures["rec/ILSVRC2012_val_00000006.png"] == pictures["rd/ILSVRC2012_val_00000006.png"]).all()


def test_archives_and_unpacked_folders_side_by_side_are_one_benchmark(tmp_path: Path) -> None:
    whole = open_archive("imagenet-c", class_archives.imagenet_c(tmp_path / "whole"))
    mixed = tmp_path / "mixed"
    for group in ("noise", "blur", "weather", "digital"):
        as_tar(tmp_path / "whole" / group, save_bytes(mixed / f"{group}.tar", b""))
    shutil.copytree(tmp_path / "whole" / "weather", mixed / "weather-unpacked")
    (mixed / "logs").mkdir()
    save_bytes(mixed / "half.zip", b"PK")  # of something else, and broken
    archive = open_archive("imagenet-c", mixed)
    assert {e.variant.id for e in archive.pictures} == {e.variant.id for e in whole.pictures}
    assert sum("same object" in row.reason for row in archive.skipped) == 200  # the weather is there twice
    assert "half.zip" in [row.sample_id for row in archive.skipped]
    for stored in (archive.pictures[0], archive.pictures[-1]):
        assert archive.read(stored).shape == (8, 8, 3)


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    save_bytes(tmp_path / "page.tar", b"<html>" * 400)
    with pytest.raises(UserError, match="which is none of them"):
        open_archive("imagenet-e", tmp_path / "page.tar")


def test_a_broken_picture_is_unusable_not_the_archive(imagenet_e: Path) -> None:
    path = imagenet_e / "rd" / "ILSVRC2012_val_00000001.png"
    path.write_bytes(path.read_bytes()[:200])
    save_bytes(imagenet_e / "rp" / "ILSVRC2012_val_00000001.png", b"<html>")
    archive = open_archive("imagenet-e", imagenet_e)
    for kind, reason in (("rd", "broken"), ("rp", "no picture")):
        (stored,) = [e for e in archive.pictures if e.file == f"{kind}/ILSVRC2012_val_00000001.png"]
        with pytest.raises(Unusable, match=reason):
            archive.read(stored)


def test_folders_that_count_from_one_are_refused(tmp_path: Path) -> None:
    for number in (1, 2, 1000):
        save(tmp_path / str(number) / "a.jpeg", number - 1)
    with pytest.raises(UserError, match=r"expected folders 0 to 999 .* got a folder 1000"):
        open_archive("imagenet-v2", tmp_path)


def test_the_variants_of_imagenet_v2_are_read_one_by_one(tmp_path: Path) -> None:
    names = ("imagenetv2-matched-frequency-format-val", "imagenetv2-top-images-format-val")
    for name in names:
        for index in range(500):
            save_bytes(tmp_path / name / str(index) / "a.jpeg", b"x")
    with pytest.raises(UserError, match=rf"expected one variant of imagenet-v2 .* got 2: {', '.join(names)}; give one"):
        open_archive("imagenet-v2", tmp_path)
    assert len(open_archive("imagenet-v2", tmp_path / names[0]).pictures) == 500


def test_two_folders_of_one_number_are_refused(tmp_path: Path) -> None:
    save(tmp_path / "7" / "a.jpeg", 7)
    save(tmp_path / "007" / "b.jpeg", 7)
    with pytest.raises(UserError, match="two folders of one number"):
        open_archive("imagenet-v2", tmp_path)


@pytest.mark.parametrize("numbers", ["7 970 230", "490 970 230", "65 970 1001"])
def test_labels_that_count_in_no_known_way_are_refused(numbers: str, tmp_path: Path) -> None:
    folder = class_archives.imagenet_val(tmp_path, flat=True)
    save_bytes(folder / "labels.txt", "\n".join(numbers.split()).encode())
    with pytest.raises(UserError, match=r"where ILSVRC2012_val_00000001 is 65, 66 or 490; got .*: use WordNet ids"):
        open_archive("imagenet-val", folder)
    save_bytes(folder / "val.txt", b"ILSVRC2012_val_00000002.JPEG 970\n")  # another file may hold them
    assert len(open_archive("imagenet-val", folder).pictures) == 1


def test_numbers_without_one_of_the_first_pictures_are_read_only_where_one_way_is_left(tmp_path: Path) -> None:
    folder = class_archives.imagenet_val(tmp_path, flat=True)
    for number in range(1, 4):
        (folder / f"ILSVRC2012_val_{number:08d}.JPEG").rename(folder / f"ILSVRC2012_val_{number + 100:08d}.JPEG")
    labels = folder / "val.txt"
    labels.write_text("ILSVRC2012_val_00000101.JPEG 65\nILSVRC2012_val_00000102.JPEG 970\n")
    with pytest.raises(UserError, match="got numbers from 65 to 970 and none of the first ten pictures: use WordNet"):
        open_archive("imagenet-val", folder)
    labels.write_text(labels.read_text() + "ILSVRC2012_val_00000103.JPEG 0\n")  # only one way has a class 0
    archive = open_archive("imagenet-val", folder)
    assert [stored.variant.label for stored in archive.pictures] == [imagenet1k().labels[i] for i in (65, 970, 0)]


def test_a_list_of_the_classes_is_not_taken_for_labels(tmp_path: Path) -> None:
    folder = class_archives.imagenet_val(tmp_path, flat=True)
    (folder / "classes.txt").write_text("\n".join(imagenet1k().labels))
    with pytest.raises(UserError, match=r"in classes\.txt, where ILSVRC2012_val_00000001 is n01751748; got n01440764"):
        open_archive("imagenet-val", folder)
    (folder / "one.txt").write_text("ILSVRC2012_val_00000002.JPEG 970\n")
    assert len(open_archive("imagenet-val", folder).pictures) == 1
    (folder / "two.txt").write_text("ILSVRC2012_val_00000002.JPEG 970\nILSVRC2012_val_00000003.JPEG 230\n")
    assert len(open_archive("imagenet-val", folder).pictures) == 2  # the file that speaks of most counts


def test_the_development_kit_counts_each_class_once_and_in_an_order_of_its_own() -> None:
    names = {number: imagenet1k().name_of(imagenet1k().labels[INDICES[number - 1]]) for number in (1, 490, 1000)}
    assert names == {1: "kit fox", 490: "sea snake", 1000: "dumbbell"}
    assert sorted(INDICES) == list(range(1000))


def test_flat_pictures_without_labels_say_what_a_file_of_them_looks_like(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"expected a file of labels .* 'ILSVRC2012_val_00000001.JPEG 65'"):
        open_archive("imagenet-val", class_archives.imagenet_val(tmp_path, flat=True))


def test_objectnet_needs_its_map(tmp_path: Path) -> None:
    folder = class_archives.objectnet(tmp_path)
    (folder / "objectnet-1.0" / "mappings" / "objectnet_to_imagenet_1k.json").unlink()
    with pytest.raises(UserError, match=r"expected objectnet-1.0/mappings/objectnet_to_imagenet_1k.json in objectnet"):
        open_archive("objectnet", folder)


def test_questions_with_other_columns_are_refused(tmp_path: Path) -> None:
    folder = class_archives.imagenet_d_archive(tmp_path)
    save_bytes(folder / "ImageNet-D" / "questions" / "texture.csv", b"image,category\n")
    with pytest.raises(UserError, match=r"expected the columns image_dir, gt_category, .* divided by tabs"):
        open_archive("imagenet-d", folder)


def test_many_strays_are_one_counted_row(imagenet_e: Path) -> None:
    for number in range(30):
        save_bytes(imagenet_e / "logs" / f"{number}.txt", b"x")
    (row,) = [row for row in open_archive("imagenet-e", imagenet_e).skipped if row.sample_id == "logs/"]
    assert row.reason == "30 files that are no part of imagenet-e, such as 0.txt"


def test_the_digest_changes_with_a_label_a_name_or_a_size(imagenet_e: Path) -> None:
    before = open_archive("imagenet-e", imagenet_e).digest
    text = (imagenet_e / "labels.txt").read_text()
    save_bytes(imagenet_e / "labels.txt", text.replace("\t404", "\t405").encode())
    assert open_archive("imagenet-e", imagenet_e).digest != before
    save_bytes(imagenet_e / "labels.txt", text.encode())
    assert open_archive("imagenet-e", imagenet_e).digest == before
    save(imagenet_e / "rd" / "ILSVRC2012_val_00000001.png", 17, (64, 64))
    assert open_archive("imagenet-e", imagenet_e).digest != before


def test_one_s_own_numbered_folders_are_not_taken_for_imagenet_v2(tmp_path: Path) -> None:
    for index in range(12):
        save(tmp_path / str(index) / "a.png", index, (8, 8))
    assert recognise(tmp_path) is None


def test_class_folders_that_fit_several_archives_are_told_with_the_names_to_choose_from(tmp_path: Path) -> None:
    shared = sorted(set(imagenet_a().labels) & set(imagenet_r().labels))[:3]
    for wnid in shared:
        save(tmp_path / wnid / "photo_1.jpg", 0)
    assert recognise(tmp_path) is None
    with pytest.raises(
        UserError, match=r"may be imagenet-a or imagenet-r or .*; say which, such as imagenet-a:"
    ) as told:
        open_collection(str(tmp_path))
    assert str(told.value).endswith(f"; photos of your own: `counterfoil run --images {tmp_path}`")
    with pytest.raises(UserError, match="a published archive needs its name") as told:
        open_collection(str(save(tmp_path / "own" / "beagle" / "a.jpg", 0).parent.parent))
    assert f"; photos of your own: `counterfoil run --images {tmp_path / 'own'}`" in str(told.value)
    packed = as_tar(save_bytes(tmp_path / "notes" / "x.txt", b"x").parent, tmp_path / "unknown.tar")
    with pytest.raises(UserError, match=r"got the file '.*unknown\.tar'"):
        open_collection(str(packed))


def test_a_foreign_class_among_many_is_left_out_by_name_and_counted(tmp_path: Path) -> None:
    for wnid in imagenet_a().labels[:3]:
        save(tmp_path / wnid / "photo.jpg", 0)
    save(tmp_path / "n01440764" / "photo.jpg", 0)  # tench: no class of ImageNet-A
    archive = open_archive("imagenet-a", tmp_path)
    assert {stored.variant.label for stored in archive.pictures} == set(imagenet_a().labels[:3])
    assert [row.sample_id for row in archive.skipped] == ["n01440764/photo.jpg"]
    assert "n01440764" in archive.notes[0]


def test_the_terminal_says_what_a_bare_path_was_recognised_as_and_the_notes(tmp_path: Path) -> None:
    save(tmp_path / "set" / "n01443537" / "cartoon_1.jpg", 1)
    wanted = ["--model", "python:archives.class_colours:tells", "--out", str(tmp_path / "run"), "--workers", "1"]
    told = CliRunner().invoke(commands, ["evaluate", str(tmp_path / "set"), *wanted], catch_exceptions=False)
    lines = told.output.splitlines()
    assert lines[0] == "recognised as imagenet-r"
    assert any("1 of 200 class folders: a partial copy" in line for line in lines)
    named = open_collection(f"imagenet-r:{tmp_path / 'set'}")
    assert not any("recognised" in line for line in told_of(f"imagenet-r:{tmp_path / 'set'}", named))


def test_a_word_far_from_every_name_gets_no_suggestion(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"got 'foo'$"):
        open_archive("foo", tmp_path)
