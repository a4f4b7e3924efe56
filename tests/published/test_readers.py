"""Every reader on a look-alike of its archive, to the last picture."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from archives import class_archives, edit_archives
from archives.class_colours import FAR, index_of, save, save_bytes
from archives.tar_files import as_tar, as_zip
from counterfoil.labels.benchmark_classes import imagenet9, imagenet_a, imagenet_d, ximagenet12
from counterfoil.labels.label_space import imagenet1k
from counterfoil.published.archive import Archive
from counterfoil.published.catalogue import BENCHMARK_OF, open_archive, recognise
from counterfoil.published.file_tree import open_tree
from counterfoil.published.layout_detection import FolderSample
from locations import ROOT

MAKERS = {
    "imagenet-e": edit_archives.imagenet_e,
    "imagenet-d": class_archives.imagenet_d_archive,
    "ximagenet-12": edit_archives.ximagenet_12,
    "imagenet-9": edit_archives.imagenet_9,
    "imagenet-c": class_archives.imagenet_c,
    "imagenet-a": class_archives.imagenet_a_archive,
    "imagenet-r": class_archives.imagenet_r_archive,
    "imagenet-sketch": class_archives.imagenet_sketch,
    "imagenet-v2": class_archives.imagenet_v2,
    "objectnet": class_archives.objectnet,
    "cue-conflict": class_archives.cue_conflict,
}


def said(archive: Archive) -> dict[str, int]:
    """Which class every picture says, by its file."""
    return {stored.file: index_of(archive.read(stored)) for stored in archive.pictures}


def conditions(archive: Archive) -> Counter[tuple[str, str, str]]:
    variants = [stored.variant for stored in archive.pictures]
    return Counter((variant.attribute, variant.edit, variant.level) for variant in variants)


def test_every_archive_has_a_look_alike() -> None:
    assert set(MAKERS) | {"imagenet-val", "imagenet-9-challenge", "imagenet-9-challenge-all"} == set(BENCHMARK_OF)


@pytest.mark.parametrize("name", MAKERS)
def test_an_archive_is_recognised_and_reads_the_same_from_folder_tar_and_zip(name: str, tmp_path: Path) -> None:
    folder = MAKERS[name](tmp_path / "somewhere" / "unpacked")
    places = [folder, as_tar(folder, tmp_path / "archive.tar"), as_zip(folder, tmp_path / "archive.zip")]
    archives = [open_archive(name, place) for place in places]
    assert [recognise(place) for place in places] == [name] * 3
    plain = archives[0]
    for archive in archives[1:]:
        assert archive.digest == plain.digest
        assert [*map(repr, archive.pictures)] == [
            *map(repr, plain.pictures)
        ]  # an unknown share is NaN: equal to nothing
        for stored in (archive.pictures[0], archive.pictures[-1], archive.pictures[len(archive.pictures) // 2]):
            np.testing.assert_array_equal(archive.read(stored), plain.read(stored))
    ids = [stored.variant.id for stored in plain.pictures]
    assert len(set(ids)) == len(ids)


def test_imagenet_e_joins_twelve_folders_by_the_stem(tmp_path: Path) -> None:
    archive = open_archive("imagenet-e", edit_archives.imagenet_e(tmp_path))
    assert conditions(archive) == dict.fromkeys(
        [
            ("original", "original", "none"), ("control", "control", "rec"),
            ("background", "background-complexity", "-20"), ("background", "background-complexity", "20"),
            ("background", "background-complexity", "20-adv"), ("background", "background-random", "random"),
            ("size", "size", "full"), ("size", "size", "0.1"), ("size", "size", "0.08"), ("size", "size", "0.05"),
            ("position", "position", "random"), ("direction", "direction", "random"),
        ],
        6,
    )  # fmt: skip
    for stored in archive.pictures:
        number = int(str(stored.variant.sample_id)[-8:])
        truth = edit_archives.E_CLASSES[number - 1]
        assert stored.variant.label == imagenet1k().labels[truth]
        wrong = number <= edit_archives.E_WRONG[stored.file.split("/")[0]]
        assert index_of(archive.read(stored)) == ((truth + FAR) % 1000 if wrong else truth)
    assert [row.sample_id for row in archive.skipped] == ["eval.py", "vis.py", "ori/.DS_Store"]
    assert archive.pictures[0].variant.attribute == "original"


def test_imagenet_d_knows_categories_questions_and_missing_folders(tmp_path: Path) -> None:
    archive = open_archive("imagenet-d", class_archives.imagenet_d_archive(tmp_path))
    found = Counter((stored.variant.edit, stored.variant.label) for stored in archive.pictures)
    wanted = {(f, c): len(indices) for f, parts in class_archives.D_CATEGORIES.items() for c, indices in parts.items()}
    assert found == wanted
    assert archive.space == imagenet_d()
    first, second = (f"background/pen/bacpen{number:016d}.png" for number in (0, 1))
    assert archive.distractors[first] == "coffee_or_french_press"  # CLIP's first answer was the truth
    assert archive.distractors[second] == "can_opener"
    assert set(archive.distractors) == {stored.variant.sample_id for stored in archive.pictures}
    assert "The archive holds 6 of 3,764 background pictures: a partial copy." in archive.notes


def test_ximagenet_12_has_a_scenario_for_every_folder_but_the_masks(tmp_path: Path) -> None:
    archive = open_archive("ximagenet-12", edit_archives.ximagenet_12(tmp_path))
    assert Counter(stored.file.split("/")[0] for stored in archive.pictures) == dict.fromkeys(
        edit_archives.X_FOLDERS, 24
    )
    assert len({stored.variant.sample_id for stored in archive.pictures}) == 24
    assert {stored.variant.label for stored in archive.pictures} == set(ximagenet12().labels)
    assert any("training pictures" in note for note in archive.notes)
    assert any("rand_bg" in note for note in archive.notes)
    see_through = next(stored for stored in archive.pictures if stored.file.startswith("transparent_img"))
    np.testing.assert_array_equal(archive.read(see_through)[0, 0], [255, 255, 255])


def test_ximagenet_12_is_read_as_the_authors_scripts_write_it(tmp_path: Path) -> None:
    plain = open_archive("ximagenet-12", edit_archives.ximagenet_12(tmp_path / "plain"))
    released = edit_archives.ximagenet_12(tmp_path / "released", edit_archives.X_AS_RELEASED)
    assert recognise(released) == "ximagenet-12"
    archive = open_archive("ximagenet-12", released)
    assert [stored.variant for stored in archive.pictures] == [stored.variant for stored in plain.pictures]
    assert {"segmented_image_transparent", "combine", "Blur_bg"} <= {e.file.split("/")[0] for e in archive.pictures}


def test_imagenet_9_joins_mixed_pictures_by_their_foreground(tmp_path: Path) -> None:
    archive = open_archive("imagenet-9", edit_archives.imagenet_9(tmp_path))
    samples = Counter(stored.variant.sample_id for stored in archive.pictures)
    assert set(samples.values()) == {8}
    assert len(samples) == 18
    assert archive.skipped == ()
    vehicles = {stored.variant.label for stored in archive.pictures if "02_wheeled vehicle" in stored.file}
    assert vehicles == {imagenet9().labels[2]}


def test_the_challenge_lays_every_foreground_on_every_background(tmp_path: Path) -> None:
    archive = open_archive("imagenet-9-challenge", edit_archives.imagenet_9(tmp_path))
    laid = [stored for stored in archive.pictures if stored.variant.edit == "challenge"]
    assert Counter(stored.variant.sample_id for stored in laid) == dict.fromkeys(
        {stored.variant.sample_id for stored in archive.pictures}, 18
    )
    for stored in laid[::7]:
        mask, ground = stored.file.split("|")
        photo = mask.replace("fg_mask", "original").replace(".npy", ".JPEG")
        inside = np.load(tmp_path / mask)[:, :, None]
        expected = np.where(inside, np.asarray(Image.open(tmp_path / photo)), np.asarray(Image.open(tmp_path / ground)))
        np.testing.assert_array_equal(archive.read(stored), expected)


def test_imagenet_c_is_read_from_the_tars_of_its_release(tmp_path: Path) -> None:
    folder = class_archives.imagenet_c(tmp_path / "unpacked")
    (tmp_path / "tars").mkdir()
    for group in class_archives.CORRUPTIONS:
        as_tar(folder / group, tmp_path / "tars" / f"{group}.tar")
    archive = open_archive("imagenet-c", tmp_path / "tars")
    assert set(conditions(archive).values()) == {10}
    assert len(conditions(archive)) == 75
    assert sorted(row.sample_id for row in archive.skipped) == [
        "gaussian_blur/", "saturate/", "spatter/", "speckle_noise/",
    ]  # fmt: skip
    for stored in archive.pictures[::7]:
        photo, variant = int(stored.file[-13:-5]) - 1, stored.variant
        wrong = photo < int(variant.level) or variant.edit == "corruption-snow"
        assert (index_of(archive.read(stored)) != 90 * photo) == wrong


def test_imagenet_v2_takes_the_folder_for_a_number_not_for_a_text(tmp_path: Path) -> None:
    archive = open_archive("imagenet-v2", class_archives.imagenet_v2(tmp_path))
    answers = said(archive)
    right = [imagenet1k().labels[answers[stored.file]] == stored.variant.label for stored in archive.pictures]
    assert right.count(False) == 1
    assert any("sorts their names as texts" in note for note in archive.notes)


@pytest.mark.parametrize("name", ["imagenet-a", "imagenet-r"])
def test_200_classes_compete_by_default(name: str, tmp_path: Path) -> None:
    archive = open_archive(name, MAKERS[name](tmp_path))
    assert archive.scoring == "subset"
    assert archive.space is not None
    assert len(archive.space.labels) == 200
    assert all(stored.variant.label == stored.file.split("/")[0] for stored in archive.pictures)


def test_renditions_and_sketches_are_told_apart(tmp_path: Path) -> None:
    for name in ("cartoon_1.jpg", "sketch_2.jpg"):
        save(tmp_path / "renditions" / "n01443537" / name, 1)
    for name in ("sketch_1.JPEG", "sketch_2.JPEG"):
        save(tmp_path / "sketches" / "n01443537" / name, 1)
    assert recognise(tmp_path / "renditions") == "imagenet-r"
    assert recognise(tmp_path / "sketches") == "imagenet-sketch"


def test_200_classes_are_known_whatever_their_files_are_called(tmp_path: Path) -> None:
    for wnid in imagenet_a().labels:
        save_bytes(tmp_path / wnid / "x.jpg", b"x")
    assert recognise(tmp_path) == "imagenet-a"


def test_a_glimpse_of_many_files_still_sees_the_small_folders(tmp_path: Path) -> None:
    folder = class_archives.objectnet(tmp_path)
    for number in range(200):
        save_bytes(folder / "objectnet-1.0" / "images" / "backpack" / f"{number:05d}.png", b"x")
    glimpse = FolderSample(open_tree(folder), most=60)
    assert len(glimpse.sizes) <= 60
    assert "objectnet-1.0/mappings/objectnet_to_imagenet_1k.json" in glimpse.sizes


def test_every_archive_is_in_the_documentation() -> None:
    text = (ROOT / "docs" / "published.md").read_text(encoding="utf-8")
    assert [name for name in BENCHMARK_OF if f"`{name}`" not in text] == []


def test_cue_conflicts_are_labelled_by_their_shape_and_keep_the_texture_in_their_name(tmp_path: Path) -> None:
    archive = open_archive("cue-conflict", class_archives.cue_conflict(tmp_path))
    samples = {str(stored.variant.sample_id): stored.variant.label for stored in archive.pictures}
    assert samples["bear/bear2-cat2"] == "bear"
    assert len(samples) == 9
    assert set(conditions(archive)) == {("texture", "cue-conflict", "another class")}
    assert [(row.sample_id, row.reason) for row in archive.skipped] == [
        ("cue-conflict/cat/dog7-bear1.png", "lies in the folder of another shape than dog")
    ]
    assert archive.space is not None
    assert len(archive.space.labels) == 16
    assert any("1,280" in note for note in archive.notes)


def test_cue_conflicts_of_model_vs_human_lie_in_sessions(tmp_path: Path) -> None:
    name = "0001_cl_dnn_00_airplane_00_airplane1-bicycle2.png"
    save(tmp_path / "cue-conflict" / "dnn" / "session-1" / name, 404)
    (stored,) = open_archive("cue-conflict", tmp_path).pictures
    assert (stored.variant.label, str(stored.variant.sample_id)) == ("airplane", "airplane/airplane1-bicycle2")


def test_objectnet_loses_its_border_and_the_classes_that_imagenet_has_not(tmp_path: Path) -> None:
    archive = open_archive("objectnet", class_archives.objectnet(tmp_path))
    assert {stored.variant.label for stored in archive.pictures} == {"Alarm clock", "Backpack"}
    assert archive.space is not None
    assert archive.space.ids_of("Alarm clock") == ("n02708093", "n03196217")
    for stored in archive.pictures:
        image = archive.read(stored)
        assert image.shape == (36, 46, 3)
        assert not (image == (255, 0, 0)).all(axis=2).any()
    assert [row.sample_id for row in archive.skipped] == ["air_freshener/"]


NAMED = [(f"ILSVRC2012_val_{number:08d}", index) for number, index in enumerate(class_archives.VAL_CLASSES, 1)]
LABEL_FILES = {
    "val.txt": "".join(f"{name}.JPEG {index}\n" for name, index in NAMED),
    "val_map.txt": "".join(f"val.zip@/{name}.JPEG\t{index}\n" for name, index in NAMED),
    "val_from_1.txt": "".join(f"val/{name}.JPEG {index + 1}\n" for name, index in NAMED),
    "indices_alone.txt": "".join(f"{index}\n" for index in class_archives.VAL_CLASSES),
    "ILSVRC2012_validation_ground_truth.txt": "490\n361\n171\n822\n297\n482\n",  # as the development kit has it
    "labels.txt": "".join(f"{name}.JPEG\t{imagenet1k().labels[index]}\n" for name, index in NAMED) + "\n",
    "LOC_val_solution.csv": "ImageId,PredictionString\n"
    + "".join(f"{name},{imagenet1k().labels[index]} 1 2 3 4 \n" for name, index in NAMED),
    "synset_labels.txt": "".join(f"{imagenet1k().labels[index]}\n" for index in class_archives.VAL_CLASSES),
}


@pytest.mark.parametrize("name", LABEL_FILES)
@pytest.mark.parametrize("packed", [False, True])
def test_flat_validation_pictures_take_their_labels_from_a_file(name: str, packed: bool, tmp_path: Path) -> None:
    folder = class_archives.imagenet_val(tmp_path / "val", flat=True)
    place = as_tar(folder, tmp_path / "ILSVRC2012_img_val.tar") if packed else folder
    ((tmp_path if packed else folder) / name).write_text(LABEL_FILES[name])
    archive = open_archive("imagenet-val", place)
    answers = said(archive)
    wrong = [e.file for e in archive.pictures if imagenet1k().labels[answers[e.file]] != e.variant.label]
    assert wrong == ["ILSVRC2012_val_00000006.JPEG"]
    assert len(archive.pictures) == 6
    counted = [note for note in archive.notes if "were read as" in note]
    assert len(counted) == (name not in ("labels.txt", "LOC_val_solution.csv", "synset_labels.txt"))
    assert ("development kit" in "".join(counted)) == (name == "ILSVRC2012_validation_ground_truth.txt")


def test_the_two_archives_of_the_validation_set_are_read_as_they_were_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTERFOIL_CACHE", str(tmp_path / "cache"))
    as_tar(class_archives.imagenet_val(tmp_path / "flat", flat=True), tmp_path / "ilsvrc.tar")
    kit = tmp_path / "kit" / "ILSVRC2012_devkit_t12" / "data" / "ILSVRC2012_validation_ground_truth.txt"
    save_bytes(kit, LABEL_FILES[kit.name].encode())
    (tmp_path / "fetched").mkdir()
    as_tar(tmp_path / "kit", tmp_path / "fetched" / "ILSVRC2012_devkit_t12.tar.gz", "w:gz")
    (tmp_path / "ilsvrc.tar").rename(tmp_path / "fetched" / "ILSVRC2012_img_val.tar")
    archive = open_archive("imagenet-val", tmp_path / "fetched")
    assert [stored.variant.label for stored in archive.pictures] == [
        imagenet1k().labels[i] for i in class_archives.VAL_CLASSES
    ]
    assert archive.skipped == ()


def test_validation_pictures_in_class_folders_are_found_beside_the_training_ones(tmp_path: Path) -> None:
    class_archives.imagenet_val(tmp_path / "val", flat=False)
    for number in range(9):
        (tmp_path / "train" / "n01440764").mkdir(parents=True, exist_ok=True)
        (tmp_path / "train" / "n01440764" / f"n01440764_{number}.JPEG").write_bytes(b"x")
    archive = open_archive("imagenet-val", tmp_path)
    assert len(archive.pictures) == 6
    assert {stored.file.split("/")[0] for stored in archive.pictures} == {"val"}


def test_threads_read_one_archive_at_once(tmp_path: Path) -> None:
    file = as_zip(edit_archives.imagenet_e(tmp_path / "e"), tmp_path / "e.zip")
    archive = open_archive("imagenet-e", file)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda stored: index_of(archive.read(stored)), [*archive.pictures] * 4))
    assert found == list(said(archive).values()) * 4
