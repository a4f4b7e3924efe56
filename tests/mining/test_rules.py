from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from statsmodels.stats.proportion import proportion_confint

from counterfoil.errors import UserError
from counterfoil.mining.balanced_selection import balance_group, balance_groups
from counterfoil.mining.estimates import find_common_answer, measure_spread, repeats_common_answer
from counterfoil.mining.mining_config import guess_family
from counterfoil.mining.rules import AnswerMatrix, Rule, apply_rule, apply_to_groups, count_per_setting
from counterfoil.mining.surrogate_groups import cross_fit_bias, list_subsets, trace_curves
from counterfoil.statistics.accuracy import clustered_wilson
from counterfoil.statistics.photo_shares import PhotoCounts


def said(*rows: str, original: str = "") -> AnswerMatrix:
    """One text per model, a letter per picture: r right, w wrong, . not scored; originals right unless told."""
    values = {"r": 1.0, "w": 0.0, ".": math.nan}
    right = np.array([[values[letter] for letter in row] for row in rows])
    before = np.array([[values[letter] for letter in row] for row in original.split()]) if original else right * 0 + 1
    return AnswerMatrix(right, np.where(right == 1, 0.8, np.where(right == 0, 0.1, np.nan)), before)


def own_photos(pictures: int) -> PhotoCounts:
    """Every picture is of a photo of its own."""
    return PhotoCounts(np.arange(pictures), pictures)


def picked(kept: NDArray[np.bool_]) -> str:
    return "".join("x" if one else "." for one in kept)


def test_the_rules_keep_what_they_say() -> None:
    answers = said("wwwr", "wwrr", "wrrr")
    assert picked(apply_rule(answers, Rule("all"))) == "x..."
    assert picked(apply_rule(answers, Rule("at-least", least=2))) == "xx.."
    assert picked(apply_rule(answers, Rule("at-least", least=1))) == "xxx."
    # mean probabilities of the true class: 0.1, 1/3, 0.567, 0.8
    assert picked(apply_rule(answers, Rule("mean-probability", below=0.4))) == "xx.."


def test_a_failure_counts_only_where_the_original_is_right_unless_told_otherwise() -> None:
    answers = said("www", "www", original="rwr wwr")
    assert picked(apply_rule(answers, Rule("all"))) == "..x"
    assert picked(apply_rule(answers, Rule("at-least", least=1))) == "x.x"
    assert picked(apply_rule(answers, Rule("at-least", least=1, original="all"))) == "..x"
    assert picked(apply_rule(answers, Rule("all", original="none"))) == "xxx"
    assert picked(apply_rule(answers, Rule("mean-probability", below=0.2))) == "x.x"
    assert picked(apply_rule(answers, Rule("mean-probability", below=0.2, original="all"))) == "..x"


def test_an_answer_that_was_not_scored_is_no_failure() -> None:
    answers = said(".w", "ww")
    assert picked(apply_rule(answers, Rule("all"))) == ".x"
    assert picked(apply_rule(answers, Rule("mean-probability", below=0.2))) == "xx"
    assert picked(apply_rule(said("..", ".."), Rule("mean-probability", below=0.9, original="none"))) == ".."


def test_rules_are_told_in_words() -> None:
    assert Rule("all").words(2) == "both surrogates are wrong on the picture and right on the original"
    assert Rule("at-least", least=2, original="none").words(3) == (
        "at least 2 of 3 surrogates are wrong on the picture, right on the original or not"
    )
    assert Rule("mean-probability", below=0.2, original="all").words(4) == (
        "the mean probability of the true class over 4 surrogates is below 0.2, and all 4 surrogates are right on the"
        " original"
    )


def test_rules_that_cannot_be_met_are_refused() -> None:
    with pytest.raises(UserError, match="--at-least of at most 2, the number of surrogates, got 3"):
        Rule("at-least", least=3).check(2)
    with pytest.raises(UserError, match="at least one surrogate"):
        Rule().check(0)
    with pytest.raises(UserError, match="got 0"):
        Rule("at-least", least=0)
    with pytest.raises(UserError, match=r"at most 1, got 1\.5"):
        Rule("mean-probability", below=1.5)


