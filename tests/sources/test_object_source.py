"""Photos given as objects: every kind becomes the same source, and what cannot be used is said in one line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from counterfoil.contract_checks import check_source
from counterfoil.errors import UserError
from counterfoil.sources.source_loaders import as_source, open_source
from counterfoil.types import Source

CLASSES = ["lamp", "chair"]


def picture(shade: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """A grey picture with a bright object, and its mask."""
    image, mask = np.full((40, 50, 3), shade, np.uint8), np.zeros((40, 50), np.uint8)
    image[10:30, 15:35], mask[10:30, 15:35] = (220, 60, 30), 255
    return image, mask


PAIRS = [(picture(shade), label) for shade, label in ((20, 0), (60, 1), (100, 0))]
TRIPLES = [(image, CLASSES[label], mask) for (image, mask), label in PAIRS]


def read_all(source: Source) -> dict[str, tuple[str, bytes, bytes | None]]:
    """Label, pixels and mask of every photo, by id."""
    samples, _ = source.samples()
    pixels = {sample.id: source.read(sample) for sample in samples}
    return {
        sample.id: (sample.label, image.tobytes(), None if mask is None else mask.tobytes())
        for sample, (image, mask) in zip(samples, pixels.values(), strict=True)
    }


class Numbered:
    """A data set as torch's are: `classes`, and an item by its index."""

    classes = CLASSES

    def __init__(self, convert: Any = lambda image: image) -> None:
        self.convert = convert

    def __len__(self) -> int:
        return len(PAIRS)

    def __getitem__(self, place: int) -> tuple[Any, int, Any]:
        (image, mask), label = PAIRS[place]
        return self.convert(image), label, mask


def in_a_frame(folder: Path) -> Any:
    pandas = pytest.importorskip("pandas")
    rows = []
    for place, (image, label, mask) in enumerate(TRIPLES):
        paths = [folder / f"{place}.png", folder / f"{place}-mask.png"]
        for pixels, path in zip((image, mask), paths, strict=True):
            Image.fromarray(pixels).save(path)
        rows.append({"path": str(paths[0]), "label": label, "mask": str(paths[1])})
    return pandas.DataFrame(rows)


def hugging_face(_folder: Path) -> Any:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=CLASSES), "mask": datasets.Image()}
    )
    columns = {
        "image": [Image.fromarray(image) for (image, _), _ in PAIRS],
        "label": [label for _, label in PAIRS],
        "mask": [Image.fromarray(mask) for (_, mask), _ in PAIRS],
    }
    return datasets.Dataset.from_dict(columns, features=features)


