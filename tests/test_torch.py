"""`Edited`: the copies depend on content, seed and epoch alone, refusals are counted, a DataLoader takes it."""

from __future__ import annotations

import doctest
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import counterfoil as cf
import counterfoil.torch
from counterfoil.errors import UserError
from counterfoil.torch import Edited

LABELS = ["red", "blue"]
COLOURS = ((200, 40, 40), (40, 40, 200))


def make_photos(count: int = 12, side: int = 96) -> list[tuple[Any, int, Any]]:
    """Coloured boxes before grey noise, with masks; the labels are numbers."""
    rng, photos = np.random.default_rng(7), []
    for place in range(count):
        image = rng.integers(80, 120, (side, side, 3), dtype=np.uint8)
        mask = np.zeros((side, side), np.uint8)
        left, top = rng.integers(side // 8, side // 3, 2)
        box = slice(top, top + side // 3), slice(left, left + 3 * side // 8)
        image[box], mask[box] = COLOURS[place % 2], 255
        photos.append((image, place % 2, mask))
    return photos


def pixels(copies: Any) -> list[NDArray[np.uint8]]:
    return [np.asarray(picture) for picture, _ in (copies[place] for place in range(len(copies)))]


def equal(first: list[NDArray[np.uint8]], second: list[NDArray[np.uint8]]) -> list[bool]:
    return [np.array_equal(one, other) for one, other in zip(first, second, strict=True)]


def test_every_picture_is_edited_and_keeps_its_label() -> None:
    photos = make_photos()
    copies = Edited(photos, "object-grayscale", labels=LABELS, unedited=0)
    assert not any(equal(pixels(copies), [image for image, _, _ in photos]))
    assert [label for _, label in copies] == [label for _, label, _ in photos]
    assert copies.counts == (24, 0, 0)  # read twice


def test_the_share_of_unedited_pictures_is_left_as_it_was() -> None:
    photos = make_photos(60)
    copies = Edited(photos, "object-grayscale", labels=LABELS, unedited=0.5)
    kept = equal(pixels(copies), [image for image, _, _ in photos])
    assert 18 <= sum(kept) <= 42  # four standard deviations around 30
    assert copies.counts == (60 - sum(kept), sum(kept), 0)


def test_copies_depend_on_content_seed_and_epoch_and_not_on_the_order() -> None:
    photos = make_photos(6, side=64)
    edits = ["object-hue", "background-swap", cf.edits.ObjectBlur]
    copies = Edited(photos, edits, labels=LABELS, unedited=0.2)
    first = pixels(copies)
    assert all(equal(pixels(Edited(photos[::-1], edits, labels=LABELS, unedited=0.2))[::-1], first))
    assert not all(equal(pixels(Edited(photos, edits, labels=LABELS, unedited=0.2, seed=1)), first))
    copies.set_epoch(1)
    assert not all(equal(pixels(copies), first))
    copies.set_epoch(0)
    assert all(equal(pixels(copies), first))


def test_a_refused_edit_gives_the_unedited_picture_and_is_counted() -> None:
    photos = make_photos(6)

    def refuse_blue(image: Any, mask: Any, rng: np.random.Generator) -> Any:
        if image[mask == 255][0, 2] > 100:
            raise cf.Unusable("it is blue")
        return 255 - image

    copies = Edited(photos, refuse_blue, labels=LABELS, unedited=0)
    assert equal(pixels(copies), [image for image, _, _ in photos]) == [False, True] * 3
    assert copies.counts == (3, 0, 3)


def test_each_copy_says_which_edit_was_drawn() -> None:
    copies = Edited(make_photos(), ["object-blur", "object-hue"], labels=LABELS, unedited=0.5)
    drawn = [copies.draw(place) for place in range(len(copies))]
    assert {copy.kind for copy in drawn} <= {"edited", "unedited", "refused"}
    assert sum(copy.kind == "edited" for copy in drawn) == copies.counts.edited > 0
    for place, copy in enumerate(drawn):
        assert (copy.edit in ("object-blur", "object-hue")) == (copy.kind != "unedited")
        assert np.array_equal(np.asarray(copies[place][0]), copy.image)
        assert copy.label == copies[place][1]
    with pytest.raises(IndexError):
        copies.draw(len(copies))


def test_a_picture_that_stands_twice_is_given_each_time() -> None:
    photos = make_photos(4)
    copies = Edited([*photos, photos[0]], "object-grayscale", labels=LABELS, unedited=0)
    assert [label for _, label in copies] == [0, 1, 0, 1, 0]
    assert sum(copies.counts) == 5


def test_edited_and_unedited_pictures_have_one_size() -> None:
    photos = make_photos(4, side=500)
    copies = Edited(photos, "object-grayscale", labels=LABELS, unedited=0.5)
    assert {picture.size for picture, _ in copies} == {(384, 384)}
    assert copies.counts.edited
    assert copies.counts.unedited


def test_a_copy_by_pickle_draws_the_same_pictures_and_counts_for_itself() -> None:
    copies = Edited(make_photos(4), "object-hue", labels=LABELS, unedited=0)
    copies.set_epoch(3)
    again = pickle.loads(pickle.dumps(copies))
    assert all(equal(pixels(again), pixels(copies)))
    _ = again[0]
    assert (again.counts.edited, copies.counts.edited) == (5, 4)


def test_copies_in_a_folder_are_made_once_and_shown_in_turn(tmp_path: Path) -> None:
    photos, edits = make_photos(6), ["object-hue", "object-blur"]
    fresh = Edited(photos, edits, labels=LABELS, unedited=0.3)
    kept = Edited(photos, edits, labels=LABELS, unedited=0.3, folder=tmp_path, copies=2)
    epochs = []
    for epoch in range(2):
        fresh.set_epoch(epoch)
        kept.set_epoch(epoch)
        epochs.append(pixels(kept))
        assert all(equal(epochs[-1], pixels(fresh)))  # the copies that would be drawn without a folder
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")}
    assert len(written) == 2 * 2 * len(photos)
    later = Edited(photos, edits, labels=LABELS, unedited=0.3, folder=str(tmp_path), copies=2)
    for epoch in range(4):
        later.set_epoch(epoch)
        assert all(equal(pixels(later), epochs[epoch % 2]))
        assert [label for _, label in later] == [label for _, label, _ in photos]
        assert [later.draw(place).edit for place in range(6)] == [kept.files(place)[epoch % 2].record.edit
                                                                  for place in range(6)]  # fmt: skip
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")} == written
    other = Edited(photos, edits, labels=LABELS, unedited=0.3, seed=1, folder=tmp_path, copies=2)
    assert not any(file.is_there for place in range(6) for file in other.files(place))


@pytest.mark.parametrize("workers", [1, 4])  # threads, and processes
def test_all_copies_are_made_beforehand_with_the_same_pixels_by_any_number_of_workers(
    tmp_path: Path, workers: int
) -> None:
    photos = make_photos(5)
    copies = Edited(photos, ["object-hue", "background-swap"], labels=LABELS, unedited=0.3, folder=tmp_path, copies=2,
                    transform=lambda picture: np.asarray(picture).copy())  # fmt: skip
    counts = copies.make_copies(workers)
    assert sum(counts) == 10
    assert counts.edited > 0
    written = {path: path.read_bytes() for path in tmp_path.rglob("*.bmp")}
    assert len(written) == 10
    alone = Edited(photos, ["object-hue", "background-swap"], labels=LABELS, unedited=0.3)
    for epoch in range(2):
        copies.set_epoch(epoch)
        alone.set_epoch(epoch)
        assert all(equal(pixels(copies), pixels(alone)))
    assert copies.make_copies(workers) == counts
    next(iter(written)).unlink()
    assert copies.make_copies(workers) == counts
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.bmp")} == written


def test_a_folder_whose_files_are_damaged_says_which(tmp_path: Path) -> None:
    copies = Edited(make_photos(3), "object-hue", labels=LABELS, unedited=0, folder=tmp_path, copies=1)
    copies.make_copies(1)
    (picture,) = (file.path for file in copies.files(0))
    picture.write_bytes(picture.read_bytes()[:500])
    with pytest.raises(UserError, match=f"{picture.name}, which is damaged.*remove it"):
        copies[0]
    picture.with_suffix(".json").unlink()
    with pytest.raises(UserError, match="half is missing; remove it"):
        copies[0]
    with pytest.raises(UserError, match=r"give Edited\(\.\.\., folder=\.\.\.\)"):
        Edited(make_photos(3), "object-hue", labels=LABELS).make_copies()


def test_what_cannot_be_used_is_said_in_one_line() -> None:
    photos = make_photos(4)
    with pytest.raises(UserError, match="share of unedited pictures from 0 to 1, got 2"):
        Edited(photos, "size", labels=LABELS, unedited=2)
    with pytest.raises(UserError, match="at least 1 copy of each picture, got 0"):
        Edited(photos, "size", labels=LABELS, folder="copies", copies=0)
    with pytest.raises(UserError, match="read by index"):
        Edited(iter(photos), "size", labels=LABELS)
    with pytest.raises(UserError, match="did you mean"):
        Edited(photos, "object-hu", labels=LABELS)
    with pytest.raises(UserError, match="at least one edit"):
        Edited(photos, [], labels=LABELS)
    with pytest.raises(IndexError, match="below 4, got 4"):
        Edited(photos, "object-hue", labels=LABELS)[4]


def test_the_example_of_the_class_runs() -> None:
    result = doctest.testmod(counterfoil.torch)
    assert (result.attempted > 0, result.failed) == (True, 0)


def test_torch_is_not_imported() -> None:
    code = "import sys, counterfoil.torch; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.torch
@pytest.mark.parametrize("persistent", [False, True])
def test_two_workers_give_the_same_pictures_as_none_in_every_epoch(persistent: bool) -> None:
    torch = pytest.importorskip("torch")
    photos, edits = make_photos(), ["object-hue", "object-blur"]
    make: dict[str, Any] = {
        "transform": lambda picture: torch.from_numpy(np.array(picture)),
        "labels": LABELS,
        "unedited": 0.2,
    }
    alone, copies = Edited(photos, edits, **make), Edited(photos, edits, **make)
    _ = copies[0]  # used before the workers begin
    batches = torch.utils.data.DataLoader(copies, batch_size=4, num_workers=2, persistent_workers=persistent)
    for epoch in range(2):
        alone.set_epoch(epoch)
        copies.set_epoch(epoch)
        given = list(batches)
        expected = [alone[place] for place in range(len(alone))]
        assert torch.equal(torch.cat([images for images, _ in given]), torch.stack([image for image, _ in expected]))
        assert torch.cat([labels for _, labels in given]).tolist() == [label for _, label in expected]
    assert sum(copies.counts) == 2 * len(photos) + 1
