from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Dialog, Page, sync_playwright

from counterfoil.object_mask import MaskVerdict
from counterfoil.report.attribute_chart import build_losses_chart
from counterfoil.report.attribute_sections import build_sections
from counterfoil.report.chart_parts import assign_styles
from counterfoil.report.content import ReportContent
from counterfoil.report.headline import write_headline
from counterfoil.report.page import render_page, write_page
from counterfoil.report.title import write_title
from counterfoil.statistics.accuracy import GroupAccuracy
from counterfoil.statistics.answers import Condition
from counterfoil.statistics.calibration import Calibration, ConfidenceChange, MarginChange, ReliabilityPoint
from counterfoil.statistics.confusion import PositionMap
from counterfoil.statistics.contrasts import Contrast
from counterfoil.statistics.intervals import Estimate
from counterfoil.statistics.model_clusters import ModelClusters
from counterfoil.study.confidence import Confidences, ModelPositionMap, Reliability
from counterfoil.study.cut_outs import CutOut
from counterfoil.study.examples import Example, ModelAnswer
from counterfoil.study.judgements import Judgement
from counterfoil.study.runs import OverallAccuracy
from counterfoil.study.unused_photos import UnusedPhotos
from counterfoil.types import Attribute, Drop, Preprocessing, Run, Skipped
from verdict_rows import drop_row, judge_rows
from verify_browser import PATIENCE

HOSTILE = "\"><img src=x onerror=alert(1)><script>alert(2)</script>'{{7*7}}</style></title>"
MODELS = ("Lite0", "our v2")
EDITS: tuple[tuple[Attribute, str, str, float], ...] = (
    ("control", "control", "", 1.0),
    ("background", "background-swap", "other", 30.0),
    ("background", "background-plain", "grey", 12.0),
    ("presence", "object-removed", "", 70.0),
    ("size", "size", "0.05", 40.0),
    ("size", "size", "0.1", 10.0),
    ("size", "size", "full", -2.0),
    ("position", "position", "random@0.05", 4.0),
    ("shape", "silhouette", "white", 75.0),
)
SHARES = {"full": 45.0, "0.1": 10.0, "0.05": 5.0}
AXE = "axe-core@4.14.0"  # the accessibility checker, fetched from npm


def jpeg(seed: int, side: int = 24) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG")
    return stream.getvalue()


def drop(model: str, edit: tuple[Attribute, str, str, float], shift: float) -> Drop:
    attribute, name, level, points = edit
    row = drop_row(
        attribute, name, points + shift, 7.0, model=model, level=level, n=60,
        reference="size 0.05" if attribute == "position" else "original", tool=2.0 if attribute == "size" else 0.0,
    )  # fmt: skip
    return replace(row, object_share=SHARES.get(level, 20.0))


def example(attribute: Attribute, edit: str, seed: int, models: dict[str, str], label: str = "n01") -> Example:
    """One picture; `models` says what each model answers after the edit, having been right before."""
    replies = tuple(ModelAnswer(model, label, 0.91, after, 0.4) for model, after in models.items())
    failed = next((model for model, after in models.items() if after != label), "")
    return Example(
        attribute=attribute,
        edit=edit,
        level="",
        sample_id=f"{label}/{seed}",
        label=label,
        before=jpeg(seed),
        edited=jpeg(seed + 500),
        replies=replies,
        variant_id=f"{seed:020x}",
        model=failed,
    )


def contrasts(drops: list[Drop]) -> list[Contrast]:
    """The first model minus the second, as far apart as the table says."""
    first, second = drops[: len(EDITS)], drops[len(EDITS) :]
    return [
        Contrast(
            *MODELS, Condition(a.attribute, a.edit, a.level), 60, a.drop, b.drop, a.drop - b.drop, -5, 1, 0.3,
            p_adjusted=1.0, adjusted_low=-6, adjusted_high=2,
        )
        for a, b in zip(first, second, strict=True)
    ]  # fmt: skip


def edited(model: str, percent: float, letters: str) -> GroupAccuracy:
    rate = Estimate(percent, percent - 4, percent + 4, 420)
    return GroupAccuracy(model, "all", "all", "all", 60, rate, rate, letters)


