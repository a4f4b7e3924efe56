"""The numbers in other people's forms, read back by other people's readers where there are any."""

from __future__ import annotations

import csv
import importlib.util
import io
import itertools
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from PIL import Image

from command_line import counterfoil
from counterfoil.errors import UserError
from counterfoil.report.content import ReportContent, build_content
from counterfoil.report.drawing import Drawing, Label, to_matplotlib, to_pdf
from counterfoil.report.exports import EXPORTS, export_files, parse_export_names
from counterfoil.report.figures import draw_charts
from counterfoil.study.runs import open_runs
from counterfoil.study.thumbnails import ThumbnailCache
from run_folders import breaks_on, write_run

WEAK = breaks_on({"original": 4, "background-swap": 24, "size:0.05": 10, "size:0.2": 6})
STRONG = breaks_on({"original": 6, "background-swap": 8, "size:0.05": 10, "size:0.2": 6})
NAMES = ("onnx:weak_50%.onnx", "strong")


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> ReportContent:
    run = write_run(tmp_path_factory.mktemp("run"), dict(zip(NAMES, (WEAK, STRONG), strict=True)))
    study = open_runs([run])
    found = build_content(study, ThumbnailCache((run,), lambda variant: None))
    return replace(found, top5_drops=study.top5_drops)


def test_csv_has_timms_columns_ranks_and_differences(content: ReportContent) -> None:
    files = export_files(content, ["csv"])
    original = list(csv.reader(io.StringIO(str(files["timm/results-original.csv"]))))
    assert original[0][:5] == ["model", "top1", "top1_err", "top5", "top5_err"]
    assert original[1][:5] == [NAMES[0], "90.000", "10.000", "100.000", "0.000"]
    swapped = list(csv.DictReader(io.StringIO(str(files["timm/results-background-swap-other.csv"]))))
    ranks = [(row["model"], row["top1"], row["top1_diff"], row["rank_diff"]) for row in swapped]
    assert ranks == [("strong", "80.000", "-5.000", "+1"), (NAMES[0], "40.000", "-50.000", "-1")]
    assert [row["top5_diff"] for row in swapped] == ["+0.000", "+0.000"]


