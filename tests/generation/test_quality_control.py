"""Quality control: hashes and distances against references, and what leaves a workspace's manifest."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import cv2
import numpy as np
import pytest
from click.testing import CliRunner, Result
from numpy.typing import NDArray
from PIL import Image
from scipy.fft import dctn
from skimage import data

from counterfoil.cli import commands
from counterfoil.edits.registry import edit_named
from counterfoil.errors import UserError
from counterfoil.generation.embedding import Embedding
from counterfoil.generation.generator import GenerationConfig, generate_pictures
from counterfoil.generation.near_duplicates import (
    count_differing_bits,
    find_blank_fault,
    find_near_duplicates,
    find_nearest_pictures,
    hash_perceptually,
)
from counterfoil.generation.prompt_plan import Selection
from counterfoil.store.prediction_tables import read_skipped
from counterfoil.store.workspace import Workspace
from counterfoil.types import Picture
from painted import drawn

PHOTOS = (data.astronaut(), data.coffee(), data.cat(), data.rocket())


def quality(*arguments: str) -> Result:
    return CliRunner().invoke(commands, ["quality", *arguments], catch_exceptions=False)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A painted workspace whose pictures of "sky" are black, and in which one picture repeats another."""
    chosen = Selection(("backpack", "umbrella"), values=("beach", "street", "striped", "sky"))
    generate_pictures(
        GenerationConfig(recipe="imagenet-d", painter="python:painted:words", selection=chosen), tmp_path / "painted"
    )
    return tmp_path / "painted"


def replaced(workspace: Path, level: str, label: str, image: NDArray[np.uint8]) -> str:
    """Put other pixels in a picture's place; gives back its id."""
    (stored,) = [
        one
        for one in Workspace(workspace).pictures
        if (one.variant.level, one.variant.label) == (level, label) and one.variant.sample_id == f"{label}/0"
    ]
    Image.fromarray(image).save(workspace / stored.file)
    return stored.variant.id


def picture_of(workspace: Path, level: str, label: str) -> NDArray[np.uint8]:
    found = Workspace(workspace)
    return next(found.read(one) for one in found.pictures if (one.variant.level, one.variant.label) == (level, label))


def test_the_hash_is_the_sign_of_low_frequencies() -> None:
    for photo in PHOTOS:
        gray = cv2.cvtColor(photo, cv2.COLOR_RGB2GRAY)
        small = cv2.resize(gray, (32, 32), interpolation=cv2.INTER_AREA).astype(float)
        low = dctn(small, norm="ortho")[:8, :8].ravel()
        assert np.array_equal(np.unpackbits(hash_perceptually(photo)).astype(bool), low > np.median(low[1:]))


def test_small_changes_turn_few_bits_and_other_photos_many() -> None:
    for photo in PHOTOS:
        changed = cv2.imdecode(cv2.imencode(".jpg", photo, [cv2.IMWRITE_JPEG_QUALITY, 40])[1], cv2.IMREAD_COLOR)
        smaller = np.asarray(
            cv2.resize(np.asarray(changed, np.uint8), (160, 120), interpolation=cv2.INTER_AREA), np.uint8
        )
        assert count_differing_bits(hash_perceptually(photo)[None], hash_perceptually(smaller))[0] <= 4
    hashes = np.stack([hash_perceptually(photo) for photo in PHOTOS])
    apart = [int(count_differing_bits(hashes[i : i + 1], hashes[j])[0]) for i in range(4) for j in range(i)]
    assert min(apart) > 16


def test_distances_count_differing_bits() -> None:
    rng = np.random.default_rng(0)
    hashes = rng.integers(0, 256, (50, 8), np.uint8)
    expected = [bin(int.from_bytes(row.tobytes(), "big") ^ int.from_bytes(hashes[3].tobytes(), "big")).count("1")
                for row in hashes]  # fmt: skip
    assert count_differing_bits(hashes, hashes[3]).tolist() == expected