KINDS = {
    "arrays": lambda _: TRIPLES,
    "a generator": lambda _: iter(TRIPLES),
    "Pillow pictures": lambda _: [(Image.fromarray(a), b, Image.fromarray(c)) for a, b, c in TRIPLES],
    "rows": lambda _: [{"image": a, "label": b, "mask": c} for a, b, c in TRIPLES],
    "floats": lambda _: [((a / 255).astype(np.float32), b, c > 0) for a, b, c in TRIPLES],
    "channels first": lambda _: [(a.transpose(2, 0, 1), b, c[None]) for a, b, c in TRIPLES],
    "a data set": lambda _: Numbered(),
    "a data set of Pillow pictures": lambda _: Numbered(Image.fromarray),
    "a data frame of paths": in_a_frame,
    "a data set of Hugging Face": hugging_face,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_object_gives_the_same_photos(kind: str, tmp_path: Path) -> None:
    source = as_source(KINDS[kind](tmp_path))
    assert read_all(source) == read_all(as_source(TRIPLES))
    check_source(source)


@pytest.mark.torch
def test_a_subset_of_a_torch_data_set_finds_the_class_names_of_the_whole() -> None:
    import torch

    tensors = Numbered(lambda image: torch.from_numpy(image).permute(2, 0, 1).float() / 255)
    source = as_source(torch.utils.data.Subset(tensors, [0, 1]))
    assert [sample.label for sample in source.samples()[0]] == ["chair", "lamp"]
    assert {row[1] for row in read_all(source).values()} == {picture(20)[0].tobytes(), picture(60)[0].tobytes()}


def test_the_digest_is_of_the_pixels_and_the_mask() -> None:
    (image, mask), _ = PAIRS[0]
    other = mask.copy()
    other[0, 0] = 255
    digests = [as_source([(image, "lamp", given)]).samples()[0][0].digest for given in (mask, mask.copy(), other, None)]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_one_bad_picture_among_good_ones_is_counted_with_its_reason() -> None:
    broken = [*TRIPLES, (np.zeros((5, 5, 7), np.uint8), "lamp", None), (None, "lamp"), (TRIPLES[0][0], " ")]
    samples, skipped = as_source(broken).samples()
    assert len(samples) == 3
    assert sorted(row.reason for row in skipped) == [
        "it has the shape (5, 5, 7), expected (height, width, 3) or (3, height, width)",
        "it is a NoneType, expected an array, a tensor, a Pillow picture or a path",
        "its label is empty",
    ]


def test_an_entry_that_is_no_picture_with_a_label_is_counted_with_its_reason() -> None:
    image = TRIPLES[0][0]
    given: list[Any] = [TRIPLES[0], None, (image,), 5, (image, "lamp", None, 1), (image, None), (image, float("nan"))]
    given.append((image, "lamp \ud800"))
    samples, skipped = as_source(given).samples()
    assert len(samples) == 1
    assert [(row.sample_id, row.reason) for row in skipped] == [
        ("picture 1", "it is NoneType, expected (image, label) or (image, label, mask)"),
        ("picture 2", "it is 1 value, expected (image, label) or (image, label, mask)"),
        ("picture 3", "it is int, expected (image, label) or (image, label, mask)"),
        ("picture 4", "it is 4 values, expected (image, label) or (image, label, mask)"),
        ("picture 5", "its label is empty"),
        ("picture 6", "its label is empty"),
        (r"lamp \ud800/7", "its label is no text in UTF-8"),
    ]


def test_labels_that_a_data_set_changes_are_its_own_and_need_names() -> None:
    with pytest.raises(UserError, match="expected class names for the numbers"):
        as_source(Renumbered())
    source = as_source(Renumbered(), labels=["chair", "lamp"])
    assert read_all(source).keys() == read_all(as_source(TRIPLES)).keys()


def test_a_data_frame_with_missing_labels_and_masks_loses_those_alone() -> None:
    pandas = pytest.importorskip("pandas")
    images = [image for image, _, _ in TRIPLES]
    labels = [pandas.array([0, None, 1], dtype="Int64"), [0, np.nan, 1], ["lamp", None, "chair"]]
    for column in labels:
        frame = pandas.DataFrame({"image": images, "label": column, "mask": [TRIPLES[0][2], None, pandas.NA]})
        samples, skipped = as_source(frame, labels=CLASSES).samples()
        assert [(sample.label, sample.mask is None) for sample in samples] == [("chair", True), ("lamp", False)]
        assert [row.reason for row in skipped] == ["its label is empty"]


def test_a_table_of_arrow_is_read_as_a_data_frame_is(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.Table.from_pandas(in_a_frame(tmp_path))
    assert read_all(as_source(table)) == read_all(as_source(TRIPLES))


class Jittered(Numbered):
    """A data set with a random transform."""

    def __getitem__(self, place: int) -> tuple[Any, int, Any]:
        image, label, mask = super().__getitem__(place)
        return np.roll(image, int(np.random.default_rng().integers(1, 40)), axis=1), label, mask


class Lengthless(Numbered):
    """A data set that cannot say its length."""

    def __len__(self) -> int:
        raise RuntimeError("not counted")


class Failing(Numbered):
    """A data set with a fault in its code."""

    def __getitem__(self, place: int) -> tuple[Any, int, Any]:
        if place:
            raise KeyError(place)
        return super().__getitem__(place)


class Batches:
    """As a loader of torch: batches of a data set."""

    dataset = Numbered()
    batch_sampler = None

    def __iter__(self) -> Any:
        return iter([])


class Stream:
    """As a data set of Hugging Face that is read as a stream: columns, and no length."""

    column_names = ("image", "label")

    def __iter__(self) -> Any:
        return iter([])


class Renumbered(Numbered):
    """A data set of torchvision's kind whose numbers are not those of its class names."""

    targets = (0, 1, 0)

    @staticmethod
    def target_transform(label: int) -> int:
        return 1 - label

    def __getitem__(self, place: int) -> tuple[Any, int, Any]:
        image, label, mask = super().__getitem__(place)
        return image, self.target_transform(label), mask


BAD: Sequence[tuple[str, Any, str]] = (
    ("nothing", [], "expected pictures, got an empty list"),
    ("bare pictures", [TRIPLES[0][0]], r"expected \(image, label\) or \(image, label, mask\)"),
    ("a number", 7, "expected images as a folder, a source, a data set"),
    ("numbers without names", [(TRIPLES[0][0], 3)], r"expected class names for the numbers .* give labels=\[...\]"),
    ("splits", {"train": TRIPLES, "test": TRIPLES}, r"expected one data set, got several by name \(train, test\)"),
    ("normalised", [(TRIPLES[0][0] / 60 - 2, "lamp")], "if a transform normalises them, give it to the model"),
    ("random", Jittered(), "expected the same picture each time .* take random transforms out"),
    ("a class", Numbered, "expected images as a folder, .* got the class Numbered"),
    ("a length that fails", Lengthless(), "expected the Lengthless to say its length, but it fails: RuntimeError"),
    ("an error later", Failing(), "expected to read picture 1 of the Failing of 3, but it fails: KeyError"),
    ("batches", Batches(), r"expected a data set, got Batches, which gives batches; give its .dataset"),
    ("a stream", Stream(), r"got Stream, which is read as a stream; .* list\(images.take\(100\)\)"),
)


@pytest.mark.parametrize(("_what", "images", "line"), BAD, ids=[row[0] for row in BAD])
def test_what_cannot_be_used_is_said_in_one_line(_what: str, images: Any, line: str) -> None:
    with pytest.raises(UserError, match=line) as error:
        as_source(images).samples()
    assert "\n" not in str(error.value)


def test_photos_given_as_objects_cannot_be_opened_by_their_address() -> None:
    source = as_source(TRIPLES)
    with pytest.raises(UserError, match="list of 3 pictures that were given to Python as objects"):
        open_source(source.images, None)
