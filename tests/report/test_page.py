from __future__ import annotations

import io
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Dialog, Page, sync_playwright

from counterfoil.report.attribute_chart import build_attribute_chart
from counterfoil.report.content import ReportContent
from counterfoil.report.page import render_page, write_page
from counterfoil.statistics.answers import Condition
from counterfoil.statistics.calibration import Calibration, ConfidenceChange, MarginChange, ReliabilityPoint
from counterfoil.statistics.confusion import PositionMap
from counterfoil.statistics.contrasts import Contrast
from counterfoil.statistics.intervals import Estimate
from counterfoil.study.confidence import Confidences, ModelPositionMap, Reliability
from counterfoil.study.examples import Example, ModelAnswer
from counterfoil.types import Attribute, Drop, Preprocessing, Run, Skipped
from verify_browser import PATIENCE

HOSTILE = "\"><img src=x onerror=alert(1)><script>alert(2)</script>'{{7*7}}</style></title>"
MODELS = ("embedded:efficientnet-lite0", "onnx:models/other.onnx")
EDITS: tuple[tuple[Attribute, str, str, float], ...] = (
    ("control", "control", "", 1.0),
    ("background", "background-swap", "other", 30.0),
    ("presence", "object-removed", "", 70.0),
    ("size", "size", "full", -2.0),
    ("size", "size", "0.05", 40.0),
    ("position", "position", "random", 4.0),
)
SHARES = {"full": 45.0, "0.05": 5.0}


def jpeg(seed: int, side: int = 24) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG")
    return stream.getvalue()


def drop(model: str, edit: tuple[Attribute, str, str, float], shift: float) -> Drop:
    attribute, name, level, points = edit
    points += shift
    p = 0.0001 if abs(points) > 8 else 0.4
    share = SHARES.get(level, 20.0)
    return Drop(
        model=model,
        attribute=attribute,
        edit=name,
        level=level,
        n=60,
        accuracy_original=85,
        accuracy_control=84,
        accuracy=85 - points,
        drop=points,
        ci_low=points - 7,
        ci_high=points + 7,
        drop_vs_control=points,
        p_value=p,
        drop_vs_reference=points,
        reference_low=points - 7,
        reference_high=points + 7,
        p_adjusted=p,
        object_share=share,
    )


def example(attribute: Attribute, edit: str, seed: int, models: dict[str, str], label: str = "n01") -> Example:
    """One picture; `models` says what each model answers after the edit, having been right before."""
    replies = tuple(ModelAnswer(model, label, 0.91, after, 0.4) for model, after in models.items())
    return Example(
        attribute=attribute,
        edit=edit,
        level="",
        sample_id=f"{label}/{seed}",
        label=label,
        original=jpeg(seed),
        edited=jpeg(seed + 500),
        replies=replies,
    )


def contrasts(drops: list[Drop]) -> list[Contrast]:
    """The second model minus nothing: as far apart as the table says."""
    first, second = drops[: len(EDITS)], drops[len(EDITS) :]
    return [
        Contrast(*MODELS, Condition(a.attribute, a.edit, a.level), 60, a.drop, b.drop, a.drop - b.drop, -5, 1, 0.3, 1.0)
        for a, b in zip(first, second, strict=True)
    ]


def content(title: str = "A small run") -> ReportContent:
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
        example("size", "size", 4, {MODELS[0]: "n02", MODELS[1]: "n02"}, label="n02"),
    ]
    drops = [drop(model, edit, 2.0 * place) for place, model in enumerate(MODELS) for edit in EDITS]
    skipped = [Skipped("n01/9", "source", "", "truncated"), Skipped("n01/8", "source", "", "truncated")]
    return ReportContent(
        title=title,
        run=run,
        drops=drops,
        photos=60,
        variants=420,
        examples=examples,
        skipped=skipped,
        names={"n01": "tench", "n02": "goldfish"},
        attribute_drops=drops,
        contrasts=contrasts(drops),
        letters={(row.attribute, row.model): "a" for row in drops},
    )


def hostile_content() -> ReportContent:
    plain = content(HOSTILE)
    reply = ModelAnswer(HOSTILE, HOSTILE, 0.9, "other", 0.4)
    examples = [replace(row, label=HOSTILE, sample_id=HOSTILE, replies=(reply,)) for row in plain.examples]
    run = replace(plain.run, command=HOSTILE, models=(HOSTILE,), environment={HOSTILE: HOSTILE}, images=HOSTILE)
    return replace(
        plain,
        examples=examples,
        attribute_drops=(),
        contrasts=(),
        run=run,
        drops=[replace(row, model=HOSTILE, edit=HOSTILE, level=HOSTILE) for row in plain.drops[: len(EDITS)]],
        skipped=[Skipped(HOSTILE, "source", HOSTILE, HOSTILE)],
        names={"n01": HOSTILE},
        unscored={HOSTILE: 3},
    )


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
    assert found.count("img") == 2 * 4  # one pair per card


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
    page = render_page(replace(content(), drops=[], examples=[], skipped=[], attribute_drops=[], contrasts=[]))
    assert "No data: no photo was scored" in page
    assert "nothing to draw" in page
    assert "every picture was used" in page
    assert "No photo that was answered right became wrong" in page