def test_other_settings_are_counted() -> None:
    answers = said("wwwr", "wwrr", "wrrr")
    assert count_per_setting(answers, Rule("all")) == {"at least 3": 1, "at least 2": 2, "at least 1": 3}
    found = count_per_setting(answers, Rule("mean-probability", below=0.05))
    assert found == {"below 0.05": 0, "below 0.1": 0, "below 0.2": 1, "below 0.3": 1, "below 0.5": 2, "below 0.7": 3}


def test_every_group_keeps_what_its_members_alone_would() -> None:
    rng = np.random.default_rng(1)
    right = rng.integers(0, 2, (4, 30)).astype(float)
    answers = AnswerMatrix(right, rng.random((4, 30)), rng.integers(0, 2, (4, 30)).astype(float))
    groups = list_subsets(4, rng)
    for rule in (Rule("all"), Rule("at-least", least=2), Rule("mean-probability", below=0.4), Rule(original="all")):
        for group, kept in zip(groups, apply_to_groups(answers, rule, groups), strict=True):
            alone = answers.of(np.flatnonzero(group))
            expected = [_kept_by_hand(alone, rule, place) for place in range(30)]
            assert kept.tolist() == expected


def _kept_by_hand(answers: AnswerMatrix, rule: Rule, place: int) -> bool:
    sound = answers.original[:, place] == 1
    if rule.original == "all" and not sound.all():
        return False
    counted = sound if rule.original == "failing" else np.ones(len(sound), bool)
    if rule.kind == "mean-probability":
        return bool(counted.any() and answers.truth[counted, place].mean() < rule.below)
    fails = int(((answers.right[:, place] == 0) & counted).sum())
    return fails >= (len(sound) if rule.kind == "all" else min(rule.least, len(sound)))


def test_groups_are_all_there_are_up_to_twelve_surrogates_and_a_sample_past_that() -> None:
    rng = np.random.default_rng(0)
    four = list_subsets(4, rng)
    assert len({tuple(row) for row in four}) == 15
    assert len(list_subsets(12, rng)) == 4095
    many = list_subsets(14, np.random.default_rng(3))
    sizes, times = np.unique(many.sum(axis=1), return_counts=True)
    assert sizes.tolist() == list(range(1, 15))
    assert times.tolist() == [14, 91, *[100] * 9, 91, 14, 1]
    assert len({tuple(row) for row in many}) == len(many)
    assert (many == list_subsets(14, np.random.default_rng(3))).all()


def test_the_curve_of_a_case_worked_by_hand() -> None:
    """Two surrogates and a target; the first fails on pictures 0 1 2, the second on 0 1 3, the target on 0 2."""
    answers = said("wwwr", "wwrw", "wrwr", original="rrrr rrrr rrwr")
    rows = trace_curves(answers, Rule("all"), list_subsets(2, np.random.default_rng(0)), own_photos(4))
    first, second, target = rows
    # what the second chose alone (0 1 3): the first is right on 3
    for (row,) in (first, second):
        assert [row.size, row.accuracy.value] == pytest.approx([1, 1 / 3])
    # the target: on 0 1 2 right once, on 0 1 3 right twice, on 0 1 right once
    alone, both = target
    assert [alone.groups, alone.lowest, alone.highest] == pytest.approx([2, 1 / 3, 2 / 3])
    assert alone.accuracy.value == pytest.approx(1 / 2)
    assert both.accuracy.value == pytest.approx(1 / 2)
    # where its original is right: 0 1 of the first choice (one lost), 0 1 3 of the second (one lost)
    assert alone.transfer.value == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_groups_that_keep_nothing_are_counted_and_left_out() -> None:
    answers = said("wr", "rr", "rw")
    rows = trace_curves(answers, Rule("all"), list_subsets(2, np.random.default_rng(0)), own_photos(2))
    alone, both = rows[2]
    assert (alone.groups, alone.empty, alone.accuracy.value) == (1, 1, 1.0)
    assert (both.groups, both.empty) == (0, 1)
    assert math.isnan(both.accuracy.value)
    assert math.isnan(both.lowest)


