"""The index of an archive: the same as a plain dictionary of its files, in a fraction of the memory."""

from __future__ import annotations

import io
import os
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from archives import edit_archives
from counterfoil.labels.label_space import imagenet1k
from counterfoil.published.catalogue import open_archive
from counterfoil.sources.archive_index import ArchiveFile, build_index
from counterfoil.store.picture_collection import LabelledPictures, PicturesById

NAMES = ("a.jpg", "b.png", "Ä.jpg", os.fsdecode(b"\xff.jpg"), "z", "a", "-")
FOLDERS = ("", "a/", "a-b/", "a/b/", "a/b/c/", "ö/", "b/")


def entries(rng: np.random.Generator, many: int) -> Iterator[tuple[str, ArchiveFile]]:
    for number in range(many):
        path = str(rng.choice(FOLDERS)) + str(rng.choice(NAMES))
        yield path, ArchiveFile(number, 2 * number, 3 * number, number % 7, -(number % 3))


@pytest.mark.parametrize("seed", range(5))
def test_a_listing_says_what_a_dictionary_says(seed: int) -> None:
    found = list(entries(np.random.default_rng(seed), 60))
    plain, listing = dict(found), build_index(found)  # of two with one path the later counts
    assert dict(listing) == {path: entry.size for path, entry in plain.items()}
    assert {path: listing.entry(path) for path in plain} == plain
    assert [listing.path(at) for at in range(len(listing))] == list(listing)
    assert [listing.folders[row.folder] + row.name for row in listing.rows()] == list(listing)
    for path in ("", "a", "c/a.jpg", "a/b/d/", "a/b/c/zz", "z.jpg"):
        assert (path in listing) == (path in plain)
    assert list(build_index([])) == []


def test_a_listing_takes_the_order_of_its_files_from_nobody() -> None:
    found = list(dict(entries(np.random.default_rng(0), 200)).items())
    assert list(build_index(found)) == list(build_index(reversed(found)))


def test_pictures_are_the_same_one_by_one_in_parts_and_by_their_ids(tmp_path: Path) -> None:
    pictures = open_archive("imagenet-e", edit_archives.imagenet_e(tmp_path)).pictures
    told = [*map(repr, pictures)]  # an unknown share is NaN: equal to nothing
    assert [repr(pictures[place]) for place in range(len(pictures))] == told
    assert [repr(pictures[place - len(pictures)]) for place in range(len(pictures))] == told
    assert [*map(repr, pictures[5:40:3])] == told[5:40:3]
    with pytest.raises(IndexError):
        pictures[len(pictures)]
    by_id = PicturesById(pictures)
    assert [repr(by_id[stored.variant.id]) for stored in pictures] == told
    assert "nothing" not in by_id
    labels = {label: label.upper() for label in pictures.labels}
    shown = LabelledPictures(pictures, range(len(pictures)), labels)
    assert [stored.variant.label for stored in shown[3:9]] == [labels[e.variant.label] for e in pictures[3:9]]
    assert [*map(repr, LabelledPictures(pictures, [4, 2], labels))] == [repr(shown[4]), repr(shown[2])]


def test_the_index_of_an_archive_takes_some_hundred_bytes_a_picture(tmp_path: Path) -> None:
    wnids, photos = imagenet1k().labels[:10], 800
    with tarfile.open(tmp_path / "snow.tar", "w") as archive:
        for number in range(len(wnids) * photos):
            wnid = wnids[number // photos]
            archive.addfile(tarfile.TarInfo(f"snow/1/{wnid}/ILSVRC2012_val_{number:08d}.JPEG"), io.BytesIO())
    open_archive("imagenet-c", tmp_path / "snow.tar")  # what is loaded once is no part of it
    tracemalloc.start()
    opened = open_archive("imagenet-c", tmp_path / "snow.tar")
    held, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    pictures = len(opened.pictures)
    assert pictures == 8000
    assert held / pictures < 350  # 85 in columns, and here a sample each; as objects it was 1,300
    assert most / pictures < 600