def test_the_page_tells_answers_reasons_preprocessing_and_command() -> None:
    words = " ".join(re.sub(r"<[^>]*>", " ", render_page(content())).replace("&nbsp;", " ").split())
    assert f"{MODELS[0]} flipped tench 91 % → goldfish 40 %" in words
    assert f"{MODELS[1]} held tench 91 % → tench 40 %" in words
    assert "2 truncated source n01/9 n01/8" in words
    assert "shorter side to 256, centre crop 224 × 224 (bilinear)" in words
    assert "done inside the model, not seen from here" in words
    assert "feed" * 16 in words
    assert "counterfoil run --images photos" in words


def test_both_places_say_which_test_makes_an_attribute_significant() -> None:
    words = " ".join(re.sub(r"<[^>]*>", "", render_page(content())).split())
    assert "Points lost by each attribute at its costliest edit" in words
    assert "The mean over all edits is in The models side by side; the two can differ." in words
    assert "bold: that mean is significant after Holm's correction (What was found tests the costliest" in words


def test_the_first_chart_has_one_row_per_attribute_by_its_costliest_edit() -> None:
    chart = build_attribute_chart(content())
    assert chart
    assert [row.name for row in chart.rows] == ["Size", "Background", "Position"]
    values = [
        [(value.style.model, value.text, value.change, value.filled) for value in row.values] for row in chart.rows
    ]
    assert values[0] == [
        (MODELS[0], "40.0 [33.0, 47.0]", "the object at 5 % of the picture", True),
        (MODELS[1], "42.0 [35.0, 49.0]", "the object at 5 % of the picture", True),
    ]
    assert chart.rows[0].change == "the object at 5 % of the picture"  # once, where there is no room at every value
    assert [clear for *_, clear in values[2]] == [False, False]
    surface = [*content().drops, drop(MODELS[0], ("shape", "silhouette", "white", 70.0), 0.0)]
    with_surface = build_attribute_chart(replace(content(), drops=surface))
    assert with_surface
    assert [row.name for row in with_surface.rows][-1] == "Shape"  # though it costs most
    few = [replace(row, n=9) for row in content().drops]
    assert build_attribute_chart(replace(content(), drops=few)) is None


def test_rows_of_too_few_photos_have_no_numbers_in_the_table() -> None:
    few = [replace(row, n=7) if row.edit == "background-swap" else row for row in content().drops]
    page = render_page(replace(content(), drops=few))
    rows = re.findall(r'<tr class="few">(.*?)</tr>', page.split('id="all-numbers"')[1], re.S)
    texts = [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in rows]
    assert texts == [f"background-swap other too few 7 {model} background" for model in MODELS]


def estimate(value: float) -> Estimate:
    return Estimate(value, value - 2.0, value + 2.0, 60)


def confidences() -> Confidences:
    """The first model grows too sure by 12 points when the background changes."""
    before, after = Calibration(70.0, 80.0, 11.0), Calibration(62.0, 60.0, 15.0)
    return Confidences(
        [Reliability(MODELS[0], [ReliabilityPoint(70.0, 80.0, 60)], [ReliabilityPoint(62.0, 60.0, 240)])],
        [ConfidenceChange(MODELS[0], "background", before, after, estimate(12.0), estimate(4.0))],
        [MarginChange(MODELS[0], Condition("background", "all", ""), 50.0, 35.0, estimate(15.0))],
    )


def test_confidence_is_told_where_the_models_give_one_and_absent_where_they_do_not() -> None:
    assert 'id="confidence"' not in render_page(content())
    page = render_page(replace(content(), confidences=confidences()))
    words = " ".join(re.sub(r"<[^>]*>", " ", page).split())
    assert "Unedited: says 70.0 %, right on 80.0 %: 10.0 points too modest." in words.replace("\u00a0", " ")
    assert "Edited: says 62.0 %, right on 60.0 %: 2.0 points too sure." in words.replace("\u00a0", " ")
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
    assert "Standing there in the unedited photos" not in page
    lonely = PositionMap(np.full((3, 3), 50.0), np.where(n == 30, 30, 1))
    assert 'id="places"' not in render_page(replace(content(), places=[ModelPositionMap(MODELS[0], "moved", lonely)]))


