"""How a free answer is read: names, synonyms, nested names, refusals."""

from __future__ import annotations

import csv
import re
from importlib import resources
from itertools import permutations
from pathlib import Path

import pytest

from counterfoil.errors import UserError
from counterfoil.labels.benchmark_classes import imagenet_d
from counterfoil.models.model_options import format_class_name
from counterfoil.models.two_choice_question import Vocabulary, load_published_synonyms, read_synonyms
from counterfoil.models.vlm_answer import ParsedAnswer, find_named_choices, parse_answer

# Every class of ImageNet-D whose wording holds a wording of another class.
NESTED = {
    ("can_opener", "pen"), ("letter_opener", "pen"), ("soap_dispenser", "pen"), ("laptop_open", "pen"),
    ("drying_rack_for_plates", "plate"), ("pillow", "pill_bottle"), ("weight_scale", "weight_exercise"),
    ("wheel", "bicycle"),
}  # fmt: skip


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    space = imagenet_d()
    return Vocabulary({label: space.name_of(label) for label in space.labels}, load_published_synonyms())


def table() -> list[dict[str, str]]:
    text = resources.files("counterfoil.models").joinpath("synonyms.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def reference(answer: str, truth: frozenset[str], distractor: frozenset[str]) -> set[int]:
    """Another way to the same: one scan from the left that prefers the longest wording at each place."""
    wordings = sorted(truth | distractor, key=len, reverse=True)
    text = answer.lower().replace("-", " ")
    hits = set(re.findall("|".join(map(re.escape, wordings)), text))
    return {place for place, accepted in enumerate((truth, distractor)) if hits & accepted}


@pytest.mark.parametrize(
    ("category", "name"),
    [
        ("alarm_clock", "alarm clock"),
        ("t-shirt", "t shirt"),
        ("coffee/french press", "coffee or french press"),
        ("mixing/salad_bowl", "mixing or salad bowl"),
        ("nail_(fastener)", "nail (fastener)"),
        ("TV", "tv"),
    ],
)
def test_a_category_is_named_as_in_the_published_prompts(category: str, name: str) -> None:
    assert format_class_name(category) == name


def test_every_published_synonym_belongs_to_a_class_of_imagenet_d(vocabulary: Vocabulary) -> None:
    names = {vocabulary.called(label) for label in imagenet_d().labels}
    assert len(names) == 113
    assert len(table()) == 32
    assert {row["category"] for row in table()} <= names


def test_every_wording_of_every_class_beats_every_distractor(vocabulary: Vocabulary) -> None:
    pairs = list(permutations(imagenet_d().labels, 2))
    asked = 0
    for truth, distractor in pairs:
        choices = [vocabulary.accepted(truth), vocabulary.accepted(distractor)]
        for wording in choices[0]:
            for answer in (wording, f"The main object in this image is a {wording.upper()}."):
                asked += 1
                assert find_named_choices(answer, choices) == {0} == reference(answer, *choices), (
                    truth,
                    distractor,
                    answer,
                )
    assert len(pairs) == 113 * 112
    assert asked == 2 * 112 * sum(len(vocabulary.accepted(label)) for label in imagenet_d().labels)


def test_the_nested_names_are_those_known_and_plain_search_would_misread_them(vocabulary: Vocabulary) -> None:
    found = {
        (outer, inner)
        for outer, inner in permutations(imagenet_d().labels, 2)
        for wording in vocabulary.accepted(outer)
        if any(shorter in wording for shorter in vocabulary.accepted(inner))
    }
    assert found == NESTED


@pytest.mark.parametrize(("outer", "inner"), sorted(NESTED))
def test_a_nested_name_is_found_where_it_stands_by_itself(vocabulary: Vocabulary, outer: str, inner: str) -> None:
    choices = [vocabulary.accepted(outer), vocabulary.accepted(inner)]
    long, short = vocabulary.called(outer), vocabulary.called(inner)
    assert parse_answer(long, choices) == ParsedAnswer("scored", 0)
    assert parse_answer(short, choices) == ParsedAnswer("scored", 1)
    assert parse_answer(f"not a {long} but a {short}", choices) == ParsedAnswer("unparsed")


@pytest.mark.parametrize("row", table(), ids=lambda row: row["category"])
def test_a_synonym_counts_and_without_the_table_does_not(row: dict[str, str]) -> None:
    label = row["category"]
    other = frozenset({"wok"})
    bare = Vocabulary({label: label})
    full = Vocabulary({label: label}, load_published_synonyms())
    for synonym in row["accepted_substrings"].split("|"):
        assert parse_answer(f"This is {synonym}!", [full.accepted(label), other]) == ParsedAnswer("scored", 0)
        same_when_folded = format_class_name(synonym) == label or label in synonym
        assert same_when_folded or parse_answer(synonym, [bare.accepted(label), other]).outcome == "unparsed"


CHOICES = [frozenset({"pen"}), frozenset({"can opener"})]


@pytest.mark.parametrize(
    ("answer", "reading"),
    [
        ("pen", ParsedAnswer("scored", 0)),
        ("**PEN**", ParsedAnswer("scored", 0)),
        ("The object is a can-opener.", ParsedAnswer("scored", 1)),
        ("can\nopener", ParsedAnswer("scored", 1)),
        ("A pen and a can opener lie side by side.", ParsedAnswer("unparsed")),
        ("What is the main object? Choose from: pen, can opener.", ParsedAnswer("unparsed")),
        ("A table.", ParsedAnswer("unparsed")),
        ("", ParsedAnswer("unparsed")),
        ("I'm sorry, but I can't assist with that request.", ParsedAnswer("refused")),
        ("I’m unable to identify people in images.", ParsedAnswer("refused")),
        ("I cannot say for sure, perhaps a pen.", ParsedAnswer("scored", 0)),
        ("<think>A can opener? No: it writes.</think>A pen.", ParsedAnswer("scored", 0)),
        ("<think>A pen or a can op", ParsedAnswer("unparsed")),
    ],
)
def test_an_answer_is_scored_unparsed_or_refused(answer: str, reading: ParsedAnswer) -> None:
    assert parse_answer(answer, CHOICES) == reading


def test_whole_words_can_be_asked_for() -> None:
    choices = [frozenset({"pen"}), frozenset({"wallet"})]
    assert parse_answer("An open wallet.", choices) == ParsedAnswer(
        "unparsed"
    )  # o-pen: the published rule reads substrings
    assert parse_answer("An open wallet.", choices, "words") == ParsedAnswer("scored", 1)
    assert parse_answer("Two pens.", choices, "words") == ParsedAnswer("scored", 0)


def test_a_wording_that_both_classes_accept_decides_nothing() -> None:
    assert parse_answer("a crane", [frozenset({"crane"}), frozenset({"crane", "bird"})]) == ParsedAnswer("unparsed")


def test_a_table_of_ones_own_adds_to_the_published_synonyms(tmp_path: Path) -> None:
    file = tmp_path / "own.csv"
    file.write_text("category,accepted_substrings\nT-Shirt,tee\nlorry,truck|van\n")
    found = read_synonyms(str(file))
    assert found["t shirt"] == ("t-shirt", "shirt", "tee")
    assert found["lorry"] == ("truck", "van")
    assert found["sandal"] == ("flip flop",)


@pytest.mark.parametrize("text", ["name,words\na,b\n", "category,accepted_substrings\na,b|\n"])
def test_a_broken_table_of_synonyms_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "own.csv"
    file.write_text(text)
    with pytest.raises(UserError, match=r"expected .*own\.csv"):
        read_synonyms(str(file))