def content() -> ReportContent:
    run = Run(
        command="counterfoil run --images photos",
        images="photos",
        masks=None,
        recipe="attributes",
        recipe_digest="c0ffee",
        seed=0,
        samples=60,
        models=MODELS,
        model_digests=dict.fromkeys(MODELS, "feed" * 16),
        preprocessing={MODELS[0]: Preprocessing(size=(224, 224), resize=256), MODELS[1]: None},
        environment={"python": "3.12"},
    )
    examples = [
        example("background", "background-swap", 1, {MODELS[0]: "n02", MODELS[1]: "n01"}),
        example("background", "background-swap", 2, {MODELS[0]: "n02", MODELS[1]: "n02"}),
        example("size", "size", 3, {MODELS[0]: "n01", MODELS[1]: "n02"}),
        example("size", "size", 4, {MODELS[0]: "n01", MODELS[1]: "n01"}, label="n02"),
    ]
    drops = [drop(model, edit, 2.0 * place) for place, model in enumerate(MODELS) for edit in EDITS]
    skipped = [Skipped("n01/9", "source", "", "truncated"), Skipped("n01/8", "source", "", "truncated")]
    return ReportContent(
        run=run,
        drops=drops,
        photos=60,
        variants=420,
        folder="my run",
        examples=examples,
        skipped=skipped,
        names={"n01": "tench", "n02": "goldfish"},
        attribute_drops=drops,
        verdicts=judge_rows(drops),
        overall_accuracies=[OverallAccuracy(model, 60, 80.0, 70.0, 88.0) for model in MODELS],
        edited_accuracies=[edited(MODELS[0], 60.0, "a"), edited(MODELS[1], 55.0, "a")],
        contrasts=contrasts(drops),
    )


def with_drops(drops: list[Drop]) -> ReportContent:
    return replace(content(), drops=drops, verdicts=judge_rows(drops))


def many_models(count: int) -> ReportContent:
    """As many models, each a little worse than the one before, neighbours not told apart."""
    names = tuple(f"model {place}" for place in range(count))
    drops = [drop(name, edit, float(place)) for place, name in enumerate(names) for edit in EDITS]
    letters = [chr(0x4E00 + place) for place in range(count)]
    cluster = np.minimum(np.arange(count) % 5, 2)  # every fifth model is A, every fifth B, the rest C
    cluster = np.where(cluster == 2, 0, cluster + 1)  # the largest first
    agreement = np.where(np.equal.outer(cluster, cluster), 0.61, 0.34)
    return replace(
        content(),
        run=replace(content().run, models=names, preprocessing=dict.fromkeys(names)),
        drops=drops,
        verdicts=judge_rows(drops),
        overall_accuracies=[OverallAccuracy(name, 60, 80.0, 70.0, 88.0) for name in names],
        edited_accuracies=[
            edited(name, 80.0 - place, letters[max(0, place - 1)] + letters[place]) for place, name in enumerate(names)
        ],
        contrasts=(),
        model_clusters=ModelClusters(names, agreement, cluster),
        examples=[example("size", "size", 3, {names[0]: "n02", names[-1]: "n02"})],
    )


def hostile_content() -> ReportContent:
    plain = content()
    reply = ModelAnswer(HOSTILE, HOSTILE, 0.9, "other", 0.4)
    examples = [
        replace(row, label=HOSTILE, sample_id=HOSTILE, replies=(reply,), model=HOSTILE) for row in plain.examples
    ]
    run = replace(plain.run, command=HOSTILE, models=(HOSTILE,), environment={HOSTILE: HOSTILE}, images=HOSTILE)
    drops = [replace(row, model=HOSTILE, edit=HOSTILE, level=HOSTILE) for row in plain.drops[: len(EDITS)]]
    return replace(
        plain,
        examples=examples,
        attribute_drops=(),
        contrasts=(),
        run=run,
        drops=drops,
        verdicts=judge_rows(drops),
        overall_accuracies=[OverallAccuracy(HOSTILE, 60, 80.0, 70.0, 88.0)],
        edited_accuracies=[edited(HOSTILE, 60.0, "")],
        folder=HOSTILE,
        skipped=[Skipped(HOSTILE, "source", HOSTILE, HOSTILE)],
        names={"n01": HOSTILE},
        unscored={HOSTILE: 3},
    )


def words_of(page: str) -> str:
    text = re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.S)
    return " ".join(re.sub(r"<[^>]*>", " ", text).replace("&nbsp;", " ").replace("\u00a0", " ").split())