def test_what_is_not_there_is_not_explained() -> None:
    without = [row for row in content().drops if row.attribute != "presence"]
    assert "Photos without the object" in render_page(content())
    assert "Photos without the object" not in render_page(replace(content(), drops=without))


def test_the_control_says_what_it_does_not_cover_and_whose_it_is() -> None:
    assert "not that of the fill behind an object that was moved" in render_page(content())
    theirs = [replace(row, level="rec") if row.attribute == "control" else row for row in content().drops]
    page = render_page(replace(content(), drops=theirs))
    assert "The collection's own (rec)" in page
    assert "cut out and pasted back" not in page


def test_masks_that_came_with_the_photos_are_not_called_missing() -> None:
    assert "no folder given: those that came with the photos, else the segmenter's" in render_page(content())
    demo = render_page(replace(content(), run=replace(content().run, images="demo:")))
    assert "<dd>the demo's own</dd>" in demo


def test_one_of_a_thing_is_told_in_the_singular_and_notes_are_sentences() -> None:
    run = replace(content().run, notes=("the pictures were chosen",))
    words = re.sub(
        r"<[^>]*>", " ", render_page(replace(content(), photos=1, variants=1, unscored={MODELS[0]: 1}, run=run))
    )
    assert "1 photo, 1 picture, 2 models" in words
    assert f"1 answer of {MODELS[0]} could not be scored and counts nowhere." in words
    assert "The pictures were chosen." in words


def test_the_dose_curve_needs_two_levels_with_a_share() -> None:
    assert "object 5.0 % of the picture, accuracy 45.0 %" in render_page(content())
    one_level = [row for row in content().drops if row.level != "full"]
    assert 'id="dose"' not in render_page(replace(content(), drops=one_level))


def test_an_edit_whose_levels_are_numbers_has_a_dose_curve_in_their_order() -> None:
    levels = [drop(MODELS[0], ("corruption", "fog", level, 8.0 * int(level)), 0.0) for level in ("3", "1", "2")]
    page = render_page(replace(content(), drops=[*content().drops, *levels]))
    (curve,) = re.findall(r'aria-label="Dose curve of fog">(.*?)</svg>\s*</div>', page, re.S)
    assert re.findall(rf'aria-label="{MODELS[0]}, (\d):', curve) == ["1", "2", "3"]


def test_significance_is_a_filled_mark_with_the_numbers_in_words() -> None:
    page = render_page(content())
    label = f"{MODELS[0]}, background-swap other: drop 30.0 points, 95 % interval 23.0 to 37.0, significant, n = 60"
    assert f'<g class="m0 filled" data-m="0" role="img" aria-label="{label}">' in page
    assert re.search(
        r'<g class="m0" data-m="0" role="img" aria-label="[^"]*position random[^"]*, not significant', page
    )
    assert not re.search(r'aria-label="[^"]*object-removed[^"]*drop', page)


def test_a_picture_has_one_card_with_every_models_answers() -> None:
    page = render_page(content())
    assert page.count('<figure class="card"') == 4
    assert page.count('<li class="answer') == 8


def test_a_photo_that_is_not_at_hand_leaves_its_answers() -> None:
    bare = [replace(row, original=None, edited=None) for row in content().examples]
    page = render_page(replace(content(), examples=bare))
    assert page.count("The photo is not available.") == 4
    assert "goldfish 40" in page
    assert "<img" not in page


def test_the_page_stays_below_five_megabytes_however_many_pictures_there_are() -> None:
    large = [jpeg(seed, side=150) for seed in range(8)]
    attributes: tuple[Attribute, ...] = ("background", "size", "position", "direction", "colour", "blur", "texture")
    reply = ModelAnswer(MODELS[0], "n01", 0.9, "n02", 0.5)
    many = [
        Example(
            attribute=attribute,
            edit="edit",
            level="",
            sample_id=f"n01/{number}",
            label="n01",
            original=large[number % 8],
            edited=large[-number % 8],
            replies=(reply,),
        )
        for attribute in attributes
        for number in range(60)
    ]
    assert sum(len(row.original or b"") + len(row.edited or b"") for row in many) > 5_000_000
    page = render_page(replace(content(), examples=many))
    assert len(page.encode()) < 5_000_000
    cards = {name: page.split(f'data-attribute="{name}" aria-label')[-1].count("<figure") for name in attributes}
    assert min(cards.values()) > 10


