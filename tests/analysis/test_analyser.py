"""`analyse`: every question on answers that are written down, the page, the JSON, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pytest
from scipy import stats

from answer_files import write_csv, write_cue_conflicts, write_imagenet_x, write_plain_answers
from archives import class_archives, edit_archives
from command_line import counterfoil
from counterfoil.analysis import analyser
from counterfoil.analysis.analyser import QUESTIONS, Analysis, QuestionAnswer, analyse_runs, render_analysis_json
from counterfoil.analysis.analysis_page import render_analysis
from counterfoil.analysis.benchmark_questions import ask_effective_robustness, ask_error_ratios
from counterfoil.analysis.evidence import AnalysisOptions, Evidence, MeasuredNumber
from counterfoil.analysis.failure_questions import ask_calibration, ask_failure_modes, ask_other_classes
from counterfoil.errors import UserError
from counterfoil.imported_answers import ImportConfig, import_answers
from counterfoil.published.catalogue import evaluate_collection
from counterfoil.published.imagenet_c.score import alexnet_errors
from counterfoil.statistics.variance_score import ScoreDefinition, variance_score
from counterfoil.store.answer_table import AnswerColumns
from counterfoil.store.workspace import Workspace
from counterfoil.study.runs import open_runs
from counterfoil.types import Decision, VerificationResult
from mining_workspace import saved_answers, write_workspace, wrong_on

CLASSES, PER_CLASS, MODELS = 6, 12, 6
PHOTOS = CLASSES * PER_CLASS
CONDITIONS = (
    "original", "background-swap same", "background-swap other", "size 0.05",
    *(f"corruption-fog {severity}" for severity in range(1, 6)),
)  # fmt: skip


def right_answers() -> dict[str, dict[str, Any]]:
    """Which photos each model has right in each condition; better models lose less."""
    rng = np.random.default_rng(7)
    hard = rng.random(PHOTOS)
    return {
        f"model-{m}": {
            condition: hard < 0.97 - 0.03 * m - 0.06 * place - 0.01 * m * place + 0.2 * (rng.random(PHOTOS) - 0.5)
            for place, condition in enumerate(CONDITIONS)
        }
        for m in range(MODELS)
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that most questions can be put to."""
    folder = tmp_path_factory.mktemp("whole")
    rows = [
        (model, f"p{p}", condition, f"c{(p + (not right[p])) % 6}", f"c{p % 6}", 0.9 if right[p] else 0.7)
        for model, by_condition in right_answers().items()
        for condition, right in by_condition.items()
        for p in range(PHOTOS)
    ]  # fmt: skip
    header = ("model", "sample", "condition", "prediction", "label", "confidence")
    import_answers(ImportConfig(answers=(write_csv(folder / "answers.csv", header, rows),)), folder / "run")
    return folder / "run"


@pytest.fixture(scope="module")
def analysis(whole: Path) -> Analysis:
    return analyse_runs([whole])


def answer_to(analysis: Analysis, question: str) -> QuestionAnswer:
    return next(row for row in analysis.answers if row.question.id == question)


def number(row: QuestionAnswer, measure: str, model: str = "") -> MeasuredNumber:
    return next(n for n in row.reply.numbers if (n.measure, n.model) == (measure, model))


def test_every_question_that_the_papers_leave_open_is_put_to_a_run() -> None:
    named = {
        "transfer", "surrogates", "failure-modes", "set-biases", "normality", "verification", "annotator-agreement",
        "score-and-other-measures", "other-classes",
    }  # fmt: skip
    assert named == {question.id for question in QUESTIONS if question.origin.startswith("open question")}
    assert len({question.id for question in QUESTIONS}) == len(QUESTIONS)


def test_a_run_with_models_classes_and_edits_answers_all_but_what_it_lacks(analysis: Analysis) -> None:
    open_ones = {row.question.id for row in analysis.answers if not row.judged}
    assert open_ones == {"verification", "annotator-agreement", "shape-bias", "controls", "natural-ground"}
    assert all(row.reply.answer.startswith("not judged: needs ") for row in analysis.answers if not row.judged)