def test_of_near_duplicates_the_first_stays_and_edits_of_one_photo_are_not_compared() -> None:
    base = np.zeros((5, 8), np.uint8)
    base[1, 0] = 0b1  # one bit from the first
    base[2, 0] = 0b111111  # six bits from the first, five from the second, which does not stay
    base[3] = 255
    base[4] = 255
    assert find_near_duplicates(base, list("abcde"), 4) == {1: 0, 4: 3}
    assert find_near_duplicates(base, ["a", "a", "c", "d", "e"], 4) == {4: 3}
    assert find_near_duplicates(base, list("abcde"), 6) == {1: 0, 2: 0, 4: 3}


def fault(image: NDArray[np.uint8]) -> str:
    """Kind and reason in one line, empty where the picture shows something."""
    return ": ".join(find_blank_fault(image) or ())


def noise(deviation: float) -> NDArray[np.uint8]:
    values = np.random.default_rng(0).normal(128, deviation, (64, 64, 3))
    return np.clip(values, 0, 255).astype(np.uint8)


def test_pictures_that_show_nothing_are_told_from_those_that_do() -> None:
    black, grey = np.zeros((20, 20, 3), np.uint8), np.full((20, 20, 3), 130, np.uint8)
    assert fault(black).startswith("blank: black")
    assert fault(grey) == fault(grey[:1, :1]) == "blank: of one colour"
    ramp = np.broadcast_to(np.arange(120, 140, dtype=np.uint8)[:, None, None], (20, 20, 3))
    assert fault(ramp) == ""
    assert fault(PHOTOS[0][:1, :300]) == "blank: of 300 x 1 pixels, 8 along a side are needed"
    assert all(fault(photo) == "" for photo in PHOTOS)


def test_noise_alone_is_told_from_rough_ground_and_from_regular_patterns() -> None:
    for deviation in (3, 40, 90):
        assert fault(noise(deviation)).startswith("noise: ")
    assert fault(np.repeat(noise(60)[..., :1], 3, axis=2)).startswith("noise: ")
    squares = np.indices((64, 64)).sum(axis=0)[..., None] % 2 * np.full(3, 255)
    red_and_green = np.where(squares > 0, (150, 0, 0), (0, 76, 0))  # of one brightness
    rough = [np.dstack([texture] * 3)[:224, :224] for texture in (data.gravel(), data.grass())]
    for shown in (squares.astype(np.uint8), red_and_green.astype(np.uint8), *rough):
        assert fault(shown) == ""


@pytest.mark.parametrize("kind", ["gaussian", "shot", "impulse"])
def test_a_photo_under_the_heaviest_of_imagenet_cs_noise_is_no_noise(kind: str) -> None:
    pale = (PHOTOS[0] // 2 + 120).astype(np.uint8)
    edit = edit_named(f"corruption-{kind}-noise", {"severity": 5})
    made = edit(Picture(pale, np.zeros(pale.shape[:2], np.uint8)), np.random.default_rng(0))
    assert fault(made.image) == ""


def test_the_nearest_is_the_one_with_the_largest_cosine() -> None:
    rng = np.random.default_rng(1)
    rows, references = (rng.normal(size=(n, 6)) for n in (1100, 7))
    rows, references = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (rows, references))
    found = find_nearest_pictures(rows.astype(np.float32), references.astype(np.float32))
    for place in (0, 500, 1099):
        cosines = references @ rows[place]
        assert found[place][0] == int(cosines.argmax())
        assert found[place][1] == pytest.approx(cosines.max(), abs=1e-5)


