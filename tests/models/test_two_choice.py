"""The question behind a variant: its words, its distractor, its order; and the settings in an address."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from counterfoil.errors import UserError
from counterfoil.labels.benchmark_classes import imagenet_d
from counterfoil.labels.label_space import imagenet1k
from counterfoil.models.endpoint import PREFIX, Limits
from counterfoil.models.two_choice_question import Questions, Vocabulary, load_published_synonyms, read_distractors
from counterfoil.models.vlm import VlmOptions, choose_label_space, parse_vlm_address
from counterfoil.types import Variant
from locations import ROOT
from vlm_server import variant

NAMES = {label: imagenet_d().name_of(label) for label in imagenet_d().labels}


@pytest.fixture
def questions() -> Questions:
    return Questions(Vocabulary(NAMES, load_published_synonyms()), tuple(NAMES), {})


def photos(count: int, label: str = "pen") -> list[Variant]:
    return [variant(number, label) for number in range(count)]


def test_the_question_is_the_published_one_word_for_word(questions: Questions) -> None:
    asked = replace(questions, given={"v1": "coffee_or_french_press"}, order="faithful").about(variant(1, "t_shirt"))
    assert asked.text == (
        "What is the main object in this image? Choose from the following list: t shirt, coffee or french press."
    )


def test_faithful_order_puts_the_truth_first_always(questions: Questions) -> None:
    faithful = replace(questions, order="faithful")
    assert all("list: pen, " in faithful.about(photo).text for photo in photos(50))


def test_random_order_puts_the_truth_first_half_of_the_time(questions: Questions) -> None:
    first = sum("list: pen, " in questions.about(photo).text for photo in photos(1000))
    assert 437 <= first <= 563  # four standard deviations of 1000 fair coins


def test_the_same_question_comes_again_and_another_seed_asks_another(questions: Questions) -> None:
    asked = [questions.about(photo) for photo in photos(40)]
    again = [questions.about(photo) for photo in reversed(photos(40))][::-1]
    assert asked == again
    assert asked != [replace(questions, seed=1).about(photo) for photo in photos(40)]


def test_every_variant_of_a_photo_gets_the_same_question(questions: Questions) -> None:
    edited = [replace(variant(number, sample="pen/1"), edit=f"edit-{number}") for number in range(20)]
    assert len({questions.about(one) for one in edited}) == 1


def test_distractors_are_spread_over_the_other_classes(questions: Questions) -> None:
    drawn = [questions.about(photo).distractor for photo in photos(1000)]
    assert "pen" not in drawn
    assert len(set(drawn)) > 100


def test_a_new_class_takes_over_only_the_questions_it_wins(questions: Questions) -> None:
    fewer = replace(questions, labels=tuple(label for label in NAMES if label != "wok"))
    before = [fewer.about(photo).distractor for photo in photos(600)]
    after = [questions.about(photo).distractor for photo in photos(600)]
    assert {new for old, new in zip(before, after, strict=True) if old != new} == {"wok"}


def test_a_distractor_never_shares_a_wording_with_the_truth() -> None:
    names = {"n1": "crane", "n2": "Crane", "n3": "heron"}
    questions = Questions(Vocabulary(names), tuple(names), {})
    assert {questions.about(photo).distractor for photo in photos(50, "n1")} == {"n3"}
    with pytest.raises(UserError, match="expected another class"):
        replace(questions, labels=("n1", "n2")).about(variant(0, "n1"))


def test_given_distractors_come_before_drawn_ones(tmp_path: Path, questions: Questions) -> None:
    file = tmp_path / "own.csv"
    file.write_text("id,distractor\nv0,wok\npen/1,T-Shirt\n")
    given = replace(questions, given=read_distractors(str(file), NAMES))
    assert [given.about(photo).distractor for photo in photos(2)] == ["wok", "t_shirt"]
    assert given.about(variant(2)) == questions.about(variant(2))


def test_a_published_questions_file_gives_the_surrogates_wrong_answer(tmp_path: Path, questions: Questions) -> None:
    file = tmp_path / "background.csv"
    file.write_text(
        "image_dir\tgt_category\ttop1_pred_cate\ttop2_pred_cate\n"
        "background/pen/AAAAAAAAAAAAAAAAAAAAAA.png\tpen\tmixing/salad_bowl\tpen\n"
        "background/pen/BBBBBBBBBBBBBBBBBBBBBB.png\tpen\tpen\tcan_opener\n"
    )
    given = replace(questions, given=read_distractors(str(file), NAMES))
    asked = [given.about(variant(0, sample=f"pen/{letter * 22}")).distractor for letter in "AB"]
    assert asked == ["mixing_or_salad_bowl", "can_opener"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("name,wrong\na,b\n", "header id,distractor"), ("id,distractor\nv0,unicorn\n", "got 'unicorn'")],
)
def test_a_broken_file_of_distractors_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "own.csv"
    file.write_text(text)
    with pytest.raises(UserError, match=complaint):
        read_distractors(str(file), NAMES)


def test_the_truth_cannot_be_its_own_distractor(questions: Questions) -> None:
    with pytest.raises(UserError, match="expected a wrong class"):
        replace(questions, given={"v0": "pen"}).about(variant(0))


def test_an_address_holds_the_name_and_the_settings() -> None:
    model, asking = parse_vlm_address("vlm:", "org/llava:7b?order=faithful&temperature=default&longest_side=512")
    assert model == "org/llava:7b"
    assert asking == VlmOptions(order="faithful", temperature="default", longest_side=512)
    assert parse_vlm_address("vlm:", "gpt")[1] == VlmOptions()


@pytest.mark.parametrize(
    ("place", "complaint"),
    [
        ("", "expected vlm:NAME"),
        ("?order=faithful", "expected vlm:NAME"),
        ("m?order=first", "'order': .* got 'first'"),
        ("m?ordr=faithful", "'ordr': .*expected keys: labels, order"),
        ("m?order", "expected settings such as"),
        ("m?seed=1&seed=2", "each setting once"),
        ("m?longest_side=9000", "'longest_side': .* got '9000'"),
    ],
)
def test_a_misspelt_address_explains_itself(place: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        parse_vlm_address(f"vlm:{place}", place)


def test_the_classes_come_from_the_address_then_the_run_then_imagenet(tmp_path: Path) -> None:
    file = tmp_path / "classes.json"
    file.write_text('{"cat": {"name": "house cat"}, "dog": {}}')
    assert choose_label_space("", None) == imagenet1k()
    assert choose_label_space("", imagenet_d()) == imagenet_d()
    assert choose_label_space("cat, dog", imagenet_d()).labels == ("cat", "dog")
    assert choose_label_space(str(file), None).name_of("cat") == "house cat"
    assert choose_label_space("imagenet-d", None) == imagenet_d()


@pytest.mark.parametrize(
    ("labels", "complaint"), [("imagenet-dd", "did you mean 'imagenet-d'"), ("cat,cat", "no two"), ("a,,b", "no two")]
)
def test_misspelt_classes_explain_themselves(labels: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        choose_label_space(labels, None)


def test_every_setting_is_documented() -> None:
    page = (ROOT / "docs" / "vlm.md").read_text(encoding="utf-8")
    named = [
        *VlmOptions.model_fields,
        *(f"{PREFIX}{name.upper()}" for name in Limits.model_fields if name != "output_price"),
    ]
    assert [name for name in named if f"`{name}`" not in page] == []
    assert "`_OUTPUT_PRICE`" in page
