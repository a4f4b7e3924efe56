"""ImageNet-S and XImageNet-12's masks as sources of one's own edits."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import counterfoil as cf
from archives.class_colours import SIDE, save, save_bytes
from archives.edit_archives import mask, ximagenet_12
from counterfoil.errors import Unusable, UserError
from counterfoil.labels.benchmark_classes import imagenet_s_ids
from counterfoil.sources.imagenet_s import ImageNetSSource
from counterfoil.sources.source_loaders import open_source

DOG, TENCH, LAST = "n02085620", "n01440764", "n15075141"


def numbered(path: Path, numbers: np.ndarray) -> None:
    """A mask whose pixels say R + 256 G."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.dstack([numbers % 256, numbers // 256, np.zeros_like(numbers)]).astype(np.uint8)
    Image.fromarray(pixels).save(path)


def imagenet_s(folder: Path) -> Path:
    """Three photos: the object, something else beside it, and a band that is left open."""
    for wnid, index in ((TENCH, 0), (DOG, 151), (LAST, 999)):
        name = f"ILSVRC2012_val_{index + 1:08d}"
        save(folder / "ImageNetS919" / "validation" / wnid / f"{name}.JPEG", index)
        numbers = np.where(mask(), imagenet_s_ids()[wnid], 0)
        numbers[:4] = 1000
        numbers[-4:] = imagenet_s_ids()[DOG if wnid != DOG else TENCH]
        numbered(folder / "ImageNetS919" / "validation-segmentation" / wnid / f"{name}.png", numbers)
    save(folder / "ImageNetS919" / "validation" / DOG / "nomask.JPEG", 3)
    save_bytes(folder / "ImageNetS919" / "validation" / DOG / "notes.txt", b"x")
    return folder


def test_class_numbers_are_places_among_the_919_sorted_classes() -> None:
    ids = imagenet_s_ids()
    assert sorted(ids[wnid] for wnid in ids)[-1] == 919
    assert (ids[TENCH], ids[LAST]) == (1, 919)
    assert ids["n04356056"] == ids["n04355933"]  # sunglasses are merged into sunglass
    assert len(set(ids.values())) == 919


def test_the_object_is_what_has_the_number_of_the_photos_own_class(tmp_path: Path) -> None:
    source = open_source(f"imagenet-s:{imagenet_s(tmp_path)}", None)
    samples, skipped = source.samples()
    assert [sample.label for sample in samples] == [TENCH, DOG, LAST]
    for sample in samples:
        image, found = source.read(sample)
        assert image.shape == (SIDE, SIDE, 3)
        assert found is not None
        np.testing.assert_array_equal(found, np.where(mask(), 255, 0))
    assert {row.sample_id: row.reason for row in skipped} == {
        f"{DOG}/nomask.JPEG": f"there is no mask {DOG}/nomask.png",
        f"{DOG}/notes.txt": "the file is no part of ImageNet-S",
    }


def test_a_run_over_imagenet_s_is_rebuilt_from_its_record(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("name: two\nedits:\n  - edit: control\n  - edit: background-plain\n")
    images = f"imagenet-s:{imagenet_s(tmp_path / 's')}"
    model = "python:archives.class_colours:tells"
    result = cf.run(images, [model], recipe=str(recipe), out=tmp_path / "run", workers=1)
    assert {row.n for row in result.drops} == {3}
    variants = [line for line in (tmp_path / "run" / "run.json").read_text().splitlines() if '"images"' in line]
    assert "imagenet-s:" in variants[0]


def test_masks_that_cannot_be_used_say_why(tmp_path: Path) -> None:
    top = imagenet_s(tmp_path) / "ImageNetS919" / "validation-segmentation"
    numbered(top / TENCH / "ILSVRC2012_val_00000001.png", np.zeros((SIDE, SIDE), int))
    numbered(top / DOG / "ILSVRC2012_val_00000152.png", np.ones((9, 9), int))
    save_bytes(top / LAST / "ILSVRC2012_val_00001000.png", b"x")
    source = ImageNetSSource(tmp_path / "ImageNetS919")
    reasons = ("no pixel of the photo's class", "the mask is 9 x 9 pixels", "the mask is broken")
    for sample, reason in zip(source.samples()[0], reasons, strict=True):
        with pytest.raises(Unusable, match=reason):
            source.read(sample)


def test_a_photo_whose_name_is_no_text_and_a_mask_that_is_gone_are_counted(tmp_path: Path) -> None:
    top = imagenet_s(tmp_path) / "ImageNetS919"
    save(top / "validation" / DOG / os.fsdecode(b"\xff.JPEG"), 3)
    numbered(top / "validation-segmentation" / DOG / os.fsdecode(b"\xff.png"), np.ones((SIDE, SIDE), int))
    source = ImageNetSSource(tmp_path)
    samples, skipped = source.samples()
    assert (f"{DOG}/\\udcff.JPEG", "the file's name is not UTF-8 text") in [
        (row.sample_id, row.reason) for row in skipped
    ]
    (top / "validation-segmentation" / str(samples[0].mask)).unlink()
    with pytest.raises(Unusable, match="the mask is broken"):
        source.read(samples[0])


def test_a_smaller_set_counts_its_own_classes_and_must_be_whole(tmp_path: Path) -> None:
    wnids = sorted(imagenet_s_ids())[:50]
    for place, wnid in enumerate(wnids, 1):
        save(tmp_path / "ImageNetS50" / "validation" / wnid / "a.JPEG", place)
        numbered(tmp_path / "ImageNetS50" / "validation-segmentation" / wnid / "a.png", np.where(mask(), place, 0))
    source = ImageNetSSource(tmp_path)
    assert all(source.read(sample)[1] is not None for sample in source.samples()[0])
    (tmp_path / "ImageNetS50" / "validation" / wnids[7] / "a.JPEG").unlink()
    (tmp_path / "ImageNetS50" / "validation" / wnids[7]).rmdir()
    with pytest.raises(UserError, match=r"expected 50 class folders in .*, got 49"):
        ImageNetSSource(tmp_path).samples()


def test_a_folder_without_masks_says_what_was_expected(tmp_path: Path) -> None:
    (tmp_path / "validation").mkdir()
    with pytest.raises(UserError, match="expected ImageNet-S with validation and validation-segmentation"):
        ImageNetSSource(tmp_path).samples()


def test_ximagenet_12_masks_are_objects_wherever_they_are_not_zero(tmp_path: Path) -> None:
    folder = ximagenet_12(tmp_path)
    source = open_source(folder / "image", folder / "masks")
    samples, _ = source.samples()
    assert len(samples) == 24
    for sample in samples:
        found = source.read(sample)[1]
        assert found is not None
        np.testing.assert_array_equal(found > 0, mask())


def test_photos_of_imagenet_s_lie_as_their_masks_do_whatever_exif_says(tmp_path: Path) -> None:
    folder = tmp_path / "ImageNetS919"
    stored = np.random.default_rng(0).integers(0, 255, (20, 30, 3), dtype=np.uint8)
    turned = Image.Exif()
    turned[0x0112] = 6  # a quarter turn
    photo = folder / "validation" / TENCH / "a.png"
    photo.parent.mkdir(parents=True)
    Image.fromarray(stored).save(photo, exif=turned)
    numbered(folder / "validation-segmentation" / TENCH / "a.png", np.full((20, 30), imagenet_s_ids()[TENCH]))
    source = open_source(f"imagenet-s:{tmp_path}", None)
    image, found = source.read(source.samples()[0][0])
    np.testing.assert_array_equal(image, stored)
    assert found is not None
    assert found.shape == (20, 30)
