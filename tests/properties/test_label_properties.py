"""Label spaces: every label and name of every benchmark resolves to itself, in any spelling."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterfoil.errors import UserError
from counterfoil.labels.benchmark_classes import SPACES
from counterfoil.labels.class_file import read_class_file
from counterfoil.labels.label_space import LabelSpace, custom_label_space, imagenet1k, match_imagenet_columns

spaces = st.sampled_from(sorted(SPACES)).map(lambda name: SPACES[name]())


def spelling(name: str) -> str:
    """What all spellings of a name have in common, written here a second time."""
    return "".join(" " if letter in "_-" else letter.lower() for letter in name)


@st.composite
def respelled(draw: st.DrawFn, name: str) -> str:
    """A name in other cases, with other separators and more space."""
    letters = []
    for letter in name:
        if letter in " _-":
            letters.append(draw(st.sampled_from([" ", "_", "-", "  ", " _"])))
        else:
            letters.append(draw(st.sampled_from([letter.upper(), letter.lower()])))
    return draw(st.sampled_from(["", " ", "_"])) + "".join(letters) + draw(st.sampled_from(["", " "]))


@given(spaces, st.data())
def test_a_label_means_itself_and_a_name_its_label_in_any_spelling(space: LabelSpace, data: st.DataObject) -> None:
    label, name = data.draw(st.sampled_from(list(zip(space.labels, space.names, strict=True))))
    assert space.resolve(label) == label
    assert space.name_of(label) == name
    text = data.draw(respelled(name))
    times = Counter(map(spelling, space.names))
    assert space.calls(text)
    if text in space:
        assert space.resolve(text) == text
    elif times[spelling(name)] == 1:
        assert space.resolve(text) == label
        assert space.lookup(f"{text}, some other word") == (label,)
    else:
        with pytest.raises(UserError, match=f"names several classes.*{label}"):
            space.resolve(text)


@given(spaces, st.text(max_size=12))
def test_a_text_resolves_to_one_label_of_the_space_or_is_refused(space: LabelSpace, text: str) -> None:
    try:
        label = space.resolve(text)
    except UserError:
        label = ""
    assert label in space.labels if label else len(space.lookup(text)) != 1 or "," in text


@given(spaces)
def test_every_class_of_a_model_counts_as_one_label_at_most(space: LabelSpace) -> None:
    times = Counter(name for label in space.labels for name in space.ids_of(label))
    assert max(times.values()) == 1
    assert all(name in imagenet1k() for name in times)


@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1))
def test_columns_in_any_order_keep_their_meaning_or_are_not_recognised(seed: int) -> None:
    known = imagenet1k()
    order = np.random.default_rng(seed).permutation(1000).tolist()
    texts = [f"{known.names[place]}, some synonym" for place in order]
    assert match_imagenet_columns(texts) in (None, tuple(known.labels[place] for place in order))
    candidates = zip(order, texts, strict=True)
    unambiguous = [known.labels[place] if len(known.lookup(text)) > 1 else text for place, text in candidates]
    assert match_imagenet_columns(unambiguous) == tuple(known.labels[place] for place in order)


labels = st.lists(st.text(min_size=1, max_size=8), unique=True, min_size=2, max_size=6)


@given(labels)
def test_labels_of_ones_own_mean_themselves_whatever_they_are(names: list[str]) -> None:
    space = custom_label_space("mine", names)
    assert [space.resolve(name) for name in names] == names
    assert [space.lookup(name) for name in names] == [(name,) for name in names]


@given(labels, st.data())
def test_classes_written_to_a_file_come_back(names: list[str], data: st.DataObject) -> None:
    ids = st.lists(st.integers(0, 99).map("unit {}".format), max_size=3)
    used: set[str] = set()
    entries: dict[str, dict[str, object]] = {}
    for name in names:
        own = [one for one in dict.fromkeys(data.draw(ids)) if one not in used]
        used.update(own)
        entries[name] = {"ids": own, **data.draw(st.sampled_from([{}, {"name": f"the {name}"}]))}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "classes.json"
        path.write_text(json.dumps(entries), encoding="utf-8")
        space = read_class_file(path)
    assert space.labels == tuple(names)
    assert space.names == tuple(entries[name].get("name", name) for name in names)
    assert [list(space.ids_of(name)) for name in names] == [entries[name]["ids"] for name in names]