def test_controls_and_the_loss_on_another_photos_background_are_answered(tmp_path: Path) -> None:
    wrong = {
        "original": 2, "control": 2, "fill-control": 10, "background-swap other": 8, "size 0.05": 20,
        "flip upside-down": 16, "combine-donor background-swap other + size 0.05": 24,
    }  # fmt: skip
    rows = [("net", f"p{p}", condition, int(p >= n)) for condition, n in wrong.items() for p in range(40)]
    answers = write_csv(tmp_path / "answers.csv", ("model", "sample", "condition", "correct"), rows)
    import_answers(ImportConfig(answers=(answers,)), tmp_path / "run")
    analysis = analyse_runs([tmp_path / "run"])
    ground = answer_to(analysis, "natural-ground")
    assert number(ground, "loss on background-swap other, size 0.05", "net").value == 40
    assert number(ground, "loss on its own background, filled, size 0.05", "net").value == 45
    assert (tmp_path / "run" / "natural_ground.csv").read_text().splitlines()[1].startswith("net,size 0.05,")
    controls = answer_to(analysis, "controls")
    assert number(controls, "cost of fill-control", "net").value == 20
    assert number(controls, "loss counted from fill-control, size 0.05", "net").value == 25
    assert "not beyond what controls and tool explain: net under flip upside-down." in controls.reply.answer


def accuracies(model: str) -> Any:
    table = right_answers()[model]
    return np.array([[table[c][np.arange(PHOTOS) % 6 == k].mean() for k in range(6)] for c in CONDITIONS])


def test_the_variance_score_is_that_of_the_accuracies_by_scenario_and_class(analysis: Analysis) -> None:
    row = answer_to(analysis, "variance-score")
    for model in ("model-0", "model-5"):
        expected = variance_score(accuracies(model))
        assert number(row, "S", model).value == pytest.approx(expected.score)
        assert number(row, "sigma over scenarios", model).value == pytest.approx(accuracies(model).mean(axis=1).var())
    assert "population variance" in row.reply.notes[0]


def test_another_reading_of_the_score_is_named(whole: Path) -> None:
    chosen = AnalysisOptions(definition=ScoreDefinition("deviation", "sample", "overall"))
    row = answer_to(analyse_runs([whole], chosen), "variance-score")
    assert "sample standard deviation" in row.reply.notes[0]
    expected = 1 - accuracies("model-1").mean(axis=0).std(ddof=1) - accuracies("model-1").mean(axis=1).std(ddof=1)
    assert number(row, "S", "model-1").value == pytest.approx(expected)


def test_normality_is_shapiro_and_wilks(analysis: Analysis) -> None:
    row = answer_to(analysis, "normality")
    expected = stats.shapiro(accuracies("model-2").ravel())
    assert number(row, "W", "model-2").value == pytest.approx(expected.statistic)
    assert number(row, "p", "model-2").value == pytest.approx(expected.pvalue)


def test_the_regression_explains_the_planted_order(analysis: Analysis) -> None:
    row = answer_to(analysis, "regression")
    shares = [number(row, f"share of variance, {name}").value for name in ("model", "scenario", "class")]
    assert shares[1] == max(shares)
    assert number(row, "p, scenario").value < 0.001
    assert number(row, "scenario size 0.05").value < 0


def test_the_background_gap_is_the_difference_of_two_accuracies(analysis: Analysis) -> None:
    table = right_answers()["model-3"]
    gap = 100 * (table["background-swap same"].mean() - table["background-swap other"].mean())
    row = answer_to(analysis, "background-gap")
    assert number(row, "BG-gap", "model-3").value == pytest.approx(gap)
    both = 100 * (table["background-swap same"] & table["background-swap other"]).mean()
    assert number(row, "right on every background", "model-3").value == pytest.approx(both)