def test_json_keeps_to_the_schema_that_lies_beside_it(content: ReportContent) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    files = export_files(content, ["json"])
    document, schema = (json.loads(str(files[name])) for name in ("summary.json", "summary.schema.json"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(document)
    assert not validator.is_valid({**document, "drops": [{**document["drops"][0], "drop": "much"}]})
    assert not validator.is_valid({name: value for name, value in document.items() if name != "contrasts"})


def test_the_schema_names_every_key_of_the_summary(content: ReportContent) -> None:
    files = export_files(content, ["json"])
    document, schema = (json.loads(str(files[name])) for name in ("summary.json", "summary.schema.json"))
    assert set(document) == set(schema["properties"])
    for name in ("drops", "attributes", "contrasts", "findings"):
        assert set(document[name][0]) == set(schema["properties"][name]["items"]["required"])
    assert set(document["run"]) == set(schema["$defs"]["run"]["required"])


def test_latex_has_as_many_cells_as_columns_and_escapes_names(content: ReportContent) -> None:
    text = str(export_files(content, ["latex"])["results.tex"])
    assert r"onnx:weak\_50\%.onnx" in text
    assert r"$\mathbf{50.0}\;[" in text
    columns = len(re.findall(r"begin\{tabular\}\{(\w+)\}", text)[0])
    rows = [line for line in text.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
    assert {line.count(" & ") + 1 for line in rows} == {columns} == {4}
    assert text.count("{") == text.count("}")
    assert text.index(r"\toprule") < text.index(r"\midrule") < text.index(r"\bottomrule")


def test_markdown_opens_with_the_findings(content: ReportContent) -> None:
    text = str(export_files(content, ["markdown"])["results.md"])
    assert text.startswith("# Another background costs onnx:weak_50%.onnx most\n\n- onnx:weak_50%.onnx is right on")
    assert "| strong | background | background-swap | other | 40 | 85.0 | 80.0 | 5.0 [" in text


def test_hugging_face_cards_read_back(content: ReportContent) -> None:
    files = export_files(content, ["huggingface"])
    index = yaml.safe_load(str(files["huggingface/strong/model-index.yaml"]))["model-index"][0]
    assert index["name"] == "strong"
    by_config = {result["dataset"]["config"]: result for result in index["results"]}
    assert by_config["original"]["metrics"][0] == {"type": "accuracy", "name": "top-1 accuracy, percent", "value": 85.0}
    drop = {metric["type"]: metric["value"] for metric in by_config["background-swap-other"]["metrics"]}
    assert (drop["accuracy"], drop["accuracy_drop"]) == (80.0, 5.0)
    entries = yaml.safe_load(str(files["huggingface/strong/.eval_results/counterfoil.yaml"]))
    assert entries[0] == {
        "dataset": {"id": "OWNER/attributes", "task_id": "original"}, "value": 85.0,
        "notes": "top-1 on the unedited photos, n = 40",
    }  # fmt: skip


FIGURES = {"losses", "edits-size", "calibration"}


def test_figures_come_as_svg_pdf_and_png_with_the_same_words_and_size(content: ReportContent) -> None:
    pypdf = pytest.importorskip("pypdf")
    pytest.importorskip("matplotlib")
    files = export_files(content, ["svg", "pdf", "png"])
    assert set(files) == {f"figures/{name}.{form}" for name in FIGURES for form in ("svg", "pdf", "png")}
    for name in FIGURES:
        drawing = ElementTree.fromstring(str(files[f"figures/{name}.svg"]))
        words = [text.text or "" for text in drawing.iter("{http://www.w3.org/2000/svg}text")]
        width, height = (float(drawing.attrib[side].removesuffix("pt")) for side in ("width", "height"))
        (page,) = pypdf.PdfReader(io.BytesIO(_bytes(files, f"figures/{name}.pdf"))).pages
        assert sorted("".join(words).replace(" ", "")) == sorted("".join(page.extract_text().split()))
        assert (float(page.mediabox.width), float(page.mediabox.height)) == pytest.approx((width, height))
        picture = Image.open(io.BytesIO(_bytes(files, f"figures/{name}.png")))
        assert picture.size == pytest.approx((width * 300 / 72, height * 300 / 72), abs=1)


def test_a_pdf_figure_carries_its_fonts_as_truetype(content: ReportContent) -> None:
    pypdf = pytest.importorskip("pypdf")
    pytest.importorskip("matplotlib")
    for name, data in export_files(content, ["pdf"]).items():
        (page,) = pypdf.PdfReader(io.BytesIO(bytes(data))).pages  # type: ignore[arg-type]
        fonts = [font.get_object() for font in page["/Resources"]["/Font"].get_object().values()]
        assert fonts, name
        for font in fonts:
            (descendant,) = font["/DescendantFonts"]
            assert "/FontFile2" in descendant.get_object()["/FontDescriptor"].get_object(), name


def test_the_same_figure_has_the_same_bytes_whatever_the_clock_and_the_users_matplotlibrc_say(
    content: ReportContent, monkeypatch: pytest.MonkeyPatch
) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    first = export_files(content, ["pdf", "png"])
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    settings = {"savefig.bbox": "tight", "savefig.dpi": 50, "font.family": "serif", "pdf.fonttype": 3}
    with matplotlib.rc_context(settings):
        assert export_files(content, ["pdf", "png"]) == first
    assert not any(b"CreationDate" in data for data in first.values())


@pytest.mark.parametrize("models", [2, 6, 12])
def test_labels_of_figures_stay_on_the_page_and_apart_from_each_other(tmp_path: Path, models: int) -> None:
    """In matplotlib's font, which is wider than the one that the SVG names."""
    pytest.importorskip("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    run = write_run(tmp_path, {f"net {place}": (WEAK, STRONG)[place % 2] for place in range(models)})
    for name, drawing in draw_charts(build_content(open_runs([run]), ThumbnailCache((run,), lambda variant: None))):
        figure = to_matplotlib(drawing)
        renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
        extents = [text.get_window_extent(renderer) for text in figure.axes[0].texts]
        for extent in extents:
            assert 0 <= extent.x0 <= extent.x1 <= drawing.width, name
            assert 0 <= extent.y0 <= extent.y1 <= drawing.height, name
        assert not any(_overlap(one, other) for one, other in itertools.combinations(extents, 2)), name


def _overlap(one: Any, other: Any) -> bool:
    """Whether two labels share more than the empty lines above and below their letters."""
    wide = min(one.x1, other.x1) - max(one.x0, other.x0)
    high = min(one.y1, other.y1) - max(one.y0, other.y0)
    return bool(wide > 0 and high > 2)


def test_a_figure_shows_names_with_dollars_and_foreign_letters(recwarn: pytest.WarningsRecorder) -> None:
    pypdf = pytest.importorskip("pypdf")
    pytest.importorskip("matplotlib")
    page = to_pdf(Drawing(200, 40, [Label(4, 20, "−2 Größe $x_1^2$"), Label(4, 36, "猫")]))
    assert "−2 Größe $x_1^2$" in pypdf.PdfReader(io.BytesIO(page)).pages[0].extract_text()
    assert not recwarn.list


def _bytes(files: Mapping[str, str | bytes], name: str) -> bytes:
    data = files[name]
    assert isinstance(data, bytes)
    return data


def test_pdf_and_png_without_matplotlib_say_what_to_install_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path / "run", {"weak": WEAK})
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for form in ("pdf", "png", "all"):
        done = counterfoil("report", run, "--out", tmp_path / "out", "--export", form)
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert "'matplotlib', which is not installed; run: pip install 'counterfoil[figures]'" in line
        assert not (tmp_path / "out").exists()
    done = counterfoil("report", run, "--out", tmp_path / "out", "--export", "svg")
    assert done.returncode == 0
    assert (tmp_path / "out" / "figures" / "losses.svg").exists()


def test_exports_are_named_or_refused() -> None:
    assert parse_export_names("all") == list(EXPORTS)
    assert parse_export_names("csv, latex") == ["csv", "latex"]
    for text in ("exel", ","):
        with pytest.raises(UserError, match="expected exports among csv, json"):
            parse_export_names(text)


def test_a_tracker_that_is_not_installed_says_what_to_install(tmp_path: Path) -> None:
    if importlib.util.find_spec("mlflow"):
        pytest.skip("mlflow is installed here")
    run = write_run(tmp_path / "run", {"net": WEAK})
    done = counterfoil("report", run, "--out", tmp_path / "out", "--log", "mlflow")
    assert done.returncode == 2
    assert "pip install mlflow" in done.stderr


def test_mlflow_holds_one_run_per_model_with_its_drops(
    content: ReportContent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    from counterfoil.report.integrations import log_to_mlflow

    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    page = tmp_path / "report.html"
    page.write_text("<!doctype html>")
    log_to_mlflow(content, page)
    experiment = mlflow.get_experiment_by_name("counterfoil")
    runs = mlflow.MlflowClient().search_runs([experiment.experiment_id])
    assert {run.info.run_name: run.data.metrics["drop/background-swap/other"] for run in runs} == {
        NAMES[0]: 50.0, NAMES[1]: 5.0,
    }  # fmt: skip


def test_weights_and_biases_takes_the_numbers_offline(
    content: ReportContent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb")
    from counterfoil.report.integrations import log_to_wandb

    for name, value in (("WANDB_MODE", "offline"), ("WANDB_DIR", str(tmp_path)), ("WANDB_SILENT", "true")):
        monkeypatch.setenv(name, value)
    page = tmp_path / "report.html"
    page.write_text("<!doctype html>")
    log_to_wandb(content, page)
    assert len(list((tmp_path / "wandb").glob("offline-run-*/*.wandb"))) == 2
