"""Runs over look-alikes of the archives, scored by each paper's rule: every number worked out by hand."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas
import pytest
from click.testing import CliRunner

from archives import class_archives, edit_archives
from archives.class_colours import Tells, index_of
from counterfoil.cli import commands
from counterfoil.errors import UserError
from counterfoil.evaluation import EvaluationConfig, prepare_evaluation
from counterfoil.labels.benchmark_classes import imagenet_a
from counterfoil.labels.label_space import imagenet1k
from counterfoil.models.model_loaders import load_model
from counterfoil.published.catalogue import evaluate_collection, find_paper_rule, open_archive, open_collection
from counterfoil.published.published_numbers import read_published_numbers
from counterfoil.report.content import PaperTable
from counterfoil.store.parquet import read_table
from counterfoil.study.runs import open_runs
from run_folders import Right, breaks_on, write_run
from vlm_server import Exchange, FakeEndpoint, choose, serving

TELLS = "python:archives.class_colours:tells"
CHALLENGES = ("imagenet-9-challenge", "imagenet-9-challenge-all")
NEXT = "python:archives.class_colours:tells_the_next"


def results(name: str, folder: Path, models: Sequence[str] = (TELLS,), **asked: object) -> Sequence[PaperTable]:
    """The paper's tables of a run over the archive in a folder."""
    evaluate_collection(f"{name}:{folder}", models, folder.parent / "run", workers=2, **asked)  # type: ignore[arg-type]
    return paper_results(folder.parent / "run")


def paper_results(folder: Path) -> Sequence[PaperTable]:
    """The tables of one finished run; none where its collection is no published benchmark."""
    study = open_runs([folder])
    rule = find_paper_rule(study)
    return rule(study) if rule else ()


def row(table: PaperTable, model: str = TELLS) -> dict[str, float]:
    """One model's numbers by column."""
    (cells,) = [cells for cells in table.rows if str(cells[0]).startswith(model)]
    return {name: value for name, value in zip(table.columns, cells, strict=True) if isinstance(value, float)}


