"""Folders of photos and masks, with all that users put into them."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from skimage import data

from counterfoil.errors import Unusable, UserError
from counterfoil.sources.folder import FolderSource
from counterfoil.sources.pixels import read_mask, read_photo
from counterfoil.sources.source_loaders import open_source

CAT = data.chelsea()  # (300, 451, 3)


def saved(path: Path, image: Image.Image | NDArray[np.generic], **options: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = image if isinstance(image, Image.Image) else Image.fromarray(image)
    picture.save(path, **options)  # type: ignore[arg-type]
    return path


def oval(height: int = 300, width: int = 451) -> NDArray[np.uint8]:
    y, x = np.mgrid[:height, :width]
    inside = ((y - height / 2) / (height / 3)) ** 2 + ((x - width / 2) / (width / 4)) ** 2 < 1
    return np.where(inside, 255, 0).astype(np.uint8)


def test_a_plain_jpeg_gives_the_pixels_that_pillow_gives(tmp_path: Path) -> None:
    path = saved(tmp_path / "cat.jpg", CAT, quality=90)
    difference = np.abs(read_photo(path).astype(int) - np.asarray(Image.open(path)).astype(int))
    assert difference.max() <= 1


@pytest.mark.parametrize(("orientation", "turns"), [(3, 2), (6, 3), (8, 1)])
def test_exif_orientation_is_honoured(tmp_path: Path, orientation: int, turns: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = saved(tmp_path / "cat.jpg", CAT, exif=exif, quality=95)
    upright = read_photo(path).astype(int)
    assert np.abs(upright - np.rot90(CAT, turns).astype(int)).mean() < 4


def test_grayscale_becomes_three_equal_channels(tmp_path: Path) -> None:
    image = read_photo(saved(tmp_path / "grey.png", CAT[:, :, 0]))
    assert image.shape == (300, 451, 3)
    np.testing.assert_array_equal(image[:, :, 2], CAT[:, :, 0])


def test_transparent_places_become_white(tmp_path: Path) -> None:
    image = read_photo(saved(tmp_path / "cut.png", np.dstack([CAT, oval()])))
    np.testing.assert_array_equal(image[0, 0], [255, 255, 255])
    np.testing.assert_array_equal(image[150, 225], CAT[150, 225])


def test_cmyk_sixteen_bit_palette_and_webp_are_read(tmp_path: Path) -> None:
    cmyk = read_photo(saved(tmp_path / "cmyk.jpg", Image.fromarray(CAT).convert("CMYK"), quality=95))
    deep = read_photo(saved(tmp_path / "deep.png", CAT[:, :, 1].astype(np.uint16) * 257))
    palette = read_photo(saved(tmp_path / "palette.png", Image.fromarray(CAT).convert("P")))
    webp = read_photo(saved(tmp_path / "cat.webp", CAT, lossless=True))
    assert np.abs(cmyk.astype(int) - CAT).mean() < 4
    np.testing.assert_array_equal(deep[:, :, 0], CAT[:, :, 1])
    assert palette.shape == CAT.shape
    np.testing.assert_array_equal(webp, CAT)


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp"])
def test_a_truncated_picture_is_unusable(tmp_path: Path, suffix: str) -> None:
    path = saved(tmp_path / f"cat{suffix}", CAT)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(Unusable):
        read_photo(path)


def test_a_decompression_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 1000)), (b"IEND", b"")]
    file = io.BytesIO(b"\x89PNG\r\n\x1a\n")
    file.seek(0, io.SEEK_END)
    for name, body in chunks:
        file.write(struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)))
    (tmp_path / "bomb.png").write_bytes(file.getvalue())
    with pytest.raises(Unusable):
        read_photo(tmp_path / "bomb.png")


def test_text_named_as_a_picture_is_unusable(tmp_path: Path) -> None:
    (tmp_path / "no.jpg").write_text("<html>not found</html>")
    with pytest.raises(Unusable, match="not a JPEG, PNG or WebP"):
        read_photo(tmp_path / "no.jpg")


def test_any_nonzero_label_colour_or_alpha_is_object(tmp_path: Path) -> None:
    hard = oval()
    red = np.zeros((300, 451, 3), np.uint8)
    red[hard > 0] = (128, 0, 0)
    forms: dict[str, NDArray[np.generic]] = {
        "labels": np.where(hard > 0, 7, 0).astype(np.uint8),
        "red": red,
        "rgba": np.dstack([CAT, hard]),
        "sixteen": (hard.astype(np.uint16) * 257),
        "bits": hard > 0,
    }
    for name, form in forms.items():
        np.testing.assert_array_equal(read_mask(saved(tmp_path / f"{name}.png", form)), hard, err_msg=name)


def test_graded_alpha_and_trimaps_stay_as_they_are(tmp_path: Path) -> None:
    graded = np.tile(np.linspace(0, 255, 451).astype(np.uint8), (300, 1))
    trimap = oval()
    trimap[:, 200:210] = 128
    np.testing.assert_array_equal(read_mask(saved(tmp_path / "graded.png", graded)), graded)
    np.testing.assert_array_equal(read_mask(saved(tmp_path / "trimap.png", trimap)), trimap)


def test_a_folder_gives_its_samples_in_order_and_counts_the_rest(tmp_path: Path) -> None:
    images, masks = tmp_path / "images", tmp_path / "masks"
    for label, name in [("tabby", "b.jpg"), ("tabby", "a.png"), ("espresso", "c.webp")]:
        saved(images / label / name, np.roll(CAT, len(label) + ord(name[0]), axis=1))
        saved(masks / label / f"{Path(name).stem}.png", oval())
    saved(images / "tabby" / "copy.jpg", CAT)
    saved(images / "tabby" / "copy-again.jpg", CAT)
    saved(masks / "tabby" / "copy.png", oval())
    saved(masks / "tabby" / "copy-again.png", oval())
    saved(images / "tabby" / "nomask.jpg", CAT)
    saved(images / "loose.jpg", CAT)
    (images / "tabby" / "notes.txt").write_text("x")
    samples, skipped = FolderSource(images, masks).samples()
    names = ["espresso/c.webp", "tabby/a.png", "tabby/b.jpg", "tabby/copy-again.jpg"]
    assert [sample.id for sample in samples] == names
    reasons = {row.sample_id: row.reason for row in skipped}
    assert reasons == {
        "loose.jpg": "the picture is in no class folder",
        "tabby/notes.txt": "the file is not a JPEG, PNG or WebP picture",
        "tabby/nomask.jpg": "there is no mask tabby/nomask.png",
        "tabby/copy.jpg": "the same photo as tabby/copy-again.jpg",
    }


def test_a_mask_of_another_size_is_unusable(tmp_path: Path) -> None:
    saved(tmp_path / "images" / "tabby" / "a.png", CAT)
    saved(tmp_path / "masks" / "tabby" / "a.png", oval(200, 200))
    source = FolderSource(tmp_path / "images", tmp_path / "masks")
    samples, _ = source.samples()
    with pytest.raises(Unusable, match="the mask is 200 x 200 pixels, the photo 451 x 300"):
        source.read(samples[0])


@pytest.mark.parametrize("make", ["nothing", "empty", "loose"])
def test_a_folder_without_class_folders_says_what_was_expected(tmp_path: Path, make: str) -> None:
    folder = tmp_path / "images"
    if make != "nothing":
        folder.mkdir()
    if make == "loose":
        saved(folder / "a.jpg", CAT)
    with pytest.raises(UserError, match="expected"):
        FolderSource(folder).samples()


@pytest.mark.parametrize("images", ["demo:", "imagenet-s:photos"])
def test_masks_beside_photos_that_bring_their_own_are_refused(images: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"expected no masks beside .*, which brings its own, got '.*'; leave them out"):
        open_source(images, tmp_path)