def test_blank_and_repeated_pictures_leave_the_manifest_with_their_reasons(workspace: Path) -> None:
    street = picture_of(workspace, "street", "backpack")  # the first of the recipe's list
    repeated = replaced(workspace, "beach", "backpack", np.clip(street.astype(int) + 3, 0, 255).astype(np.uint8))
    replaced(workspace, "beach", "umbrella", street)  # the same scene of another class is no repetition
    before = Workspace(workspace).pictures
    said = quality(str(workspace))
    assert "10 pictures checked; removed: 2 blank, 1 near-duplicate" in said.output
    after = Workspace(workspace)
    gone = {one.variant.id for one in before} - {one.variant.id for one in after.pictures}
    assert repeated in gone
    assert {one.variant.level for one in before if one.variant.id in gone} == {"beach", "sky"}
    reasons = [row.reason for row in read_skipped(workspace)]
    assert len(reasons) == 3
    assert sum("black" in reason for reason in reasons) == 2
    assert any("a near-duplicate of" in reason for reason in reasons)
    assert all((workspace / stored.file).is_file() for stored in before)
    page = (workspace / "quality" / "index.html").read_text()
    assert page.count("<figure ") == 3
    assert "--paper: #fcfbf9" in page  # the look of the report
    assert re.search(r"<strong>backpack</strong> <span>prompt-background: beach</span>", page)
    assert "near-duplicate of the picture beside it" in page
    assert repeated not in page
    assert "http" not in page.replace("http-equiv", "")