def test_one_corruption_gives_its_error_relative_to_alexnets_and_no_mce(analysis: Analysis) -> None:
    table = right_answers()["model-0"]
    error = np.mean([1 - table[f"corruption-fog {severity}"].mean() for severity in range(1, 6)])
    row = answer_to(analysis, "corruption-error")
    assert number(row, "CE, fog", "model-0").value == pytest.approx(100 * error / alexnet_errors()["fog"])
    assert "no mCE" in row.reply.notes[1]
    assert not any(n.measure == "mCE" for n in row.reply.numbers)


def test_difficulty_is_traced_beyond_four_surrogates(analysis: Analysis) -> None:
    row = answer_to(analysis, "surrogates")
    means = [number(row, f"right where {size} fail, mean").value for size in (1, 2)]
    assert means[0] > means[1]
    assert "surrogate" in row.reply.answer


def test_shared_failures_transfer_where_photos_are_hard_for_all(analysis: Analysis) -> None:
    row = answer_to(analysis, "transfer")
    assert number(row, "difference", "model-2").low > 0
    assert row.reply.answer.startswith("Yes for")


def test_the_score_is_compared_with_the_other_measures_by_ranks(analysis: Analysis) -> None:
    row = answer_to(analysis, "score-and-other-measures")
    scores = [variance_score(accuracies(f"model-{m}")).score for m in range(MODELS)]
    clean = [right_answers()[f"model-{m}"]["original"].mean() for m in range(MODELS)]
    expected = stats.spearmanr(scores, clean).statistic
    assert number(row, "rho of S and accuracy on unedited photos").value == pytest.approx(expected)


def test_annotated_factors_have_error_ratios(tmp_path: Path) -> None:
    files, annotations = write_imagenet_x(tmp_path, {"ResNet50": 0.8, "ViT": 0.9})
    columns = AnswerColumns(sample="file_name", prediction="predicted_class", label="class")
    config = ImportConfig(answers=tuple(files), columns=columns, models=("ResNet50", "ViT"), annotations=annotations)
    import_answers(config, tmp_path / "run")
    row = answer_to(analyse_runs([tmp_path / "run"]), "error-ratios")
    by_factor = {n.measure: n for n in row.reply.numbers if n.model == "ResNet50"}
    assert set(by_factor) == {"pose", "background", "smaller", "texture"}
    assert by_factor["smaller"].low > 1
    assert by_factor["pose"].low < 1 < by_factor["pose"].high
    assert "ResNet50 errs most on smaller" in row.reply.answer


def test_cue_conflicts_have_a_shape_bias(tmp_path: Path) -> None:
    table = write_cue_conflicts(tmp_path / "cue.csv", {"resnet50": 0.2, "subject-01": 0.9})
    columns = AnswerColumns(model="subj", sample="imagename", prediction="object_response", label="category")
    config = ImportConfig(answers=(table,), columns=columns, original="0", sample_pattern=r"([^_]+)\.png$")
    import_answers(config, tmp_path / "run")
    row = answer_to(analyse_runs([tmp_path / "run"]), "shape-bias")
    assert number(row, "shape bias", "resnet50").value == pytest.approx(20)
    assert number(row, "shape bias", "subject-01").value == pytest.approx(90)
    assert number(row, "neither shape nor texture", "resnet50").value == 30


def test_reference_models_give_the_line_of_effective_robustness(whole: Path, tmp_path: Path) -> None:
    rows = [("a", 60, 40), ("b", 80, 60), ("c", 90, 75)]
    table = write_csv(tmp_path / "line.csv", ("model", "clean", "shifted"), rows)
    row = answer_to(analyse_runs([whole], AnalysisOptions(reference=table)), "effective-robustness")
    assert row.judged
    assert "the reference models" in row.reply.answer


