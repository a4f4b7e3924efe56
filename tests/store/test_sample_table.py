"""Samples and texts in columns are what they were as objects."""

from __future__ import annotations

import hashlib
import pickle

import pytest

from counterfoil.store.packed_texts import CodedTexts, HexadecimalTexts, PackedTexts, pack_texts
from counterfoil.store.sample_table import SamplesById, SampleTable
from counterfoil.types import Sample

TEXTS = {
    "many words": [f"pläce-{number}" for number in range(40)],
    "few words": ["a", "b"] * 20,
    "digests": [hashlib.sha256(bytes([number])).hexdigest() for number in range(40)],
    "digests in capitals": [hashlib.sha256(bytes([number])).hexdigest().upper() for number in range(40)],
    "digests of another length": ["ab" * number for number in range(40)],
    "empty": [""] * 3,
    "lone surrogates": ["\ud800", "x"],
}


@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
def test_packed_texts_are_the_texts(texts: list[str]) -> None:
    packed = pack_texts(texts)
    assert list(packed) == texts == packed[:]
    assert [packed[place] for place in range(-len(texts), len(texts))] == texts * 2
    assert packed == texts
    assert packed != [*texts, "more"]
    with pytest.raises(IndexError):
        packed[len(texts)]
    content, ends = packed.joined()
    spans = zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    assert [content[start:stop].decode("utf-8", "surrogatepass") for start, stop in spans] == texts


def test_texts_are_packed_in_the_form_that_takes_least() -> None:
    kinds = [type(pack_texts(TEXTS[name])) for name in ("many words", "few words", "digests", "digests in capitals")]
    assert kinds == [PackedTexts, CodedTexts, HexadecimalTexts, PackedTexts]


def _samples(count: int, masked: bool = True) -> list[Sample]:
    return [
        Sample(
            f"{number % 3}/{number:03}.jpg", f"label-{number % 3}", f"{number % 3}/{number:03}.jpg",
            f"{number % 3}/{number:03}.png" if masked and number % 4 else None,
            hashlib.sha256(str(number).encode()).hexdigest(), "", "CC0" if number % 2 else "",
        )
        for number in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("masked", [True, False])
def test_a_table_of_samples_has_every_sample_as_it_was(masked: bool) -> None:
    samples = _samples(30, masked)
    for table in (SampleTable(samples), SampleTable.join([SampleTable(samples[:7]), SampleTable(samples[7:])])):
        assert list(table) == samples == [table[place] for place in range(30)]
        assert table[-1] == samples[-1]
        assert table[3:9] == tuple(samples[3:9])
        assert table == samples
        assert pickle.loads(pickle.dumps(table)) == table
        assert not table.has_doubles()
    renamed = table.with_labels({f"label-{place}": f"other-{place}" for place in range(3)})
    assert [sample.label for sample in renamed] == [sample.label.replace("label", "other") for sample in samples]


def test_samples_are_found_by_id_in_order_or_not() -> None:
    samples = _samples(30)
    ordered = SampleTable(samples).in_order()
    assert list(ordered) == sorted(samples, key=lambda sample: sample.id)
    for table in (ordered, SampleTable(samples)):
        by_id = table.by_id()
        assert {name: by_id[name] for name in by_id} == {sample.id: sample for sample in samples}
        assert "9/999.jpg" not in by_id
        assert "" not in by_id
    assert isinstance(ordered.by_id(), SamplesById)


def test_equal_digests_are_noticed() -> None:
    samples = _samples(5)
    assert SampleTable([*samples, samples[2]]).has_doubles()