def simulated(
    rng: np.random.Generator, skills: NDArray[np.float64], pictures: int = 60_000
) -> tuple[AnswerMatrix, NDArray[np.float64]]:
    """Models that fail independently given how hard a picture is; and how likely each is to be right."""
    hardness = rng.normal(0.0, 1.5, pictures)
    chance = 1 / (1 + np.exp(hardness - skills[:, None]))
    right = (rng.random(chance.shape) < chance).astype(float)
    return AnswerMatrix(right, chance, np.ones_like(right)), chance


@pytest.mark.parametrize("rule", [Rule("all"), Rule("at-least", least=2), Rule("at-least", least=3)])
def test_the_adjusted_bias_is_what_a_twin_that_had_no_say_would_show(rule: Rule) -> None:
    """The truth: the accuracy of an independent twin of the surrogate on the same choice, minus the surrogate's own."""
    skills = np.array([0.5, 1.0, 1.5, 1.0, 0.8, 1.2])
    answers, chance = simulated(np.random.default_rng(4), skills)
    found = cross_fit_bias(answers, 4, rule, own_photos(answers.right.shape[1]))
    kept = apply_rule(answers.of(slice(0, 4)), rule)
    for place, row in enumerate(found):
        truth = chance[place, kept].mean() - answers.right[place, kept].mean()
        assert row.of_all.value == pytest.approx(answers.right[place, kept].mean())
        assert row.adjusted == pytest.approx(truth, abs=0.03)
        assert abs(row.adjusted - truth) < abs(row.bias - truth)


def test_without_adjustment_the_bias_is_too_large_where_all_must_fail_and_too_small_where_some_must() -> None:
    answers, chance = simulated(np.random.default_rng(5), np.ones(6))
    photos = own_photos(answers.right.shape[1])
    for rule, too_large in ((Rule("all"), True), (Rule("at-least", least=2), False)):
        kept = apply_rule(answers.of(slice(0, 4)), rule)
        for place, row in enumerate(cross_fit_bias(answers, 4, rule, photos)):
            truth = chance[place, kept].mean() - answers.right[place, kept].mean()
            assert (row.bias > truth + 0.01) == too_large
            assert (row.bias < truth - 0.01) != too_large


def test_the_bias_of_a_case_worked_by_hand() -> None:
    answers = said("wwwr", "wwrw")
    first, second = cross_fit_bias(answers, 2, Rule("all"), own_photos(4))
    assert first.of_all.value == 0.0
    assert first.of_others.value == pytest.approx(1 / 3)  # the second chose 0 1 3, the first is right on 3
    assert second.bias == pytest.approx(1 / 3)
    assert first.pictures_of_others == 3
    assert math.isnan(first.adjusted)  # no target tells how hard the sets are


def test_one_picture_of_each_photo_gives_wilsons_interval() -> None:
    hits = np.array([True] * 7 + [False] * 13)
    found = clustered_wilson(hits, np.arange(20))
    assert (found.ci_low, found.ci_high) == pytest.approx(proportion_confint(7, 20, method="wilson"))


def test_pictures_of_one_photo_that_say_the_same_count_as_one() -> None:
    hits = np.repeat([True] * 7 + [False] * 13, 5)
    found = clustered_wilson(hits, np.repeat(np.arange(20), 5))
    assert (found.ci_low, found.ci_high) == pytest.approx(proportion_confint(7, 20, method="wilson"))
    assert found.n == 100
    certain = clustered_wilson(np.ones(100, bool), np.repeat(np.arange(20), 5))
    assert (certain.ci_low, certain.ci_high) == pytest.approx(proportion_confint(20, 20, method="wilson"))