def test_peoples_verdicts_say_what_verification_changes_and_how_far_they_agree(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "workspace", 24)
    saved = saved_answers(tmp_path / "target.csv", workspace, wrong_on("background-swap", range(12)))
    swaps = [s.variant for s in workspace.pictures if s.variant.edit == "background-swap"]
    rows = tuple(Decision(v.id, place % 2 == 0, {}, {"seen": "yes"}) for place, v in enumerate(swaps))
    agreement: Mapping[str, Mapping[str, float]] = {
        "seen": {"percent_agreement": 91, "percent_agreement_low": 80, "percent_agreement_high": 97, "pictures": 24}
    }
    workspace.keep_verified(
        VerificationResult(
            rule="majority", questions={"seen": "Seen?"}, annotators=3, agreement=agreement, decisions=rows,
            workspace_digest=workspace.digest,
        )
    )  # fmt: skip
    assert counterfoil("evaluate", workspace.folder, "--model", saved, "--out", tmp_path / "run").returncode == 0
    analysis = analyse_runs([tmp_path / "run"])
    changed, agreed = (answer_to(analysis, name) for name in ("verification", "annotator-agreement"))
    assert number(changed, "kept by people, all").value == pytest.approx(50)
    assert "People keep 12 of 24 pictures" in changed.reply.answer
    assert "seen: 91.0 % [80.0, 97.0] of pairs of answers agree" in agreed.reply.answer
    assert Workspace(workspace.folder).verified is not None


def test_the_document_follows_its_schema_and_the_page_shows_every_answer(analysis: Analysis) -> None:
    path = Path(analyser.__file__).with_name("analysis.schema.json")
    document = json.loads(json.dumps(render_analysis_json(analysis), allow_nan=False))
    jsonschema.validate(document, json.loads(path.read_text(encoding="utf-8")))
    assert [row["id"] for row in document["questions"]] == [question.id for question in QUESTIONS]
    page = render_analysis(analysis)
    assert all(f'id="{question.id}"' in page for question in QUESTIONS)
    assert "<script" not in page


def test_the_command_prints_the_answers_and_writes_page_or_json(whole: Path, tmp_path: Path) -> None:
    done = counterfoil("analyse", whole, "--out", tmp_path / "page")
    assert (done.returncode, done.stderr) == (0, "")
    assert "BG-gap" in done.stdout
    assert {path.name for path in (tmp_path / "page").iterdir()} == {"analysis.html", "analysis.json"}
    assert counterfoil("analyse", "--json", tmp_path / "one.json", whole).returncode == 0
    assert json.loads((tmp_path / "one.json").read_text())["schema"] == "counterfoil-analysis-1"
    assert not (whole / "analysis").exists()


def test_too_few_photos_are_not_judged_with_the_number_that_would_do(tmp_path: Path) -> None:
    rows = [("m", f"p{p}", c, "c0", f"c{p % 4}") for c in ("original", "fog") for p in range(8)]
    table = write_csv(tmp_path / "t.csv", ("model", "sample", "condition", "prediction", "label"), rows)
    import_answers(ImportConfig(answers=(table,)), tmp_path / "run")
    analysis = analyse_runs([tmp_path / "run"])
    assert "20 photos of these 4 classes, got 8" in answer_to(analysis, "variance-score").reply.answer
    assert "24 photos for 12 folds of two, got 8; add 16" in answer_to(analysis, "cross-validation").reply.answer
    assert not any(row.judged for row in analysis.answers if row.question.id != "set-biases" and row.reply.numbers)


def test_what_a_new_class_loses_to_position_leaves_out_what_the_size_costs(tmp_path: Path) -> None:
    lost = {"original": 0, "size 0.05": 4, "position random@0.05": 5}  # of the ten photos of each class
    rows = [
        ("net", f"{c}-{p}", condition, f"c{c}" if p >= n else "other", f"c{c}")
        for condition, n in lost.items() for c in range(6) for p in range(10)
    ]  # fmt: skip
    answers = write_csv(tmp_path / "answers.csv", ("model", "sample", "condition", "prediction", "label"), rows)
    import_answers(ImportConfig(answers=(answers,)), tmp_path / "run")
    row = answer_to(analyse_runs([tmp_path / "run"]), "other-classes")
    assert number(row, "drop, mean over classes, size", "net").value == pytest.approx(40)
    assert number(row, "drop, mean over classes, position", "net").value == pytest.approx(10)