def encoded(image: Image.Image, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def test_files_cut_short_fall_and_odd_kinds_of_picture_stay(workspace: Path) -> None:
    photo = Image.fromarray(PHOTOS[0])
    whole, jpeg = encoded(photo), encoded(photo, "JPEG")
    deep = Image.fromarray(PHOTOS[2][..., 0].astype(np.uint16) * 257)
    files = (
        whole[: len(whole) // 2],
        whole[:-10],
        jpeg[: len(jpeg) // 2],
        b"",
        encoded(deep),
        encoded(photo.quantize(64)),
    )
    made = [one for one in Workspace(workspace).pictures if one.variant.level in ("beach", "street", "striped")]
    for stored, content in zip(made, files, strict=True):
        (workspace / stored.file).write_bytes(content)
    assert "removed: 4 unreadable, 2 blank" in quality(str(workspace)).output
    left = {one.variant.id for one in Workspace(workspace).pictures}
    assert [one.variant.id in left for one in made] == [False] * 4 + [True] * 2


def test_a_second_look_starts_from_everything(workspace: Path) -> None:
    everything = Workspace(workspace).digest
    quality(str(workspace))
    once = Workspace(workspace).digest
    quality(str(workspace))
    assert Workspace(workspace).digest == once != everything
    assert len(read_skipped(workspace)) == 2
    said = quality(str(workspace), "--keep-all")
    assert "found: 2 blank" in said.output
    assert Workspace(workspace).digest == everything
    assert read_skipped(workspace) == []


def test_painting_again_keeps_what_quality_control_decided(workspace: Path) -> None:
    quality(str(workspace))
    before = Workspace(workspace).digest
    chosen = Selection(("backpack", "umbrella"), values=("beach", "street", "striped", "sky"))
    generate_pictures(
        GenerationConfig(recipe="imagenet-d", painter="python:painted:words", selection=chosen), workspace
    )
    assert Workspace(workspace).digest == before
    assert sum("black" in row.reason for row in read_skipped(workspace)) == 2


def test_pictures_whose_original_shows_nothing_go_with_it(workspace: Path) -> None:
    replaced(workspace, "none", "umbrella", np.full((48, 48, 3), 90, np.uint8))
    said = quality(str(workspace))
    assert "3 no counterpart" in said.output
    assert {one.variant.label for one in Workspace(workspace).pictures} == {"backpack"}


def test_a_copy_of_a_reference_picture_is_shown_beside_it(workspace: Path, tmp_path: Path) -> None:
    reference = tmp_path / "reference"
    reference.mkdir()
    for name, photo in zip(("astronaut", "coffee", "cat"), PHOTOS, strict=False):
        Image.fromarray(photo).save(reference / f"{name}.png")
    copied = replaced(workspace, "striped", "umbrella", np.asarray(Image.fromarray(PHOTOS[1]).resize((300, 200))))
    said = quality(str(workspace), "--reference", str(reference))
    assert said.exit_code == 0
    found = json.loads((workspace / "quality" / "nearest.json").read_text())
    assert found[0]["variant_id"] == copied
    assert found[0]["reference"] == "coffee.png"
    assert found[0]["cosine"] > 0.9 > found[1]["cosine"]
    assert "coffee.png" in (workspace / "quality" / "index.html").read_text()
    assert f": {workspace / found[0]['file']} and {reference / 'coffee.png'}" in said.output
    assert (workspace / found[0]["file"]).is_file()


def test_a_broken_picture_is_told_and_has_no_nearest(workspace: Path, tmp_path: Path) -> None:
    broken = replaced(workspace, "beach", "umbrella", PHOTOS[0])
    (file,) = [one.file for one in Workspace(workspace).pictures if one.variant.id == broken]
    (workspace / file).write_bytes(b"nothing")
    (tmp_path / "reference").mkdir()
    Image.fromarray(PHOTOS[0]).save(tmp_path / "reference" / "astronaut.png")
    said = quality(str(workspace), "--keep-all", "--reference", str(tmp_path / "reference"))
    assert "1 unreadable" in said.output
    assert broken not in (workspace / "quality" / "nearest.json").read_text()
    with pytest.raises(UserError, match=r"is no picture; `counterfoil pictures quality .*` takes such pictures out"):
        CliRunner().invoke(commands, ["analyse", "prompts", str(workspace)], catch_exceptions=False)


def test_a_damaged_record_of_quality_control_is_said(workspace: Path) -> None:
    quality(str(workspace))
    (workspace / "quality" / "quality.json").write_text("{")
    chosen = Selection(("backpack", "umbrella"), values=("beach", "street", "striped", "sky"))
    with pytest.raises(UserError, match="which is damaged: remove it"):
        generate_pictures(
            GenerationConfig(recipe="imagenet-d", painter="python:painted:words", selection=chosen), workspace
        )


def test_the_embedding_is_what_the_last_layer_of_the_network_sees(tmp_path: Path) -> None:
    import onnx

    from counterfoil.assets.cache import cache_folder, fetch_asset
    from counterfoil.assets.embedded_networks import NETWORKS, build_onnx_file
    from counterfoil.assets.onnx_session import open_onnx_session
    from counterfoil.models.preprocessing import prepare_input as prepared

    for name in NETWORKS:
        model = onnx.load(build_onnx_file(name, fetch_asset, cache_folder()))
        (pooled,) = [node for node in model.graph.node if node.op_type == "GlobalAveragePool"][-1].output
        model.graph.output.append(onnx.helper.make_tensor_value_info(pooled, onnx.TensorProto.FLOAT, None))
        given = prepared(PHOTOS[0], NETWORKS[name].preprocessing)[None]
        values = open_onnx_session(model.SerializeToString()).run([pooled], {"pictures": given})[0].ravel()
        found = Embedding(name)(PHOTOS[0])
        if name != "pp-lcnetv2":  # it has one more layer between pooling and its last product
            assert found == pytest.approx(values / np.linalg.norm(values), abs=1e-5)
        assert np.linalg.norm(found) == pytest.approx(1, abs=1e-5)


def test_bad_input_is_said(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="expected a distance of 0 to 63 bits, got 64"):
        quality(str(workspace), "--distance", "64")
    with pytest.raises(UserError, match="expected a workspace with pictures"):
        quality(str(tmp_path))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="found none"):
        quality(str(workspace), "--reference", str(tmp_path / "empty"))
    (tmp_path / "empty" / "broken.png").write_bytes(b"nothing")
    before = Workspace(workspace).digest
    for reference in (tmp_path / "empty", tmp_path / "nowhere"):
        with pytest.raises(UserError, match="expected pictures in the reference folder"):
            quality(str(workspace), "--reference", str(reference))
    assert Workspace(workspace).digest == before
    assert not (workspace / "quality").exists()


def test_drawn_pictures_are_no_near_duplicates() -> None:
    hashes = np.stack([hash_perceptually(drawn(str(number), (48, 48))) for number in range(200)])
    assert find_near_duplicates(hashes, [str(number) for number in range(200)], 4) == {}
