"""The page of a collection: marks, notes, a paper's own tables, at the width of a telephone too."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Browser, sync_playwright

from counterfoil.report.content import PaperTable, ReportContent
from counterfoil.report.csv_tables import accuracies_to_csv
from counterfoil.report.exports import export_files
from counterfoil.report.headline import write_headline
from counterfoil.report.page import render_page, write_page
from counterfoil.report.summary_json import summarize
from counterfoil.statistics.accuracy import GroupAccuracy
from counterfoil.statistics.intervals import Estimate
from counterfoil.study.examples import Example, ModelAnswer
from counterfoil.study.runs import find_surrogates
from counterfoil.types import Run
from verify_browser import chromium

HOSTILE = "\"><img src=x onerror=alert(1)><script>alert(2)</script>'{{7*7}}</style></title>"
MODELS = ("onnx:first.onnx", "onnx:second.onnx", "onnx:chooser.onnx")
RUN = Run(
    command="counterfoil evaluate hard",
    images="hard",
    masks=None,
    recipe="",
    recipe_digest="",
    seed=0,
    samples=40,
    models=MODELS,
    model_digests=dict.fromkeys(MODELS, "feed" * 16),
    preprocessing=dict.fromkeys(MODELS),
    environment={"python": "3.12"},
    collection="hard",
    collection_digest="c0ffee" * 10,
    surrogates={MODELS[2]: "beef" * 16},
    notes=("These are training pictures.",),
)
SCORED = PaperTable(
    title="Drop per kind",
    rule="Original minus kind, over the same pictures.",
    columns=("model", "kind A", "mean"),
    rows=((MODELS[0], 12.34, 5.0), (MODELS[1], None, float("nan"))),
    footnotes=("rec is left out of the mean.",),
)
PUBLISHED = PaperTable(
    title="Published",
    rule="As printed.",
    columns=("model", "top-1", "source"),
    rows=((MODELS[0], 61.5, "yours"), ("ResNet-50", 75.04, "[1]")),
    footnotes=("[1] The paper, table 3.",),
    kind="published",
    own=frozenset({0}),
    decimals=2,
)


def accuracy(model: str, group: tuple[str, str, str], percent: float, letters: str) -> GroupAccuracy:
    rate = Estimate(percent, percent - 8, min(100.0, percent + 8), 40)
    return GroupAccuracy(model, *group, 40, rate, rate._replace(value=min(100.0, percent + 10)), letters)


def content() -> ReportContent:
    groups = {("all", "all", "all"): 60.0, ("texture", "painted", "bricks"): 40.0, ("background", "scene", "sea"): 80.0}
    letters = {MODELS[0]: "a", MODELS[1]: "b", MODELS[2]: "c"}
    rows = [
        accuracy(model, group, percent - 15 * place, letters[model])
        for group, percent in groups.items()
        for place, model in enumerate(MODELS)
    ]
    replies = (ModelAnswer(MODELS[0], "", 0.0, "n01", 0.9), ModelAnswer(MODELS[2], "", 0.0, "n02", 0.6))
    examples = [
        Example(
            attribute="texture",
            edit="painted",
            level="bricks",
            sample_id="n01/1",
            label="n01",
            before=None,
            edited=None,
            replies=replies,
            paired=False,
        )
    ]
    return ReportContent(
        run=RUN,
        drops=[],
        photos=40,
        variants=80,
        examples=examples,
        names={"n01": "tench", "n02": "goldfish"},
        accuracies=rows,
        papers=(SCORED, PUBLISHED),
    )


class Tags(HTMLParser):
    """The tags of a page, and its words."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words = ""
        self.feed(page)
        self.words = " ".join(self.words.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.words += f" {data}"


def test_the_findings_tell_accuracy_lowest_kind_marks_and_what_tells_models_apart() -> None:
    texts = [finding.text for finding in write_headline(content())]
    assert texts[0].startswith("onnx:first.onnx is right on 60.0 % [52.0, 68.0] of the 40 pictures; the truth is among")
    assert texts[1] == "Lowest on painted bricks: 40.0 % [32.0, 48.0] (n = 40)."
    meaning = "surrogate: chose pictures by failing on them; its accuracy on those is low by construction"
    assert f"onnx:chooser.onnx – {meaning}." in texts
    assert texts[-1] == (
        "Overall onnx:first.onnx is right more often than onnx:second.onnx (60.0 % against 45.0 %)."
        " Surrogates are left out of this comparison."
    )


def test_models_that_share_a_letter_are_not_ranked() -> None:
    rows = [row._replace(letters="a") for row in content().accuracies]
    text = write_headline(replace(content(), accuracies=rows))[-1].text
    assert text.startswith("The pictures do not tell the models apart overall")


def test_too_few_pictures_are_not_spoken_about() -> None:
    rows = [row._replace(photos=4) for row in content().accuracies]
    texts = [
        finding.text for finding in write_headline(replace(content(), accuracies=rows)) if finding.kind != "surrogate"
    ]
    assert texts == ["Too few pictures: at most 4 were scored, and at least 10 are needed."]


@pytest.mark.parametrize(
    ("surrogates", "marked"),
    [
        ({MODELS[1]: ""}, (MODELS[1],)),
        ({f"{MODELS[1]} (subset: 9 classes)": ""}, (MODELS[1],)),
        ({"timm:elsewhere": "feed" * 16}, MODELS),
        ({"timm:elsewhere": ""}, ()),
        ({}, ()),
    ],
)
def test_a_surrogate_is_known_by_name_or_by_weights(surrogates: dict[str, str], marked: tuple[str, ...]) -> None:
    assert find_surrogates(replace(RUN, surrogates=surrogates)) == marked


def test_a_papers_tables_stand_on_the_page_in_the_summary_and_in_markdown() -> None:
    words = Tags(render_page(content())).words
    assert "Scored as the paper does 1 table" in words
    assert "Drop per kind Original minus kind" in words
    assert "onnx:first.onnx 12.3 5.0 onnx:second.onnx – – rec is left out of the mean." in words
    assert "Published numbers beside yours" in words
    assert "ResNet-50 75.04 [1]" in words
    document = json.loads(json.dumps(summarize(content()), allow_nan=False))
    assert document["papers"][0]["rows"] == [[MODELS[0], 12.34, 5.0], [MODELS[1], None, None]]
    assert document["papers"][1]["own"] == [0]
    results = str(export_files(content(), ["markdown"])["results.md"])
    assert "| **onnx:first.onnx** | **61.50** | **yours** |" in results
    assert "> These are training pictures." in results
    assert "| onnx:chooser.onnx (surrogate) | all | all | all | 40 | 30.0 [22.0, 38.0] |" in results


def test_a_row_with_a_cell_too_few_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 2 cells in every row of 'T'"):
        PaperTable(title="T", rule="", columns=("a", "b"), rows=(("x",),))


def test_the_summary_keeps_to_its_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    files = export_files(content(), ["json"])
    document, schema = (json.loads(str(files[name])) for name in ("summary.json", "summary.schema.json"))
    assert list(jsonschema.Draft202012Validator(schema).iter_errors(document)) == []


def test_an_answer_alone_has_no_five_best_and_no_number_for_them() -> None:
    nothing = Estimate(float("nan"), float("nan"), float("nan"), 0)
    rows = [row._replace(top5=nothing) for row in content().accuracies[:1]]
    (line,) = csv.DictReader(io.StringIO(accuracies_to_csv(rows)))
    assert (line["top1"], line["top5"]) == ("60.0000", "nan")
    assert "five best" not in write_headline(replace(content(), accuracies=rows))[0].text


def test_names_of_a_collection_cannot_add_an_element_to_the_page() -> None:
    plain = content()
    run = replace(
        plain.run, models=(HOSTILE,), collection=HOSTILE, collection_digest=HOSTILE, notes=(HOSTILE,),
        surrogates={HOSTILE: HOSTILE}, model_digests={HOSTILE: "0"}, preprocessing={HOSTILE: None},
    )  # fmt: skip
    table = PaperTable(title=HOSTILE, rule=HOSTILE, columns=(HOSTILE,), rows=((HOSTILE,),), footnotes=(HOSTILE,))
    rows = [row._replace(model=HOSTILE, edit=HOSTILE, level=HOSTILE) for row in plain.accuracies[::3]]
    page = Tags(render_page(replace(plain, run=run, papers=(table,), accuracies=rows, examples=[])))
    assert page.tags.count("script") == 1
    assert page.tags.count("img") == 0


def test_commands_in_notes_are_set_as_code_and_lone_backticks_stay_as_they_are() -> None:
    notes = ("see `verify status <all>` first", "a lone ` is no command")
    page = render_page(replace(content(), run=replace(RUN, notes=notes)))
    assert page.count("See <code>verify status &lt;all&gt;</code> first.") == 2  # at the top and at the collection
    assert "A lone ` is no command." in page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        instance = chromium(playwright)
        yield instance
        instance.close()


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_its_window_and_does_not_complain(browser: Browser, tmp_path: Path, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(write_page(tmp_path, content()).as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator(".chart.first .row").count() == 3  # all pictures, and two kinds
    assert page.locator("#accuracies .badge").first.get_attribute("title") == (
        "surrogate: chose pictures by failing on them; its accuracy on those is low by construction"
    )
    page.close()
    assert complaints == []


def test_every_export_of_pictures_without_originals_tells_accuracies_and_marks() -> None:
    files = export_files(content(), ["csv", "latex", "huggingface", "svg"])
    overall = list(csv.DictReader(io.StringIO(str(files["timm/results-hard.csv"]))))
    assert [(row["model"], row["top1"], row["top5"]) for row in overall] == [
        (MODELS[0], "60.000", "70.000"), (MODELS[1], "45.000", "55.000"), (MODELS[2], "30.000", "40.000"),
    ]  # fmt: skip
    assert {name for name in files if name.startswith("timm/")} == {
        "timm/results-hard.csv", "timm/results-painted-bricks.csv", "timm/results-scene-sea.csv",
    }  # fmt: skip
    tex = str(files["results.tex"])
    assert "onnx:chooser.onnx (surrogate)" in tex
    assert r"all pictures & $60.0\;[52.0, 68.0]$ & $45.0\;[37.0, 53.0]$ & $30.0\;[22.0, 38.0]$ \\" in tex
    card = yaml.safe_load(str(files["huggingface/onnx-chooser.onnx/.eval_results/counterfoil.yaml"]))
    assert card[0]["dataset"] == {"id": "OWNER/hard", "task_id": "all"}
    assert "chose pictures by failing" in card[0]["notes"]
    index = yaml.safe_load(str(files["huggingface/onnx-first.onnx/model-index.yaml"]))["model-index"][0]
    assert index["results"][0]["dataset"]["revision"] == "c0ffee" * 10
    assert index["results"][0]["metrics"][0]["value"] == 60.0
    assert "onnx:chooser.onnx (surrogate)" in str(files["figures/accuracies.svg"])


def test_kinds_that_cannot_be_told_from_the_lowest_are_counted_where_they_are_many() -> None:
    levels = [("texture", "painted", f"stuff {place}") for place in range(40)]
    rows = [accuracy(MODELS[0], group, 50.0, "a") for group in (("all", "all", "all"), *levels)]
    texts = [finding.text for finding in write_headline(replace(content(), accuracies=rows))]
    assert any("; 39 other kinds may be as low" in text for text in texts)