def test_shared_failures_that_are_too_few_are_counted(tmp_path: Path) -> None:
    rows = [
        (f"net-{m}", f"p{p}", condition, p >= (7 if condition == "fog" else 0))
        for m in range(2) for condition in ("original", "fog") for p in range(60)
    ]  # fmt: skip
    answers = write_csv(tmp_path / "answers.csv", ("model", "sample", "condition", "correct"), rows)
    import_answers(ImportConfig(answers=(answers,)), tmp_path / "run")
    words = answer_to(analyse_runs([tmp_path / "run"]), "transfer").reply.answer
    assert "needs 10 pictures on which all but one model fail, got 7 at most" in words


def test_calibration_says_whether_probabilities_are_missing_or_answers(tmp_path: Path) -> None:
    header = ("model", "sample", "condition", "correct")
    rows = [("net", f"p{p}", condition, p % 3 > 0) for condition in ("original", "fog") for p in range(20)]
    files = {
        "without": write_csv(tmp_path / "without.csv", header, rows),
        "few": write_csv(tmp_path / "few.csv", (*header, "confidence"), [(*row, 0.7) for row in rows]),
    }
    for name, file in files.items():
        import_answers(ImportConfig(answers=(file,)), tmp_path / name)
    without, few = (answer_to(analyse_runs([tmp_path / name]), "calibration").reply.answer for name in files)
    assert "needs the probability of each answer; add a column `confidence`" in without
    assert "needs 50 answers of a model with their probability, got 20; add photos" in few


def test_answers_without_classes_say_which_column_is_missing(tmp_path: Path) -> None:
    table = write_plain_answers(tmp_path / "t.csv", {"m": {"original": 0.9, "fog": 0.5}})
    import_answers(ImportConfig(answers=(table,)), tmp_path / "run")
    row = answer_to(analyse_runs([tmp_path / "run"]), "variance-score")
    assert row.reply.answer == "not judged: needs the photos' classes; add a column `label` to the imported table"


def test_a_model_without_a_photo_in_every_scenario_leaves_the_other_questions_answered(tmp_path: Path) -> None:
    rows = [
        (f"m{m}", f"p{p}", condition, f"c{(p + (p % 7 < m)) % 2}", f"c{p % 2}")
        for m in range(5)
        for p in range(40)
        for condition in (("original", "fog", "rain") if m else ("original", "fog" if p % 4 < 2 else "rain"))
    ]
    table = write_csv(tmp_path / "t.csv", ("model", "sample", "condition", "prediction", "label"), rows)
    import_answers(ImportConfig(answers=(table,)), tmp_path / "run")
    analysis = analyse_runs([tmp_path / "run"])
    row = answer_to(analysis, "score-and-other-measures")
    assert row.reply.answer.startswith("not judged: needs photos that are answered in every scenario")
    assert "got none of m0" in row.reply.answer
    assert any(other.judged for other in analysis.answers)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("model,clean\na,50\n", "expected the columns model, clean, shifted"),
        ("model,clean,shifted\na,50,120\n", "above 0 and below 100, in line 2"),
        ("model,clean,shifted\na,50,40\n", "two different models at least"),
    ],
)
def test_a_reference_that_cannot_be_used_is_refused_in_one_line(
    whole: Path, tmp_path: Path, content: str, words: str
) -> None:
    (tmp_path / "line.csv").write_text(content)
    done = counterfoil("analyse", whole, "--reference", tmp_path / "line.csv")
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_folder_that_is_no_run_or_no_workspace_is_refused(whole: Path, tmp_path: Path) -> None:
    assert counterfoil("analyse", tmp_path).returncode == 2
    with pytest.raises(UserError, match="expected a workspace"):
        analyse_runs([whole], AnalysisOptions(workspace=tmp_path))