class Outline(HTMLParser):
    """The headings, and every address that a browser would follow by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.levels: list[int] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if re.fullmatch(r"h[1-6]", tag):
            self.levels.append(int(tag[1]))
        self.addresses += [
            value or "" for name, value in attrs if name in ("src", "href", "srcset", "action", "poster")
        ]


def outline(page: str) -> Outline:
    parser = Outline()
    parser.feed(page)
    return parser


def test_the_page_refers_to_nothing_outside_itself() -> None:
    page = render_page(content())
    assert all(address.startswith(("data:", "#")) for address in outline(page).addresses)
    assert "url(" not in page
    assert "@import" not in page


def test_headings_go_down_one_step_at_a_time() -> None:
    levels = outline(render_page(content())).levels
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(second - first <= 1 for first, second in pairwise(levels))


def test_names_cannot_add_an_element_to_the_page() -> None:
    found = outline(render_page(hostile_content())).tags
    assert found.count("script") == 1
    assert found.count("image") == 8  # a pair per example, each embedded once
    assert found.count("img") == 0


def test_the_same_content_gives_the_same_bytes_and_no_other_file(tmp_path: Path) -> None:
    first = write_page(tmp_path / "out", content()).read_bytes()
    assert write_page(tmp_path / "out", content()).read_bytes() == first
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["report.html"]


def test_a_page_that_fails_leaves_the_old_one_and_no_half_file(tmp_path: Path) -> None:
    before = write_page(tmp_path, content()).read_bytes()
    with pytest.raises(TypeError):
        write_page(tmp_path, replace(content(), drops=None))  # type: ignore[arg-type]
    assert (tmp_path / "report.html").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_an_empty_run_gives_a_page_that_says_so() -> None:
    empty = replace(with_drops([]), examples=[], skipped=[], contrasts=[], edited_accuracies=[])
    words = words_of(render_page(empty))
    assert "Too few photos for a finding" in words
    assert "No data: no photo was scored" in words
    assert "nothing to draw" in words
    assert "every picture was used" in words


def test_the_title_is_the_finding() -> None:
    assert write_title(content()) == "Small objects cost both models most"
    tied = replace(content(), verdicts=judge_rows(content().drops, ["background"]))
    assert write_title(tied) == "Small objects may cost both models most"
    alone = replace(content(), run=replace(content().run, models=MODELS[:1]))
    assert write_title(alone) == "Small objects cost Lite0 most"
    second = [replace(row, drop_vs_reference=60.0) if row.edit == "background-swap" else row for row in content().drops]
    differ = [row if row.model == MODELS[0] else other for row, other in zip(content().drops, second, strict=True)]
    assert write_title(with_drops(differ)) == "Small objects cost Lite0 most, another background costs our v2"
    both = replace(with_drops(differ), verdicts=judge_rows(differ, ["background", "size"]))
    assert write_title(both) == "Size and background clearly cost both models"
    nothing = with_drops([row for row in content().drops if row.attribute in ("shape", "position", "presence")])
    assert write_title(nothing) == "No attribute clearly costs these models points"


def test_the_first_screen_tells_every_model_the_comparison_and_how_many_photos() -> None:
    words = words_of(render_page(content()))
    assert "60 photos · 420 pictures · 2 models" in words
    assert "Lite0 is right on 80.0 % of unedited photos. Its largest clear loss is 40.0 points [33.0, 47.0]" in words
    assert "Compared: on edited photos Lite0 (60.0 % right) and our v2 (55.0 %) cannot be told apart" in words
    assert words.index("Compared:") < words.index("Points lost to one edit") < words.index("Real failures")


def test_the_first_chart_has_the_same_edit_for_every_model_the_costliest_attribute_first() -> None:
    chart = build_losses_chart(content(), assign_styles(MODELS))
    assert chart
    assert [(row.what.name, row.what.note) for row in chart.rows] == [
        ("Size", "the object at 5 % of the picture"),
        ("Background", "swapping it"),
        ("Position", "moved against not moved, at 5 % of the picture"),
    ]
    assert [value.text for value in chart.rows[0].values] == ["40.0 [33.0, 47.0]", "42.0 [35.0, 49.0]"]
    assert [mark.filled for mark in chart.rows[2].marks] == [False, False]
    assert chart.rows[2].label == (
        "Position: Lite0 loses 4.0 points [−3.0, 11.0], not clear; our v2 loses 6.0 points [−1.0, 13.0], not clear"
    )
    few = [replace(row, n=9, n_reference=9) for row in content().drops]
    assert build_losses_chart(with_drops(few), assign_styles(MODELS)) is None


def test_the_band_holds_the_tools_uncertainty_and_the_line_in_it_does_not() -> None:
    chart = build_losses_chart(content(), assign_styles(MODELS))
    assert chart
    size, background = chart.rows[0].marks[0], chart.rows[1].marks[0]
    assert size.band
    assert size.band[0] < size.low < size.at < size.high < size.band[1]
    assert background.band is None


def test_at_most_three_attributes_are_open_and_surface_edits_come_last() -> None:
    extra = [drop(model, (name, "edit", "", 20.0), 0.0) for model in MODELS for name in ("blur", "colour")]
    page = render_page(with_drops([*content().drops, *extra]))
    assert re.findall(r'<section class="part" id="([^"]*)"', page) == [
        "size",
        "background",
        "blur",
        "others",
        "details",
    ]
    assert re.findall(r'<details id="([^"]*)"><summary>', page)[:3] == ["colour", "position", "shape"]


def test_an_attributes_section_has_its_sentence_facts_and_chart() -> None:
    sections = {section.attribute: section for section in build_sections(content(), [], assign_styles(MODELS))}
    size, background, position = (sections[name] for name in ("size", "background", "position"))
    assert size.sentence == "Small objects cost 40.0 to 42.0 points."
    assert size.facts == [
        "60 of 60 photos could be used (100 %)", "Compared with the unedited photo", "Tool uncertainty ±2.0 points",
    ]  # fmt: skip
    assert size.curve
    assert [tick.text for tick in size.curve.x_ticks] == ["5 %", "10 %", "45 %"]
    assert size.edits is None
    assert background.curve is None
    assert background.edits
    assert [row.what.name for row in background.edits.rows] == ["Swapping it", "A plain one instead (grey)"]
    assert position.curve
    assert position.curve.kind == "steps"
    assert [tick.text for tick in position.curve.x_ticks] == ["unedited", "at 5 %", "moved"]
    assert position.facts[1] == "Compared with the object at 5 % of the picture"


def test_every_picture_opens_large_with_all_answers_its_id_and_the_command_that_makes_it() -> None:
    page = render_page(content())
    assert page.count("<dialog id=") == 4
    (large,) = re.findall(r'<dialog id="p2".*?</dialog>', page, re.S)
    words = words_of(large)
    assert "Before: the unedited photo After: swapping it" in words
    assert "Lite0 right: tench 91 % wrong: goldfish 40 %" in words
    assert "Photo n01/2 , picture 00000000000000000002" in words
    assert "counterfoil pictures rebuild &#39;my run&#39; 00000000000000000002 --out 00000000000000000002.png" in words
    assert all(f'href="#p{place}"' in page for place in (1, 2, 3, 4))


def test_failures_on_the_first_screen_are_of_the_costliest_attributes_and_of_different_models() -> None:
    (failures,) = re.findall(r'<div class="failures">(.*?)</div>', render_page(content()), re.S)
    assert re.findall(r"</svg>([^<]+)</span>", failures) == ["Size, our v2", "Background, Lite0"]


def test_rows_of_too_few_photos_have_no_numbers_in_the_table() -> None:
    few = [replace(row, n=7, n_reference=7) if row.edit == "background-swap" else row for row in content().drops]
    page = render_page(with_drops(few))
    rows = re.findall(r'<tr class="few">(.*?)</tr>', page.split('id="all-numbers"')[1], re.S)
    texts = [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in rows]
    assert texts == [f"background-swap other too few 7 {model} background original" for model in MODELS]


def estimate(value: float) -> Estimate:
    return Estimate(value, value - 2.0, value + 2.0, 60)


def confidences() -> Confidences:
    """The first model grows too sure by 12 points when the background changes."""
    before, after = Calibration(70.0, 80.0, 11.0), Calibration(62.0, 60.0, 15.0)
    return Confidences(
        [Reliability(MODELS[0], [ReliabilityPoint(70.0, 80.0, 60)], [ReliabilityPoint(62.0, 60.0, 240)])],
        [ConfidenceChange(MODELS[0], "background", before, after, estimate(12.0), estimate(4.0))],
        [MarginChange(MODELS[0], "background", 50.0, 35.0, estimate(15.0))],
    )


def test_confidence_is_told_where_the_models_give_one_and_absent_where_they_do_not() -> None:
    assert 'id="confidence"' not in render_page(content())
    words = words_of(render_page(replace(content(), confidences=confidences())))
    assert "Unedited: says 70.0 %, right on 80.0 %: 10.0 points too modest." in words
    assert "Edited: says 62.0 %, right on 60.0 %: 2.0 points too sure." in words
    row = f"background {MODELS[0]} 60 70.0 → 62.0 80.0 → 60.0 12.0 [10.0, 14.0] 11.0 → 15.0 4.0 [2.0, 6.0]"
    assert f"{row} 15.0 [13.0, 17.0]" in words


def test_a_map_of_places_shows_numbers_only_where_enough_objects_stood() -> None:
    n = np.array([[12, 4, 0], [20, 30, 9], [0, 10, 0]])
    accuracy = np.where(n > 0, 50.0, np.nan)
    accuracy[0, 0] = 100.0
    maps = [ModelPositionMap(MODELS[0], "moved", PositionMap(accuracy, n))]
    page = render_page(replace(content(), places=maps))
    assert 'title="top left: 100.0 %, n = 12"' in page
    assert 'title="top middle: too few, n = 4"' in page
    assert 'id="places"' not in page
    lonely = PositionMap(np.full((3, 3), 50.0), np.where(n == 30, 30, 1))
    assert "Where the object was put" not in render_page(
        replace(content(), places=[ModelPositionMap(MODELS[0], "moved", lonely)])
    )


def test_the_control_says_what_it_does_not_cover_and_whose_it_is() -> None:
    assert "It does not measure the fill behind an object that was moved" in render_page(content())
    theirs = [replace(row, level="rec") if row.attribute == "control" else row for row in content().drops]
    page = render_page(with_drops(theirs))
    assert "The collection's own (rec)" in page
    assert "cut out and pasted back" not in page


def test_masks_that_came_with_the_photos_are_not_called_missing() -> None:
    assert "no folder given: those that came with the photos, else the segmenter's" in render_page(content())
    demo = render_page(replace(content(), run=replace(content().run, images="demo:")))
    assert "<dd>the demo's own</dd>" in demo


def test_one_of_a_thing_is_told_in_the_singular_and_notes_are_sentences() -> None:
    run = replace(content().run, notes=("the pictures were chosen",))
    words = words_of(render_page(replace(content(), photos=1, variants=1, unscored={MODELS[0]: 1}, run=run)))
    assert "1 photo · 1 picture · 2 models" in words
    assert f"1 answer of {MODELS[0]} could not be scored and does not count." in words
    assert "The pictures were chosen." in words


def test_the_page_tells_reasons_preprocessing_and_command() -> None:
    words = words_of(render_page(replace(content(), unscored={MODELS[1]: 3})))
    assert "2 truncated source n01/9 n01/8" in words
    assert "shorter side to 256, centre crop 224 × 224 (bilinear)" in words
    assert "done inside the model" in words
    assert "feed" * 16 in words
    assert "counterfoil run --images photos" in words
    assert "3 of 420 answers" in words


def test_a_photo_that_is_not_at_hand_leaves_its_answers() -> None:
    bare = [replace(row, before=None, edited=None) for row in content().examples]
    page = render_page(replace(content(), examples=bare))
    assert page.count("The photo is not available.") == 4
    assert "goldfish 40" in page
    assert "<image" not in page


def test_the_page_stays_below_three_megabytes_however_many_pictures_there_are() -> None:
    large = [jpeg(seed, side=150) for seed in range(60)]
    attributes: tuple[Attribute, ...] = ("background", "size", "position", "direction", "colour", "blur", "texture")
    reply = ModelAnswer(MODELS[0], "n01", 0.9, "n02", 0.5)
    many = [
        Example(
            attribute=attribute,
            edit="edit",
            level="",
            sample_id=f"n01/{number}",
            label="n01",
            before=large[number],
            edited=large[-number],
            replies=(reply,),
        )
        for attribute in attributes
        for number in range(60)
    ]
    assert sum(len(row.before or b"") + len(row.edited or b"") for row in many) > 3_000_000
    assert len(render_page(replace(content(), examples=many)).encode()) < 3_000_000


def test_models_are_set_side_by_side_with_paired_differences() -> None:
    words = words_of(render_page(content()))
    assert f"background background-swap other {MODELS[0]} {MODELS[1]} 60 −2.0 −6.0 2.0 cannot be told apart" in words
    assert 'id="side-by-side"' not in render_page(replace(content(), contrasts=[]))


def not_judged() -> ReportContent:
    judgement = Judgement(
        verdict="not judged", reason="It is right on 1 of 60 unedited photos.", remedy="Check `labels` in v2.json."
    )
    return replace(content(), judgements={MODELS[0]: Judgement(), MODELS[1]: judgement})


def test_a_model_that_is_not_judged_is_said_so_first_and_left_out_of_the_findings() -> None:
    page = render_page(not_judged())
    words = words_of(page)
    assert write_title(not_judged()) == "One model was not judged; small objects cost Lite0 most"
    assert "our v2 was not judged. It is right on 1 of 60 unedited photos. Check labels in v2.json." in words
    assert "Then run again: counterfoil run --images photos" in words
    assert "not judged : a model that is wrong already has nothing to lose." in words
    assert "Compared: not possible until our v2 is judged." in words
    assert words.index("was not judged.") < words.index("Lite0 is right on")
    chart = page.split('<figure class="chart first')[1].split("</figure>")[0]
    assert "our v2 loses" not in chart
    (finding,) = [row for row in write_headline(not_judged()) if row.model == MODELS[1]]
    assert finding.text.startswith("our v2 is right on 80.0 % of unedited photos and is not judged.")
    both = replace(not_judged(), judgements=dict.fromkeys(MODELS, not_judged().judgements[MODELS[1]]))
    assert write_title(both) == "Two models were not judged"
    assert "There is nothing to draw" in render_page(both)


def test_doubtful_masks_come_first_with_their_reasons_and_the_command_to_correct_them() -> None:
    doubtful = MaskVerdict(sample="n01/1", origin="salience", verdict="doubtful", reasons=("touches three sides",))
    masks = [CutOut("n01/1", jpeg(1), doubtful), CutOut("n01/2", jpeg(2), None)]
    words = words_of(render_page(replace(content(), masks=masks, doubtful_masks=1)))
    assert "One of 60 photos looks doubtful; it comes first." in words
    assert "n01/1 . Doubtful: touches three sides n01/2" in words
    assert "counterfoil photos review my run" in words
    assert 'id="masks"' not in render_page(content())


def test_photos_that_an_attribute_could_not_use_are_told_with_their_accuracy() -> None:
    partly = replace(content(), unused=[UnusedPhotos("size", 6, 50.0, 66.7)])
    section = next(row for row in build_sections(partly, [], assign_styles(MODELS)) if row.attribute == "size")
    assert section.facts[1] == "The other 6 are right on 50 to 67 % unedited"


def test_an_edit_whose_pictures_use_few_other_photos_says_so() -> None:
    def facts(donors: list[str]) -> list[str]:
        manifest = {"attribute": ["background"] * 5, "edit": ["background-swap"] * 5, "level": ["other"] * 5}
        used = replace(content(), manifest={**manifest, "donor_id": donors})
        (section,) = (row for row in build_sections(used, [], assign_styles(MODELS)) if row.attribute == "background")
        return section.facts

    assert "Uses 3 other photos, one of them in 2 of 4 pictures" in facts(["a", "b", "a", "c", ""])
    assert not any(fact.startswith("Uses") for fact in facts([""] * 5))


def test_twenty_models_are_ranked_by_ranges_in_one_table() -> None:
    page = render_page(many_models(20))
    words = words_of(page)
    assert "Two of 20 models may be the best" in words
    assert "Small objects cost 20 of 20 models most." in words
    rows = re.findall(r'<tr data-name="([^"]*)".*?</td><td>([^<]*)</td>', page, re.S)
    assert rows[0] == ("model 0", "1 to 2")
    assert rows[5] == ("model 5", "5 to 7")
    assert len(rows) == 20
    assert 'class="verdicts"' not in page


def test_many_models_are_grouped_by_the_pictures_that_they_fail_on() -> None:
    page = render_page(many_models(20))
    assert "By the edited pictures that they get wrong, the 20 models form three clusters." in words_of(page)
    rows = re.findall(r'<tr><th scope="row">([ABC])</th>.*?</tr>', page, re.S)
    assert rows == ["A", "B", "C"]
    assert "12 models: model 2, model 3, …" in words_of(page)
    ranked = re.findall(r'data-name="([^"]*)" data-cluster="([^"]*)"', page)
    assert ranked[:4] == [("model 0", "B"), ("model 1", "C"), ("model 2", "A"), ("model 3", "A")]


def test_models_that_form_no_clusters_are_said_to_form_none() -> None:
    many = many_models(20)
    assert many.model_clusters is not None
    page = render_page(replace(many, model_clusters=many.model_clusters._replace(cluster=np.zeros(20, np.intp))))
    assert "the 20 models form no clusters: every two agree" in words_of(page)
    assert "any other two (0.34 to 0.61)" in words_of(page)
    assert 'id="cluster"' not in page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    arguments = [
        "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync",
    ]  # fmt: skip
    with sync_playwright() as playwright:
        instance = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), headless=True, args=arguments, timeout=PATIENCE
        )
        yield instance
        instance.close()


def opened(browser: Browser, path: Path, width: int = 1280) -> tuple[Page, list[str]]:
    """The page, and what it complained about or asked for beyond its own file."""
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.set_default_timeout(PATIENCE)
    complaints: list[str] = []

    def note_dialog(dialog: Dialog) -> None:
        complaints.append(dialog.message)
        dialog.dismiss()

    page.on("console", lambda message: complaints.append(message.text))
    page.on("dialog", note_dialog)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.append(request.url) if not _own(request.url, path) else None)
    page.goto(path.as_uri())
    return page, complaints


def _own(url: str, path: Path) -> bool:
    return url == path.as_uri() or url.startswith("data:")


@pytest.mark.browser
def test_the_page_runs_without_complaint_and_asks_nothing_of_any_network(browser: Browser, tmp_path: Path) -> None:
    page, complaints = opened(browser, write_page(tmp_path, content()))
    page.close()
    assert complaints == []


@pytest.mark.browser
def test_a_picture_opens_by_click_and_by_address_and_closes_by_escape(browser: Browser, tmp_path: Path) -> None:
    path = write_page(tmp_path, content())
    page, complaints = opened(browser, path)
    card = page.locator(".failures .card").first
    card.focus()
    page.keyboard.press("Enter")
    large = page.locator("dialog[open]")
    assert large.locator("h2").inner_text() == "Size: the object at size"
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    assert page.evaluate("document.activeElement.className") == "card"
    page.close()
    without = browser.new_context(java_script_enabled=False).new_page()
    without.goto(f"{path.as_uri()}#p1")
    assert without.locator("#p1").is_visible()
    without.locator("#p1 .close").click()
    assert without.locator("#p1").is_hidden()
    without.close()
    assert complaints == []


@pytest.mark.browser
def test_a_link_to_a_folded_attribute_opens_it(browser: Browser, tmp_path: Path) -> None:
    extra = [drop(model, ("blur", "edit", "", 20.0), 0.0) for model in MODELS]
    page, _ = opened(browser, write_page(tmp_path, with_drops([*content().drops, *extra])))
    assert not page.locator("#position .facts").is_visible()
    page.locator(".chart.first a", has_text="Position").click()
    page.locator("#position .facts").wait_for(state="visible")
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize(("width", "height"), [(1400, 900), (390, 844)])
def test_the_first_screen_holds_sentences_comparison_and_chart(
    browser: Browser, tmp_path: Path, width: int, height: int
) -> None:
    page, _ = opened(browser, write_page(tmp_path, content()), width)
    page.set_viewport_size({"width": width, "height": height})
    for part in ("h1", ".verdicts li:last-child", ".between", ".chart.first .row:last-child", ".failures .pair"):
        box = page.locator(part).first.bounding_box()
        assert box, part
        assert box["y"] + box["height"] <= height, part
    page.close()


@pytest.mark.browser
def test_a_table_is_copied_as_tab_separated_text(browser: Browser, tmp_path: Path) -> None:
    page, complaints = opened(browser, write_page(tmp_path, content()))
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.locator("#table summary").click()
    page.locator("button.copy[data-table=all-numbers]").click()
    lines = page.evaluate("window.copied").splitlines()
    assert lines[0].split("\t")[:7] == ["edit", "level", "points lost", "interval from", "to", "photos", "model"]
    assert len(lines) == 1 + len(content().drops)
    assert lines[2].split("\t")[:3] == ["background-swap", "other", "30.0"]
    assert page.locator("#table output").inner_text() == f"{len(content().drops)} rows copied"
    page.close()
    assert complaints == []


@pytest.mark.browser
def test_the_printed_page_shows_no_control(browser: Browser, tmp_path: Path) -> None:
    page, _ = opened(browser, write_page(tmp_path, content()))
    page.emulate_media(media="print")
    assert page.locator("button.copy:visible, nav:visible, dialog:visible").count() == 0
    assert len(page.pdf()) > 10_000
    page.close()


@pytest.mark.browser
def test_the_table_sorts_by_click_and_by_keyboard_with_missing_numbers_last(browser: Browser, tmp_path: Path) -> None:
    drops = [*content().drops, Drop(MODELS[0], "size", "size", "0.2", 0, *[float("nan")] * 8)]
    page, _ = opened(browser, write_page(tmp_path, replace(content(), drops=drops)))
    expected = sorted(f"{row.drop:.1f}".replace("-", "−") for row in drops[:-1])
    cells = page.locator("#all-numbers td:nth-child(3)")
    expected.sort(key=lambda text: float(text.replace("−", "-")))
    page.locator("#table summary").click()
    heading = page.locator("#all-numbers").get_by_role("button", name="points lost", exact=True)
    heading.click()
    assert cells.all_inner_texts() == [*expected, "no data"]
    heading.focus()
    page.keyboard.press("Enter")
    assert cells.all_inner_texts() == [*expected[::-1], "no data"]
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("points lost")
    page.close()


@pytest.mark.browser
def test_many_models_can_be_searched_and_ties_are_shaded(browser: Browser, tmp_path: Path) -> None:
    page, complaints = opened(browser, write_page(tmp_path, many_models(20)))
    rows = page.locator("table.rank tbody tr:visible")
    assert rows.count() == 20
    page.locator("#find").fill("model 1")
    assert rows.count() == 11
    page.locator("#find").fill("")
    page.locator("#best").check()
    assert rows.count() == 2
    page.locator("#best").uncheck()
    page.locator("#cluster").select_option("B")
    assert rows.locator("th").all_inner_texts() == ["model 0", "model 5", "model 10", "model 15"]
    page.locator("#cluster").select_option("all")
    page.get_by_label("Choose model 5").check()
    assert page.locator("table.rank tr.tied th").all_inner_texts() == ["model 4", "model 5", "model 6"]
    page.close()
    assert complaints == []


@pytest.mark.browser
def test_of_a_hundred_models_the_middle_is_folded_until_it_is_asked_for(browser: Browser, tmp_path: Path) -> None:
    page, complaints = opened(browser, write_page(tmp_path, many_models(100)))
    rows = page.locator("table.rank tbody tr:visible")
    assert rows.locator("th").all_inner_texts() == [f"model {place}" for place in (*range(10), 97, 98, 99)]
    assert page.locator("#count").inner_text() == "13 of 100 models"
    page.locator("#find").fill("model 5")
    assert rows.count() == 11
    page.locator("#find").fill("")
    page.locator("#every").check()
    assert rows.count() == 100
    page.close()
    assert complaints == []


@pytest.mark.browser
@pytest.mark.parametrize("make", [content, hostile_content, lambda: many_models(20), lambda: many_models(5)])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_never_scrolls_sideways(browser: Browser, tmp_path: Path, width: int, make: object) -> None:
    assert callable(make)
    page, _ = opened(browser, write_page(tmp_path, make()), width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


@pytest.mark.browser
def test_hostile_names_are_shown_and_never_run(browser: Browser, tmp_path: Path) -> None:
    page, complaints = opened(browser, write_page(tmp_path, hostile_content()))
    assert HOSTILE in page.locator("h1").inner_text()
    page.locator(".card").first.click()
    assert HOSTILE in page.locator("dialog[open]").inner_text()
    page.close()
    assert complaints == []


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, an accessibility checker; `npm pack` fetches it without installing anything."""
    npm = shutil.which("npm")
    if npm is None and "CI" not in os.environ:
        pytest.skip("npm is missing: it fetches axe-core")
    folder = tmp_path_factory.mktemp("axe")
    done = subprocess.run([str(npm), "pack", AXE], cwd=folder, capture_output=True, text=True, timeout=300)
    if done.returncode and "CI" not in os.environ:
        pytest.skip(f"npm cannot fetch {AXE}: {done.stderr.strip().splitlines()[-1:]}")
    assert done.returncode == 0, done.stderr
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        script = archive.extractfile("package/axe.min.js")
        assert script
        return script.read().decode()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("make", [content, not_judged, lambda: many_models(20)])
def test_an_accessibility_checker_finds_nothing(
    browser: Browser, tmp_path: Path, axe: str, make: object, scheme: str
) -> None:
    assert callable(make)
    context = browser.new_context(bypass_csp=True, color_scheme=scheme, viewport={"width": 1400, "height": 900})  # type: ignore[arg-type]
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(write_page(tmp_path, replace(make(), confidences=Confidences())).as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    context.close()
    assert [(row["id"], row["nodes"][0]["html"]) for row in found] == []
