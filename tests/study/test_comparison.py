"""Two runs photo by photo: what differs, what is refused, and in which forms it comes out."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from command_line import counterfoil
from counterfoil.errors import UserError
from counterfoil.study.comparison import compare_runs
from counterfoil.study.runs import open_runs
from run_folders import LABELS, breaks_on, write_run

WEAK = breaks_on({"background-swap": 20, "size:0.05": 8})
STRONG = breaks_on({"background-swap": 4, "size:0.05": 8})


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    return write_run(tmp_path / "a", {"weak": WEAK}), write_run(tmp_path / "b", {"strong": STRONG})


def test_the_difference_of_drops_is_paired_by_photo(runs: tuple[Path, Path]) -> None:
    found = compare_runs(runs)
    (swap,) = [row for row in found.levels if row.condition.edit == "background-swap"]
    assert (swap.n, swap.value_first, swap.value_second, swap.difference) == (40, 50.0, 10.0, 40.0)
    assert swap.ci_low > 20
    assert swap.p_adjusted < 0.001
    (small,) = [row for row in found.levels if row.condition.level == "0.05"]
    assert (small.difference, small.p_value) == (0.0, 1.0)
    assert found.accuracy.difference == 0.0


def test_an_attribute_is_the_mean_of_its_levels(runs: tuple[Path, Path]) -> None:
    (size,) = [row for row in compare_runs(runs).attributes if row.condition.attribute == "size"]
    assert (size.value_first, size.value_second) == (10.0, 10.0)  # 20 points at 0.05, none at 0.2


def test_table_csv_and_json_say_the_same(runs: tuple[Path, Path]) -> None:
    table = counterfoil("compare", *runs)
    assert table.returncode == 0, table.stderr
    (line,) = [line.split() for line in table.stdout.splitlines() if "background-swap" in line]
    assert line[:7] == ["background", "background-swap", "other", "40", "50.0", "10.0", "40.0"]
    assert line[-1] == "differ"
    rows = list(csv.DictReader(io.StringIO(counterfoil("compare", *runs, "--csv").stdout)))
    document = json.loads(counterfoil("compare", *runs, "--json").stdout)
    assert document["accuracy"]["value_first"] == 100.0
    both = [*document["attributes"], *document["levels"]]
    assert [(row["edit"], float(row["difference"])) for row in rows] == [
        (row["edit"], row["difference"]) for row in both
    ]


def test_one_run_alone_is_told_what_to_name_beside_it(runs: tuple[Path, Path]) -> None:
    done = counterfoil("compare", runs[0])
    assert done.returncode == 2
    assert "expected two runs, got 1: `counterfoil compare FIRST_RUN SECOND_RUN`" in done.stderr
    assert done.stderr.count("\n") == 1


def test_two_models_of_one_run_are_compared(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"weak": WEAK, "strong": STRONG})
    found = compare_runs((run, run), first="weak", second="strong")
    assert (found.first, found.second) == ("weak", "strong")
    with pytest.raises(UserError, match="expected --first to name one of weak, strong, got none"):
        compare_runs((run, run))
    with pytest.raises(UserError, match="expected two models, got weak"):
        compare_runs((run, run), first="weak", second="weak")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"recipe_digest": "0" * 64, "recipe": "other"}, r"another recipe, 'attributes' \(c0ffee00\) against 'other'"),
        ({"seed": 3}, "another seed, 0 against 3"),
        ({"benchmark_digest": "beef"}, "another benchmark, none against beef"),
        ({"scoring": "any-of"}, "another label scoring, none against any-of"),
        ({"segmenter": "isnet"}, "another network that finds objects, none against isnet"),
        ({"allow_cut": True}, "another treatment of cut objects, kept at their border against moved like others"),
        ({"refine_cutouts": True}, "another way of cutting out, as the masks are against refined"),
        ({"fills": "exemplar, judged"}, "another fill of holes, exemplar against exemplar, judged$"),
        ({"fills": "exemplar or MI-GAN, judged"}, "another fill of holes, .*MI-GAN.*npm.*COUNTERFOIL_MIGAN"),
        ({"photos": 38}, "other photos, 2 only in the first"),
        ({"label": lambda photo: LABELS[0]}, "another label scoring for 20 of 40 photos .*n01443537 against"),
    ],
)  # fmt: skip
def test_runs_over_other_pictures_are_refused_with_the_difference(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    first = write_run(tmp_path / "a", {"weak": WEAK})
    second = write_run(tmp_path / "b", {"strong": STRONG}, **change)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=said):
        open_runs([first, second])


def test_doubtful_masks_matter_where_a_network_found_masks(tmp_path: Path) -> None:
    first, same = (write_run(tmp_path / name, {name: WEAK}, segmenter="isnet") for name in ("a", "b"))
    kept = write_run(tmp_path / "kept", {"kept": STRONG}, segmenter="isnet", doubtful_masks="keep")
    assert open_runs([first, same]).predictions.keys() == {"a", "b"}
    with pytest.raises(UserError, match="another treatment of doubtful masks, leave-out against keep"):
        open_runs([first, kept])
    by_hand = [write_run(tmp_path / name, {name: WEAK}, doubtful_masks=name) for name in ("keep", "leave-out")]
    assert open_runs(by_hand).predictions.keys() == {"keep", "leave-out"}


def test_other_pixels_behind_the_same_settings_are_refused(runs: tuple[Path, Path], tmp_path: Path) -> None:
    from counterfoil.store.parquet import read_table, write_table
    from counterfoil.store.prediction_tables import VARIANT_COLUMNS

    path = runs[1] / "variants.parquet"
    table = read_table(path)
    table["sha256"][3] = "0" * 64
    write_table(path, VARIANT_COLUMNS, table)
    with pytest.raises(UserError, match="1 of 200 pictures have other pixels"):
        open_runs(runs)


def test_changed_weights_behind_one_name_are_refused_unless_the_runs_are_named_apart(tmp_path: Path) -> None:
    before = write_run(tmp_path / "before", {"net": WEAK})
    after = write_run(tmp_path / "after", {"net": STRONG}, model_digests={"net": "beef" * 16})
    with pytest.raises(UserError, match=r"weights of net changed between .* \(feedfeed against beefbeef\)"):
        open_runs([before, after])
    done = counterfoil("compare", before, after, "--as", "old", "--as", "new")
    assert "first old, second new" in done.stdout


def test_a_model_of_two_runs_with_the_same_weights_stands_once(tmp_path: Path) -> None:
    first = write_run(tmp_path / "a", {"weak": WEAK, "strong": STRONG})
    second = write_run(tmp_path / "b", {"strong": STRONG, "third": STRONG})
    assert open_runs([first, second]).answers.models == ("weak", "strong", "third")


def test_bad_folders_and_empty_runs_say_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="expected the folder of a finished run"):
        open_runs([tmp_path])
    runs = [write_run(tmp_path / name, {name: WEAK}, photos=0) for name in ("a", "b")]
    done = counterfoil("compare", *runs)
    assert done.returncode == 2
    assert "the runs are empty" in done.stderr


def test_few_photos_are_named_and_not_judged(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, {name: right}, photos=9) for name, right in (("a", WEAK), ("b", STRONG))]
    lines = counterfoil("compare", *runs).stdout.splitlines()
    assert all(line.endswith("too few") for line in lines if "background" in line)