def test_imagenet_e_drops_against_the_original_and_their_mean_without_the_control(tmp_path: Path) -> None:
    accuracies, drops = results("imagenet-e", edit_archives.imagenet_e(tmp_path / "e"))
    columns = dict(zip(edit_archives.E_FOLDERS, accuracies.columns[1:], strict=True))
    assert row(accuracies) == pytest.approx(
        {columns[kind]: 100 * (6 - n) / 6 for kind, n in edit_archives.E_WRONG.items()}
    )
    found = row(drops)
    expected = {
        f"drop, {columns[kind]}": 100 * (n - 1) / 6 for kind, n in edit_archives.E_WRONG.items() if kind != "ori"
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert found["mean drop"] == pytest.approx(100 * 20 / 6 / 10)
    assert found["mean drop, low"] < found["mean drop"] < found["mean drop, high"]
    assert "minus top-1" in drops.rule
    assert "Inver" in drops.rule


def test_imagenet_d_counts_any_id_and_no_category_twice(tmp_path: Path) -> None:
    (table,) = results("imagenet-d", class_archives.imagenet_d_archive(tmp_path / "d"))
    shares = {
        "top-1, background": 4 / 6, "top-1, texture": 2 / 3, "top-1, material": 1 / 3, "top-1, all": 7 / 12,
        "top-5, background": 4 / 6, "top-5, texture": 3 / 3, "top-5, material": 2 / 3, "top-5, all": 9 / 12,
    }  # fmt: skip
    assert row(table) == pytest.approx({**{name: 100 * share for name, share in shares.items()}, "pictures": 12})
    assert "any of the category's ids" in table.rule
    assert any("partial copy" in note for note in table.footnotes)


def test_imagenet_d_takes_a_column_for_each_category_as_zero_shot_models_have(tmp_path: Path) -> None:
    model = "python:archives.class_colours:tells_the_category"
    (table,) = results("imagenet-d", class_archives.imagenet_d_archive(tmp_path / "d"), [model])
    assert row(table, model)["top-1, all"] == pytest.approx(100 * 7 / 12)


def test_imagenet_d_names_the_zero_shot_rule_and_its_prompt(tmp_path: Path) -> None:
    run = write_run(tmp_path, {"open_clip:ViT-B-32/x": breaks_on({}), "timm:x": breaks_on({})}, collection="imagenet-d")
    rules = {table.title: table.rule for table in paper_results(run)}
    assert "any of the category's ids" in rules["ImageNet-D, classifiers"]
    assert '113 categories, each described by the prompt "A photo of a {c}"' in rules["ImageNet-D, zero-shot"]


def test_ximagenet_12_scenarios_variance_score_and_folds(tmp_path: Path) -> None:
    accuracies, folds, scores, regression = results("ximagenet-12", edit_archives.ximagenet_12(tmp_path / "x"))
    found = row(accuracies)
    assert (found["original"], found["blur_bg"], found["seg_img"], found["rand_bg"]) == (100, 50, 50, 0)
    assert found["all pictures"] == pytest.approx(50)
    parts = row(folds)
    assert (parts["folds mean, original"], parts["folds deviation, original"]) == (100, 0)
    assert (parts["folds mean, rand_bg"], parts["folds deviation, rand_bg"]) == (0, 0)
    assert parts["folds mean, blur_bg"] == pytest.approx(50)
    score = row(scores)  # scenario means 1, eight times 0.5, 0; the classes are all alike
    assert score["sigma over classes"] == 0
    assert score["sigma over scenarios"] == pytest.approx(0.05)
    assert score["S"] == pytest.approx(0.95)
    assert "population variance" in scores.rule
    assert "all of a model's columns compete" in accuracies.rule
    assert any("training pictures" in note for note in accuracies.footnotes)
    assert any("Shapiro and Wilk's test of its 120 accuracies" in note for note in scores.footnotes)
    assert regression.rows == ()  # all classes are alike, so the scenario explains everything
    assert regression.footnotes[0].startswith("No regression: expected accuracies that vary beyond the factors")


def uneven(shift: int) -> Right:
    """A model whose errors depend on the photo, its class and the edit."""
    costs = {"other": 4, "0.2": 1, "0.05": 3}
    return lambda photo, edit, level: (7 * photo + shift) % 11 >= costs.get(level, 0) + photo % 2


def test_ximagenet_12_regression_is_that_of_the_formula_interface(tmp_path: Path) -> None:
    api = pytest.importorskip("statsmodels.formula.api", reason="needs the extra 'stats'")
    anova = pytest.importorskip("statsmodels.stats.anova")
    models = {"first": uneven(0), "second": uneven(3)}
    run = write_run(tmp_path, models, photos=80, collection="ximagenet-12")
    factors, levels = paper_results(run)[3:]
    frame = pandas.concat(
        [pandas.DataFrame(read_table(path)).assign(model=name) for name, path in open_runs([run]).files.items()]
    )
    frame = frame[frame.edit != "control"].assign(scenario=lambda rows: rows.edit + " " + rows.level)
    table = frame.groupby(["model", "scenario", "label"]).correct.mean().mul(100).reset_index()
    fit = api.ols("correct ~ C(model) + C(scenario, Treatment('original none')) + C(label)", table).fit()
    reference = anova.anova_lm(fit, typ=2)
    assert [cells[0] for cells in factors.rows] == ["model", "scenario", "class"]
    for cells, (_, expected) in zip(factors.rows, reference.iterrows(), strict=False):
        assert cells[1:5] == pytest.approx(tuple(expected[["df", "sum_sq", "F", "PR(>F)"]]))
    ours = {f"{cells[0]} {cells[1]}": cells[2:] for cells in levels.rows}
    named = ("model second", "scenario background-swap", "scenario size", "scenario size 0.2", "class n01443537")
    assert set(ours) == set(named)
    for name, theirs in zip(named, fit.params.index[1:], strict=True):
        expected = (fit.params[theirs], *fit.conf_int().loc[theirs], fit.pvalues[theirs])
        assert ours[name] == pytest.approx(expected)
    assert f"R2 = {fit.rsquared:.4f}" in factors.footnotes[0]
    assert "of 80 photos" in factors.footnotes[1]
    assert factors.rows[1][6] == pytest.approx(clustered_p(frame), rel=0.02)


def clustered_p(frame: pandas.DataFrame) -> float:
    """Wald's p of the scenario in a logistic model of single pictures, errors clustered by photo."""
    api, sm = pytest.importorskip("statsmodels.formula.api"), pytest.importorskip("statsmodels.api")
    groups = frame.sample_id.astype("category").cat.codes.to_numpy()
    fit = api.glm("right ~ C(model) + C(scenario)", frame.assign(right=frame.correct.astype(int)).reset_index(),
                  family=sm.families.Binomial()).fit(cov_type="cluster", cov_kwds={"groups": groups})  # fmt: skip
    return float(fit.wald_test_terms(scalar=True).table.loc["C(scenario)", "pvalue"])


def test_without_the_extra_the_regression_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels.api", None)
    run = write_run(tmp_path, {"net": uneven(0)}, photos=80, collection="ximagenet-12")
    (regression,) = paper_results(run)[3:]
    assert "pip install 'counterfoil[stats]'" in regression.footnotes[0]


def test_imagenet_9_super_classes_gap_and_survival(tmp_path: Path) -> None:
    accuracies, gaps = results("imagenet-9", edit_archives.imagenet_9(tmp_path / "nine"))
    assert row(accuracies) == {
        "original": 100, "mixed_same": 100, "mixed_rand": 50, "mixed_next": 50, "only_fg": 100, "no_fg": 0,
        "only_bg_b": 0, "only_bg_t": 0,
    }  # fmt: skip
    found = row(gaps)
    assert (found["bg_gap"], found["survival"], found["survival, foregrounds"]) == (50, 50, 18)
    assert found["bg_gap, low"] < 50 < found["bg_gap, high"]


def test_the_challenge_is_survived_where_every_background_is(tmp_path: Path) -> None:
    folder = edit_archives.imagenet_9(tmp_path / "nine")
    for name in CHALLENGES:
        evaluate_collection(f"{name}:{folder}", [TELLS], tmp_path / name, workers=2)
        (table,) = paper_results(tmp_path / name)
        found = row(table)
        assert (found["original"], found["challenge"], found["foregrounds"]) == (100, 50, 18)
        assert table.title == "Backgrounds challenge, every background"  # 18 are no more than the quick form meets


def test_a_foreground_that_falls_on_one_background_alone_is_found_by_the_published_rule(tmp_path: Path) -> None:
    folder = edit_archives.imagenet_9(tmp_path / "nine")
    kept = next((folder / "only_bg_t" / "val" / "00_dog").iterdir())
    for number in range(100):  # harmless: they say what the photo says
        shutil.copy(folder / "original" / "val" / "00_dog" / kept.name, kept.with_name(f"n02085620_{number}.JPEG"))
    for mask in (folder / "fg_mask").rglob("*.npy"):
        if mask.parent.name != "00_dog":
            mask.unlink()
    found = {}
    for name in CHALLENGES:
        evaluate_collection(f"{name}:{folder}", [TELLS], tmp_path / name, workers=1)
        (table,) = paper_results(tmp_path / name)
        found[table.title] = row(table)
    drawn, every = found.values()
    (answers,) = (tmp_path / "imagenet-9-challenge-all" / "predictions").glob("*.parquet")
    fallen, survived = sorted(text for text in read_table(answers)["text"] if text)[::-1]
    assert fallen.startswith("wrong on only_bg_t/val/")
    assert survived == "right on all 118 backgrounds that could be met"
    assert list(found) == ["Backgrounds challenge, 40 drawn backgrounds", "Backgrounds challenge, every background"]
    assert every["challenge"] == 50
    assert drawn["challenge, drawn"] >= 50  # at best the same
    assert "challenge" not in drawn  # so that it is not laid beside what was published


def test_other_backgrounds_are_another_challenge_and_a_broken_one_is_refused(tmp_path: Path) -> None:
    folder = edit_archives.imagenet_9(tmp_path / "nine")
    whole = open_archive("imagenet-9-challenge-all", folder)
    first, second = sorted((folder / "only_bg_t" / "val" / "00_dog").iterdir())
    first.rename(first.with_name("n02085620_0.JPEG"))
    fewer = open_archive("imagenet-9-challenge-all", folder)
    assert whole.digest != fewer.digest  # so that no run goes on with other backgrounds than it began with
    assert [repr(one) for one in whole.pictures] == [repr(one) for one in fewer.pictures]
    second.write_bytes(b"no picture")
    with pytest.raises(UserError, match="expected every background to be readable, got only_bg_t/val/00_dog"):
        evaluate_collection(f"imagenet-9-challenge-all:{folder}", [TELLS], workers=1)


def test_both_forms_of_the_challenge_ask_the_same_model(tmp_path: Path) -> None:
    folder = edit_archives.imagenet_9(tmp_path / "nine")
    asked = [EvaluationConfig(collection=open_collection(f"{name}:{folder}"), models=(TELLS,)) for name in CHALLENGES]
    drawn, every = (prepare_evaluation(one).identities for one in asked)
    assert drawn == every


def test_imagenet_c_divides_by_alexnets_errors(tmp_path: Path) -> None:
    relative, plain = results("imagenet-c", class_archives.imagenet_c(tmp_path / "c"))
    (alexnet,) = [numbers.values for numbers in read_published_numbers("imagenet-c") if numbers.model == "AlexNet"]
    reference = {name[7:]: error for name, error in alexnet.items() if name.startswith("error, ")}
    expected = {f"CE, {name}": 100 * (100 if name == "snow" else 30) / error for name, error in reference.items()}
    assert len(expected) == 15
    assert row(relative) == pytest.approx({**expected, "mCE": sum(expected.values()) / 15})
    assert row(plain)["error, fog"] == pytest.approx(30)
    assert row(plain)["mean error"] == pytest.approx((14 * 30 + 100) / 15)


def test_a_copy_with_fewer_corruptions_has_no_mce(tmp_path: Path) -> None:
    folder = class_archives.imagenet_c(tmp_path / "c")
    for name in ("digital", "extra", "weather"):
        (folder / name).rename(tmp_path / name)
    table, _ = results("imagenet-c", folder)
    assert "mCE" not in table.columns
    assert "mean CE of 7 corruptions" in table.columns
    assert any("so there is no mCE: snow" in note for note in table.footnotes)


def _right_among_200(folder: Path) -> float:
    """By a loop of its own: the first of the five answers that is among the 200 classes, else the first class."""
    space, archive = imagenet_a().labels, open_archive("imagenet-a", folder)
    right = 0
    for stored in archive.pictures:
        ranked = [imagenet1k().labels[(index_of(archive.read(stored)) + place) % 1000] for place in range(5)]
        right += next((wnid for wnid in ranked if wnid in space), space[0]) == stored.variant.label
    return 100 * right / 200


def test_imagenet_a_by_either_convention_under_its_name(tmp_path: Path) -> None:
    folder = class_archives.imagenet_a_archive(tmp_path / "one" / "a")
    (subset,) = results("imagenet-a", folder)
    (tmp_path / "two").mkdir()
    (every,) = results("imagenet-a", folder.rename(tmp_path / "two" / "a"), scoring="all")
    assert row(every)["top-1"] == 60  # 50 of 200 say a class outside, 30 of the others another class inside
    assert row(subset)["top-1"] == pytest.approx(_right_among_200(tmp_path / "two" / "a"))
    assert "sub-set of the logits" in subset.rule
    assert "all of a model's columns" in every.rule
    assert "--scoring all" in " ".join(subset.footnotes)


@pytest.mark.parametrize(
    ("name", "maker", "share"),
    [
        ("imagenet-v2", class_archives.imagenet_v2, 0.999), ("imagenet-sketch", class_archives.imagenet_sketch, 0.75),
        ("objectnet", class_archives.objectnet, 0.6),
    ],
)  # fmt: skip
def test_sets_of_pictures_have_one_accuracy(name: str, maker: object, share: float, tmp_path: Path) -> None:
    (table,) = results(name, maker(tmp_path / "set"))  # type: ignore[operator]
    assert row(table)["top-1"] == pytest.approx(100 * share)


def test_cue_conflicts_have_a_shape_bias(tmp_path: Path) -> None:
    # Of six conflicts bears are taken for their shape, cats for the texture, dogs for an airplane.
    (table,) = results("cue-conflict", class_archives.cue_conflict(tmp_path / "conflicts"))
    (cells,) = (dict(zip(table.columns, cells, strict=True)) for cells in table.rows)
    assert (cells["shape bias"], cells["shape or texture"], cells["neither"]) == (50.0, 4.0, 2.0)
    assert "mean over its ImageNet columns" in table.rule


def test_two_models_stand_in_one_table_with_their_paired_statistics(tmp_path: Path) -> None:
    accuracies, _ = results("imagenet-e", edit_archives.imagenet_e(tmp_path / "e"), [TELLS, NEXT])
    assert [cells[0] for cells in accuracies.rows] == [TELLS, NEXT]
    assert set(row(accuracies, NEXT).values()) == {0.0}
    assert Tells.labels == imagenet1k().labels


def test_a_run_over_no_published_benchmark_has_no_paper(tmp_path: Path) -> None:
    assert paper_results(write_run(tmp_path, {"model": breaks_on({})})) == ()


def truthful(exchange: Exchange) -> str:
    """Names the choice that is no distractor of the archive; both where a pen is asked for."""
    wrong = {"can opener", "coffee or french press"}
    truth = next(choice for choice in exchange.choices if choice not in wrong)
    return " or ".join(exchange.choices) if truth == "banana" else truth


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEndpoint]:
    with serving() as started:
        for name, value in {"URL": started.url, "FIRST_WAIT_SECONDS": "0.001", "ATTEMPTS": "2"}.items():
            monkeypatch.setenv(f"COUNTERFOIL_VLM_{name}", value)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        started.otherwise = choose(truthful)
        yield started


