"""The label spaces of benchmarks and of users."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from counterfoil.errors import UserError
from counterfoil.labels.benchmark_classes import imagenet9, imagenet_d, load_label_space, ximagenet12
from counterfoil.labels.class_file import read_class_file
from counterfoil.labels.label_space import imagenet1k, match_imagenet_columns
from counterfoil.models.model_options import fill_templates, format_class_name, read_templates


def test_imagenet_d_has_113_categories_nine_of_them_with_several_ids() -> None:
    space = imagenet_d()
    assert len(space.labels) == 113
    several = [label for label in space.labels if len(space.ids_of(label)) > 1]
    assert several == [
        "alarm_clock", "bicycle", "chair", "helmet", "pen", "skirt", "still_camera", "tie", "wheel",
    ]  # fmt: skip
    names = [imagenet1k().name_of(name) for name in space.ids_of("alarm_clock")]
    assert names == ["analog clock", "digital clock"]


def test_every_id_of_every_benchmark_is_an_imagenet_class() -> None:
    for space in (imagenet_d(), imagenet9(), ximagenet12()):
        ids = [name for label in space.labels for name in space.ids_of(label)]
        assert len(ids) == len(set(ids))
        assert all(name in imagenet1k() for name in ids)
    assert len(ximagenet12().labels) == 12
    assert {label: len(imagenet9().ids_of(label)) for label in ("dog", "fish")} == {"dog": 116, "fish": 16}


def test_folders_of_imagenet_d_are_known_by_either_spelling() -> None:
    assert imagenet_d().resolve("coffee_or_french_press") == "coffee_or_french_press"
    assert imagenet_d().resolve("T-shirt") == "t_shirt"


def test_prompts_follow_the_published_rules() -> None:
    told = dict(zip(imagenet_d().labels, fill_templates(imagenet_d(), ("A photo of a {c}",)), strict=True))
    assert told["coffee_or_french_press"] == ["A photo of a coffee or french press"]
    assert told["t_shirt"] == ["A photo of a t shirt"]
    assert told["binder_closed"] == ["A photo of a binder (closed)"]
    assert format_class_name("mixing/salad_bowl") == "mixing or salad bowl"


def test_templates_come_from_a_flag_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "templates.txt").write_text("a {c}\n\nthe {c}\n")
    assert read_templates("a sketch of a {c}") == ("a sketch of a {c}",)
    assert read_templates(str(tmp_path / "templates.txt")) == ("a {c}", "the {c}")
    for content, said in ((b"", "got an empty file"), (b"a {c}\nno class", "'no class'"), (b"\xff {c}", "in UTF-8")):
        (tmp_path / "odd.txt").write_bytes(content)
        with pytest.raises(UserError, match=said):
            read_templates(str(tmp_path / "odd.txt"))
    with pytest.raises(UserError, match=r"a prompt template with \{c\}"):
        read_templates("a photo of a cat")


def test_classes_of_ones_own_accept_ids_and_names(tmp_path: Path) -> None:
    path = tmp_path / "classes.json"
    path.write_text(json.dumps({"cat": ["tabby", "n02123159"], "dog": {"ids": ["beagle"], "name": "small dog"}}))
    space = read_class_file(path)
    assert space.ids_of("cat") == ("n02123045", "n02123159")
    assert space.ids_of("dog") == (imagenet1k().resolve("beagle"),)
    assert space.name_of("dog") == "small dog"
    assert load_label_space(str(path)).labels == ("cat", "dog")


def test_a_plain_list_of_classes_stands_for_itself(tmp_path: Path) -> None:
    path = tmp_path / "classes.json"
    path.write_text('["zebra crossing", "stop sign"]')
    assert read_class_file(path).labels == ("zebra crossing", "stop sign")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "expected classes such as"),
        ('{"cat": {"id": []}, "dog": []}', "expected classes such as"),
        ('["cat"]', "at least two classes"),
        ('{"cat": ["tabby"], "dog": ["tabby"]}', "expected each id in one class"),
    ],
)
def test_wrong_classes_say_what_was_expected(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "classes.json").write_text(text)
    with pytest.raises(UserError, match=said) as error:
        load_label_space(str(tmp_path / "classes.json"))
    assert "\n" not in str(error.value)


def test_an_unknown_space_is_told_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'imagenet-d'"):
        load_label_space("imagenetd")


def test_columns_called_by_english_names_are_recognised_whatever_their_order() -> None:
    known = imagenet1k()
    names = [f"{name}, and so on" for name in known.names]
    assert match_imagenet_columns(names) == known.labels
    distinct = [
        f"{name} {label}" if known.names.count(name) > 1 else name
        for label, name in zip(known.labels, names, strict=True)
    ]
    assert match_imagenet_columns(distinct) == known.labels
    by_id = list(known.labels)
    random.Random(0).shuffle(by_id)
    assert match_imagenet_columns(by_id) == tuple(by_id)
    assert match_imagenet_columns(["cat", "dog"]) is None
    assert match_imagenet_columns([f"class {place}" for place in range(1000)]) is None