ARCHIVES: dict[str, tuple[Callable[[Path], Path], set[str]]] = {
    "imagenet-e": (edit_archives.imagenet_e, {"failure-modes", "set-biases"}),
    "imagenet-d": (class_archives.imagenet_d_archive, {"set-biases"}),
    "ximagenet-12": (edit_archives.ximagenet_12, {"set-biases", "error-ratios"}),
    "imagenet-9": (edit_archives.imagenet_9, {"background-gap", "set-biases"}),
    "imagenet-c": (class_archives.imagenet_c, {"corruption-error", "set-biases"}),
    "imagenet-sketch": (class_archives.imagenet_sketch, {"set-biases"}),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_published_archives_are_asked_the_same_questions(name: str, tmp_path: Path) -> None:
    make, answered = ARCHIVES[name]
    models = [f"python:archives.class_colours:{which}" for which in ("tells", "tells_the_next")]
    evaluate_collection(f"{name}:{make(tmp_path / 'archive')}", models, tmp_path / "run", workers=1)
    analysis = analyse_runs([tmp_path / "run"])
    assert answered <= {row.question.id for row in analysis.judged}
    assert len(analysis.answers) == len(QUESTIONS)
    assert render_analysis(analysis)
    json.dumps(render_analysis_json(analysis), allow_nan=False)


def write_empty_table(folder: Path, seed: int) -> Path:
    """Three models that are right on 85 % under every condition, whatever the class; annotated with random factors."""
    rng = np.random.default_rng([17, seed])
    conditions = (
        "original",
        "background-blur 15/3",
        "size 0.05",
        "position random",
        "object-hue 60",
        "corruption-fog 3",
    )
    hard = rng.normal(size=72)
    rows = []
    for model in ("a", "b", "c"):
        for condition in conditions:
            right = 0.7 * hard + 0.7 * rng.normal(size=72) < 1.04
            said = (np.arange(72) + np.where(right, 0, rng.integers(1, 6, 72))) % 6
            sure = rng.uniform(0.75, 0.95, 72).round(3)
            rows += [(model, f"p{p}", condition, f"c{said[p]}", f"c{p % 6}", sure[p]) for p in range(72)]
    header = ("model", "sample", "condition", "prediction", "label", "confidence")
    factors = [(f"p{p}", *(rng.random(8) < 0.3).astype(int)) for p in range(72)]
    annotations = write_csv(folder / f"factors-{seed}.csv", ("sample", *(f"f{k}" for k in range(8))), factors)
    table = write_csv(folder / f"empty-{seed}.csv", header, rows)
    import_answers(ImportConfig(answers=(table,), annotations=annotations), folder / f"empty-{seed}")
    return folder / f"empty-{seed}"


NAMES_SOMETHING = {  # words of an answer that calls something different from nothing
    ask_calibration: "Confidence exceeds",
    ask_other_classes: "new class",
    ask_effective_robustness: "Off the line",
    ask_failure_modes: "beyond chance; the clearest",
}


def test_tables_without_any_effect_hardly_ever_name_one(tmp_path: Path) -> None:
    """Rows corrected by nothing named something in 20 to 50 % of such tables, question by question."""
    named: list[str] = []
    for seed in (5, 6):
        evidence = Evidence(open_runs([write_empty_table(tmp_path, seed)]), AnalysisOptions())
        answers = {ask: ask(evidence).answer for ask in NAMES_SOMETHING}
        named += [answer for ask, answer in answers.items() if NAMES_SOMETHING[ask] in answer]
        named += [part for part in ask_error_ratios(evidence).answer.split("; ") if "not shown" not in part]
    assert named == []