@pytest.mark.parametrize("order", ["faithful", "random"])
def test_imagenet_d_asks_the_questions_of_its_release(order: str, endpoint: FakeEndpoint, tmp_path: Path) -> None:
    (table,) = results("imagenet-d", class_archives.imagenet_d_archive(tmp_path / "d"), [f"vlm:some?order={order}"])
    found = row(table, "vlm:")
    assert (found["right, all"], found["scored"], found["unparsed"]) == (100, 11, 1)
    offered = {tuple(sorted(exchange.choices)) for exchange in endpoint.exchanges}
    assert ("can opener", "pen") in offered  # nested names: the longer is sought first
    assert ("coffee or french press", "pen") in offered
    assert all({"can opener", "coffee or french press"} & set(pair) for pair in offered)
    first = {exchange.choices[0] in ("can opener", "coffee or french press") for exchange in endpoint.exchanges}
    assert first == ({False} if order == "faithful" else {False, True})
    assert table.rows[0][1] == ("truth first, as released" if order == "faithful" else "drawn")


def test_what_an_endpoint_is_asked_over_all_backgrounds_is_recorded(endpoint: FakeEndpoint, tmp_path: Path) -> None:
    folder = edit_archives.imagenet_9(tmp_path / "nine")
    evaluate_collection(f"imagenet-9-challenge-all:{folder}", ["vlm:some"], tmp_path / "run", limit=2, workers=1)
    (usage,) = json.loads((tmp_path / "run" / "usage.json").read_text()).values()
    assert usage["questions"] == len(endpoint.exchanges) > 0