def test_models_are_side_by_side_with_letters_and_paired_differences() -> None:
    page = render_page(content())
    assert page.count('<sup aria-label="group a">a</sup>') == 2 * 4  # control, background, size, position
    words = " ".join(re.sub(r"<[^>]*>", " ", page).split())
    assert f"background-swap other {MODELS[0]} {MODELS[1]} background 60 30.0 32.0" in words
    one = content().drops[: len(EDITS)]
    alone = replace(content(), drops=one, attribute_drops=one, contrasts=[])
    assert 'id="side-by-side"' not in render_page(alone)


def test_answers_that_were_not_scored_are_counted_at_their_model() -> None:
    words = " ".join(re.sub(r"<[^>]*>", " ", render_page(replace(content(), unscored={MODELS[1]: 3}))).split())
    assert f"3 answers of {MODELS[1]} could not be scored" in words
    assert "3 of 420 answers" in words


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
    sizes = page.evaluate("[...document.images].map((image) => image.naturalWidth)")
    page.close()
    assert complaints == []
    assert sizes == [24] * 8


@pytest.mark.browser
def test_filters_show_only_what_was_chosen(browser: Browser, tmp_path: Path) -> None:
    page, complaints = opened(browser, write_page(tmp_path, content()))
    cards = page.locator(".card:visible")
    assert cards.count() == 3  # those that flipped
    page.locator("#filter-attribute").select_option("background")
    assert cards.count() == 2
    page.locator("#filter-model").select_option(label=MODELS[1])
    assert cards.count() == 1
    assert MODELS[1] in page.locator(".answer:visible").inner_text()
    assert page.locator(".gallery-section:visible").count() == 1
    assert page.locator("#filter-count").inner_text() == "1 of 4 pictures"
    page.locator("#filter-outcome").select_option("kept")
    assert "held" in page.locator(".answer:visible").inner_text()
    page.locator("#filter-attribute").select_option("")
    page.locator("#filter-model").select_option("")
    page.locator("#filter-class").select_option("goldfish")
    assert page.locator(".card:visible .truth strong").all_inner_texts() == ["goldfish"]
    page.locator("#filter-outcome").select_option("flipped")
    assert cards.count() == 0
    page.close()
    assert complaints == []


@pytest.mark.browser
def test_models_and_attributes_are_switched_off_in_all_charts_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    page, complaints = opened(browser, write_page(tmp_path, content()))
    lanes = page.locator(".forest .values li:visible")
    before = lanes.count()
    height = page.locator(".forest .track").first.bounding_box()
    page.locator("#drops .show-model").first.focus()
    page.keyboard.press("Space")
    assert lanes.count() == before / 2
    after = page.locator(".forest .track").first.bounding_box()
    assert height
    assert after
    assert after["height"] == height["height"] / 2
    assert page.locator("#dose g[data-m='0']:visible, #heat [data-m='0']:visible").count() == 0
    assert not page.locator("#dose .show-model").first.is_checked()
    page.locator(".show-attribute[value=size]").uncheck()
    assert page.locator(".forest .group[data-attribute=size]").is_hidden()
    page.close()
    assert complaints == []


@pytest.mark.browser
def test_the_scatter_shows_the_chosen_panel(browser: Browser, tmp_path: Path) -> None:
    page, _ = opened(browser, write_page(tmp_path, content()))
    assert page.locator(".panel:visible").count() == 1
    page.locator("#scatter-attribute").select_option("size")
    page.locator("#scatter-kind").select_option("accuracy")
    shown = page.locator(".panel:visible svg").first
    assert shown.get_attribute("aria-label") == "size: accuracy against accuracy before"
    page.close()


@pytest.mark.browser
def test_a_table_is_copied_as_tab_separated_text(browser: Browser, tmp_path: Path) -> None:
    page, complaints = opened(browser, write_page(tmp_path, content()))
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.locator("button.copy[data-table=all-numbers]").click()
    lines = page.evaluate("window.copied").splitlines()
    assert lines[0].split("\t")[:8] == ["edit", "level", "drop", "95 % from", "to", "n", "model", "attribute"]
    assert len(lines) == 1 + len(content().drops)
    assert lines[2].split("\t")[:3] == ["background-swap", "other", "30.0"]
    assert page.locator("#table output").inner_text() == f"{len(content().drops)} rows copied"
    page.close()
    assert complaints == []


@pytest.mark.browser
def test_every_control_has_a_name_and_can_be_reached_by_tab(browser: Browser, tmp_path: Path) -> None:
    page, _ = opened(browser, write_page(tmp_path, content()))
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, select, input')].filter((part) => part.offsetParent"
        " && !(part.labels?.[0]?.innerText || part.innerText || '').trim()).length"
    )
    assert unnamed == 0
    reached = set()
    for _ in range(120):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"filter-attribute", "filter-outcome", "show-model", "show-attribute", "copy", "scatter-kind"} <= reached
    page.close()