def test_intervals_of_shares_cover_where_pictures_come_in_photos() -> None:
    rng = np.random.default_rng(8)
    covered, plain = 0, 0
    for _ in range(400):
        chance = rng.beta(1.0, 2.0, 40)
        photo = np.repeat(np.arange(40), 6)
        hits = rng.random(240) < chance[photo]
        found = clustered_wilson(hits, photo)
        covered += found.ci_low <= 1 / 3 <= found.ci_high
        low, high = proportion_confint(hits.sum(), 240, method="wilson")
        plain += low <= 1 / 3 <= high
    assert covered / 400 > 0.91
    assert plain / 400 < 0.85  # pictures counted as independent: too sure of itself


def test_the_spread_of_a_case_worked_by_hand() -> None:
    found = measure_spread(["a", "a", "a", "b"], ["a", "b", "c"] * 5)
    assert (found.groups, found.filled, found.largest) == (3, 2, 0.75)
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert found.effective == pytest.approx(math.exp(entropy))
    assert found.evenness == pytest.approx(entropy / math.log(3))
    # Gini as the mean absolute difference over twice the mean, over all ordered pairs of 3, 1, 0
    sizes = [3, 1, 0]
    differences = sum(abs(a - b) for a, b in itertools.product(sizes, sizes))
    assert found.gini == pytest.approx(differences / (2 * 9 * (4 / 3)))
    even = measure_spread(["a", "b"], ["a", "b"])
    assert [even.evenness, even.gini] == pytest.approx([1.0, 0.0])
    assert math.isnan(measure_spread([], ["a", "b"]).effective)


def test_balancing_keeps_equally_many_and_depends_on_nothing_but_the_ids() -> None:
    groups = {f"v{i}": "cat" if i < 8 else "dog" for i in range(11)}
    kept, most = balance_groups(groups)
    assert most == 3
    assert sorted(groups[name] for name in kept) == ["cat"] * 3 + ["dog"] * 3
    backwards, _ = balance_groups(dict(reversed(groups.items())))
    assert set(backwards) == set(kept)
    fewer, _ = balance_groups({name: group for name, group in groups.items() if name != "v10"}, most=3)
    assert set(fewer) == set(kept) - {"v10"}
    assert len(balance_groups(groups, most=5)[0]) == 8
    assert balance_group("both", "cat", "size") == ("cat", "size")


@pytest.mark.parametrize(("address", "family"), [
    ("embedded:efficientnet-lite0", "EfficientNet"),
    ("embedded:pp-lcnetv2", "PP-LCNet"),
    ("timm:resnet50.a1_in1k", "ResNet"),
    ("timm:vit_base_patch16_224.augreg_in21k_ft_in1k", "ViT"),
    ("open_clip:ViT-B-32/openai", "CLIP"),
    ("timm:convnext_tiny.fb_in1k", "ConvNeXt"),
    ("vlm:llava-1.5-7b", "vision-language model"),
    ("python:planted:fails_on_small", "fails"),
    ("onnx:models/my_net.onnx", "my"),
    ("onnx:/home/vittorio/clips/my_net.onnx", "my"),
    ("python:resnets/my.py:lcnet", "PP-LCNet"),
])  # fmt: skip
def test_the_address_tells_the_family(address: str, family: str) -> None:
    assert guess_family(address) == family


def test_a_common_wrong_answer_is_what_all_failing_surrogates_name() -> None:
    answers = np.array([[1, 1, 1, 2], [1, 2, 0, -1], [0, 1, 1, 2]])
    wrong = np.array([[True, True, True, True], [True, True, False, True], [False, False, True, False]])
    common = find_common_answer(answers, wrong)
    assert common.tolist() == [1, -1, 1, -1]
    target = repeats_common_answer(np.array([[1, 1, 2, 2]]), np.array([[True, True, True, True]]), common)
    assert target.tolist() == [[True, False, False, False]]