def test_a_model_that_is_not_asked_keeps_its_way(tmp_path: Path) -> None:
    model = load_model(TELLS)
    archive = open_archive("imagenet-d", class_archives.imagenet_d_archive(tmp_path))
    assert archive.adapt(model) is model


@pytest.mark.parametrize("named", [True, False])
def test_imagenet_e_end_to_end_from_the_command_line_with_a_report(named: bool, tmp_path: Path) -> None:
    folder, out = edit_archives.imagenet_e(tmp_path / "ImageNet-E"), tmp_path / "run"
    place = f"imagenet-e:{folder}" if named else str(folder)
    arguments = ["evaluate", place, "--model", "embedded:efficientnet-lite0", "--out", str(out)]
    done = CliRunner().invoke(commands, arguments, catch_exceptions=False)
    assert done.exit_code == 3, done.output  # right on none of six photos
    summary = json.loads((out / "summary.json").read_text())
    assert summary["run"]["collection"] == "imagenet-e"
    assert [table["title"] for table in summary["papers"]][:2] == ["ImageNet-E, accuracy", "ImageNet-E, drops"]
    page = (out / "report.html").read_text()
    assert "over the same pictures, in points" in page
    assert "eval.py" in (out / "skipped.csv").read_text()


def test_kinds_of_imagenet_e_that_went_through_more_than_their_change_are_compared_with_their_reference(
    tmp_path: Path,
) -> None:
    result = evaluate_collection(f"imagenet-e:{edit_archives.imagenet_e(tmp_path / 'e')}", [TELLS], tmp_path / "run")
    for study in (result.study, open_runs([tmp_path / "run"])):
        references = {(drop.edit, drop.level): drop.reference for drop in study.drops}
        assert references["background-complexity", "20"] == "control rec"
        assert references["background-complexity", "20-adv"] == "control rec"
        assert references["position", "random"] == references["direction", "random"] == "size 0.05"
        assert references["size", "0.05"] == references["background-random", "random"] == "original"
        rows = {(drop.edit, drop.level): drop for drop in study.drops}
        moved, small = rows["position", "random"], rows["size", "0.05"]
        assert moved.accuracy_reference == small.accuracy
        assert moved.drop_vs_reference == pytest.approx(small.accuracy - moved.accuracy)
