"""Templates compared: diversity against brute force, rates against counts, and what is said where nothing is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from scipy.spatial.distance import pdist
from statsmodels.stats.proportion import proportion_confint

from counterfoil.cli import commands
from counterfoil.generation.embedding import diversity, mean_pairwise_distance
from counterfoil.generation.generator import GenerationConfig, generate_pictures
from counterfoil.generation.prompt_plan import Selection
from counterfoil.store.workspace import Workspace
from counterfoil.types import Decision, MiningResult, VerificationResult

RECIPE = """
paints: pictures
classes: imagenet-d
attributes:
  - attribute: background
    values: [beach, street, forest, kitchen]
    templates: {in-the: "{a_category} in the {value}", photo-of: "a photo of {a_category}, {value} behind it"}
"""


def units(count: int, seed: int) -> Any:
    rows = np.random.default_rng(seed).normal(0.5, 1, (count, 12))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def analyse(*arguments: str) -> Result:
    return CliRunner().invoke(commands, ["analyse", "prompts", *arguments], catch_exceptions=False)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    (folder / "two.yaml").write_text(RECIPE)
    chosen = Selection(("backpack", "umbrella"))
    generate_pictures(
        GenerationConfig(recipe=str(folder / "two.yaml"), painter="python:painted:words", selection=chosen),
        folder / "workspace",
    )
    return folder / "workspace"


def test_the_mean_distance_is_that_over_all_pairs() -> None:
    rows = units(30, 0)
    value, variance = mean_pairwise_distance(rows)
    assert value == pytest.approx(pdist(rows, "cosine").mean())
    without = np.array([pdist(np.delete(rows, place, 0), "cosine").mean() for place in range(30)])
    assert variance == pytest.approx(29 / 30 * ((without - without.mean()) ** 2).sum())


def test_diversity_is_taken_within_classes() -> None:
    first, second = units(20, 1), units(15, 2)
    rows = np.concatenate([first, second]).astype(np.float32)
    found = diversity(rows, ["a"] * 20 + ["b"] * 15)
    assert found.value == pytest.approx((pdist(first, "cosine").mean() + pdist(second, "cosine").mean()) / 2, abs=1e-6)
    assert found.n == 35
    assert found.ci_low < found.value < found.ci_high
    assert np.isnan(diversity(rows[:2], ["a", "a"]).value)


def test_equal_pictures_have_no_diversity() -> None:
    assert diversity(np.repeat(units(1, 3), 5, 0).astype(np.float32), ["a"] * 5).value == pytest.approx(0, abs=1e-6)


def test_the_interval_of_diversity_covers_the_truth() -> None:
    truth = 1 - float(np.linalg.norm(units(200_000, 4).mean(axis=0))) ** 2
    found = [diversity(units(40, seed).astype(np.float32), ["a"] * 40) for seed in range(100, 400)]
    covered = np.mean([one.ci_low <= truth <= one.ci_high for one in found])
    assert 0.90 <= covered <= 0.99


def test_before_mining_and_verification_nothing_is_claimed(workspace: Path) -> None:
    rows = json.loads(analyse(str(workspace), "--json", "--compared", "0").stdout)["templates"]
    assert [row["template"] for row in rows] == ["in-the", "photo-of"]
    assert all(row["pictures"] == 8 for row in rows)
    for name in ("shared_failures_percent", "verified_percent", "diversity"):
        assert rows[0][name] == {"value": None, "ci_low": None, "ci_high": None, "n": 0}


def test_templates_are_compared_by_failures_verified_pictures_and_diversity(workspace: Path, tmp_path: Path) -> None:
    found = Workspace(workspace)
    ids = {name: [one.variant.id for one in found.pictures if one.variant.edit == name] for name in
           ("in-the", "photo-of")}  # fmt: skip
    found.keep_mined(MiningResult((*ids["in-the"][:6], ids["photo-of"][0]), "rule", {}, found.digest))
    decisions = [
        Decision(name, kept, {}, {}) for name, kept in zip(ids["in-the"][:4], (True, True, True, False), strict=True)
    ]
    found.keep_verified(
        VerificationResult(
            rule="rule",
            questions={},
            annotators=2,
            agreement={},
            decisions=tuple(decisions),
            workspace_digest=found.digest,
        )
    )
    rows = json.loads(analyse(str(workspace), "--json", "--out", str(tmp_path / "study.json")).stdout)["templates"]
    assert json.loads((tmp_path / "study.json").read_text()) == rows
    first, second = rows
    low, high = proportion_confint(6, 8, method="wilson")
    assert first["shared_failures_percent"] == {
        "value": 75, "ci_low": pytest.approx(100 * low), "ci_high": pytest.approx(100 * high), "n": 8,
    }  # fmt: skip
    assert second["shared_failures_percent"]["value"] == 12.5
    assert (first["verified_percent"]["value"], first["verified_percent"]["n"]) == (75, 4)
    assert second["verified_percent"]["value"] is None
    assert 0 < first["diversity"]["ci_low"] < first["diversity"]["ci_high"]
    table = analyse(str(workspace), "--compared", "0").output.splitlines()
    assert table[0].split()[:3] == ["workspace", "attribute", "template"]
    assert table[2].count(" - ") + table[2].endswith("-") == 2
    (workspace / "mined.json").unlink()
    (workspace / "verified.json").unlink()


def test_of_mining_and_decisions_on_other_pictures_the_step_is_named_and_diversity_still_given(workspace: Path) -> None:
    Workspace(workspace).keep_mined(MiningResult((), "rule", {}, "another digest"))
    Workspace(workspace).keep_verified(
        VerificationResult(
            rule="rule", questions={}, annotators=2, agreement={}, decisions=(), workspace_digest="another digest"
        )
    )
    done = analyse(str(workspace), "--json")
    (workspace / "verified.json").unlink()
    first, *_ = json.loads(done.stdout)["templates"]
    assert first["shared_failures_percent"]["value"] is first["verified_percent"]["value"] is None
    assert first["diversity"]["value"] > 0
    mining, deciding = done.stderr.splitlines()
    assert mining.endswith(f"shared failures are left out; repeat `counterfoil mine {workspace} ...`")
    assert deciding.endswith(f"verified pictures are left out; repeat `counterfoil verify decide {workspace}`")
    (workspace / "mined.json").unlink()