@pytest.mark.browser
def test_the_printed_page_shows_no_control(browser: Browser, tmp_path: Path) -> None:
    page, _ = opened(browser, write_page(tmp_path, content()))
    page.emulate_media(media="print")
    assert page.locator(".filters:visible, button.copy:visible, nav:visible").count() == 0
    assert len(page.pdf()) > 10_000
    page.close()


@pytest.mark.browser
def test_the_table_sorts_by_click_and_by_keyboard_with_missing_numbers_last(browser: Browser, tmp_path: Path) -> None:
    drops = [*content().drops, Drop("empty", "size", "size", "0.1", 0, *[float("nan")] * 9)]
    page, _ = opened(browser, write_page(tmp_path, replace(content(), drops=drops)))
    expected = sorted(f"{row.drop:.1f}".replace("-", "−") for row in drops[:-1])
    cells = page.locator("#all-numbers td:nth-child(3)")
    expected.sort(key=lambda text: float(text.replace("−", "-")))
    heading = page.locator("#all-numbers").get_by_role("button", name="drop", exact=True)
    heading.click()
    assert cells.all_inner_texts() == [*expected, "no data"]
    heading.focus()
    page.keyboard.press("Enter")
    assert cells.all_inner_texts() == [*expected[::-1], "no data"]
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("drop")
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize("make", [content, hostile_content])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_never_scrolls_sideways(browser: Browser, tmp_path: Path, width: int, make: object) -> None:
    assert callable(make)
    page, _ = opened(browser, write_page(tmp_path, make()), width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1440])
def test_the_first_chart_names_the_edits_in_full_at_every_width(browser: Browser, tmp_path: Path, width: int) -> None:
    blur = drop(MODELS[0], ("blur", "object-blur", "15/3", 50.0), 0.0)
    page, _ = opened(browser, write_page(tmp_path, replace(content(), drops=[blur, *content().drops])), width)
    named = (
        page.locator(".attribute-chart").get_by_text("blurring the object (kernel 15, sigma 3)").locator("visible=true")
    )
    whole = named.evaluate_all(
        "found => found.map((it) => it.closest('li, p').scrollWidth <= it.closest('li, p').clientWidth)"
    )
    page.close()
    assert whole == [True]


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_the_drop_is_on_the_first_screen_of_the_table_and_edit_and_level_stay_beside_it(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    page, _ = opened(browser, write_page(tmp_path, content()), width)
    places = """() => {
        const table = document.querySelector('#all-numbers'), row = table.tBodies[0].rows[0];
        const box = (cell) => cell.getBoundingClientRect();
        const seen = [box(row.querySelector('.drop')).right, table.parentElement.scrollWidth];
        table.parentElement.scrollLeft = 1000;
        return [...seen, box(row.cells[0]).left - box(table.parentElement).left, box(row.cells[1]).right];
    }"""
    drop, whole, edit, level = page.evaluate(places)
    page.close()
    assert drop <= width
    assert width == 390 or whole <= width
    assert abs(edit) <= 1
    assert 0 < level < width


@pytest.mark.browser
def test_hostile_names_are_shown_and_never_run(browser: Browser, tmp_path: Path) -> None:
    page, complaints = opened(browser, write_page(tmp_path, hostile_content()))
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.locator("tbody td").first.inner_text() == HOSTILE
    page.locator("#filter-model").select_option(label=" ".join(HOSTILE.split()))
    assert page.locator(".card:visible").count() == 4
    page.close()
    assert complaints == []


@pytest.mark.browser
def test_light_and_dark_differ_and_both_can_be_read(browser: Browser, tmp_path: Path) -> None:
    page, _ = opened(browser, write_page(tmp_path, content()))
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for selector in ("body", ".scope", ".legend .key", "nav a", ".values li", "button.copy", ".outcome"):
            assert _contrast(page, selector) >= 4.5, (scheme, selector)
    page.close()


def _contrast(page: Page, selector: str) -> float:
    """The contrast of text against the page, as WCAG defines it."""
    ink, paper = (
        _luminance(
            page.evaluate("([place, name]) => getComputedStyle(document.querySelector(place))[name]", [place, name])
        )
        for place, name in ((selector, "color"), ("body", "backgroundColor"))
    )
    return (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05)


def _luminance(colour: str) -> float:
    red, green, blue = (int(value) / 255 for value in re.findall(r"\d+", colour)[:3])
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
