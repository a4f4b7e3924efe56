"""The remedy `train`: a small torch module with a planted weakness is trained on edited copies and judged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterfoil.errors import UserError
from counterfoil.models.model_loaders import load_model
from counterfoil.models.model_objects import wrap_model
from counterfoil.recipes.edit_recipe import Recipe, Step
from counterfoil.remedies.candidates import select_methods
from counterfoil.remedies.fine_tuning import EpochBatches, FineTuner, TrainingPictures, choose_parameters
from counterfoil.remedies.repair_config import RepairConfig, prepare_repair
from counterfoil.remedies.repair_result import RepairResult
from counterfoil.remedies.repairer import execute_repair, repair
from counterfoil.remedies.train_settings import AUGMENTATIONS, TrainSettings
from counterfoil.remedies.trained_folds import FoldTrainer
from counterfoil.remedies.training_copies import PhotoCopies
from counterfoil.sources.source_loaders import open_source
from counterfoil.torch import read_picture
from planted import LABELS, write_photos
from repairable import make_small_object_module, prepare_small_picture, write_small_object_network
from torch_setup import library

pytestmark = pytest.mark.torch
JUDGED = Recipe(
    name="judged",
    judge_fills=False,
    edits=(Step(edit="size", levels={"rate": [0.1, 0.05]}), Step(edit="flip", settings={"axis": "upside-down"})),
)
FITTED = Recipe(name="fitted", judge_fills=False, edits=(Step(edit="size", levels={"rate": [0.12, 0.06]}),))
SETTINGS = TrainSettings(epochs=5, batch=10, rate=0.3, layers=1, copies=2, unedited=0.3, crop=1.0, shares=(0.5, 1.0))
PHOTOS = 30


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_photos(tmp_path_factory.mktemp("train-photos"), PHOTOS)


def config_for(photos: tuple[Path, Path], **changes: Any) -> RepairConfig:
    model = wrap_model(
        make_small_object_module(), labels=LABELS, transform=prepare_small_picture, name="small objects"
    )  # fmt: skip
    config = RepairConfig(
        source=open_source(*photos), model=model, method="train", recipe=JUDGED, fitting_recipe=FITTED, allow_loss=10.0,
        elsewhere=open_source(*photos), workers=1, train=SETTINGS,
    )  # fmt: skip
    return replace(config, **changes)


@pytest.fixture(scope="module")
def trained(photos: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> RepairResult:
    return execute_repair(config_for(photos), tmp_path_factory.mktemp("trained") / "out")


def test_a_module_whose_weakness_is_size_is_repaired_by_training_on_small_copies(trained: RepairResult) -> None:
    size = next(row for row in trained.attributes if row.attribute == "size")
    assert trained.verdict.outcome == "repaired", (trained.verdict.reasons, trained.candidates[0].settings)
    assert size.drop.before > 20
    assert size.drop.after < 10
    record = json.loads((trained.folder / "repair.json").read_text())
    assert record["method"] == "train"
    assert record["settings"]["train"]["epochs"] == 5
    assert record["settings"]["chosen"]["copies"]["edited"] > 20


def test_the_report_says_what_the_network_was_trained_on(trained: RepairResult) -> None:
    relations = {(row.attribute, row.level): trained.relation_to_fitting(row) for row in trained.effects}
    assert relations["direction", ""] == "attribute left out of fitting"
    assert {relation for (name, level), relation in relations.items() if name == "size" and level} == {
        "other edit or level"
    }
    assert "trained 5 epochs with edited copies" in (trained.folder / "report.html").read_text(encoding="utf-8")


def test_onnx_and_safetensors_of_the_written_network_agree(trained: RepairResult, photos: tuple[Path, Path]) -> None:
    torch = pytest.importorskip("torch")
    module = make_small_object_module()
    module.load_state_dict(
        pytest.importorskip("safetensors.torch").load_file(trained.folder / "model.safetensors")
    )  # fmt: skip
    assert module[4].bias[0] < make_small_object_module()[4].bias[0]  # the first class is favoured less
    assert torch.equal(module[0].weight, make_small_object_module()[0].weight)  # only the last layer was trained
    written = load_model(f"onnx:{trained.folder / 'model.onnx'}")
    source = open_source(*photos)
    images = [source.read(sample)[0] for sample in source.samples()[0][:6]]
    ours = wrap_model(module, labels=LABELS, transform=prepare_small_picture)
    assert np.abs(written(images) - ours(images)).max() < 0.05  # the description differs from the transform by rounding


def test_every_fold_is_written_and_no_fold_saw_the_photos_it_judges(trained: RepairResult) -> None:
    files = sorted(path.name for path in (trained.folder / "folds").glob("*.safetensors"))
    assert files == ["train-1.safetensors", "train-2.safetensors", "train-3.safetensors"]
    assert len({model.digest for model in trained.candidates[0].folds}) == 3


def test_a_repair_that_goes_on_trains_nothing_again(
    trained: RepairResult, photos: tuple[Path, Path]
) -> None:  # fmt: skip
    work = trained.folder / "work"
    before = {path: path.stat().st_mtime_ns for path in work.rglob("*.safetensors") if path.parent.name == "trained"}
    assert len(before) == 7  # a choice and a judgement for each fold, and one of all photos
    again = execute_repair(config_for(photos), trained.folder)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert [row.drop for row in again.attributes] == [row.drop for row in trained.attributes]


def test_a_repair_killed_while_it_makes_copies_counts_all_of_them(trained: RepairResult, tmp_path: Path) -> None:
    record = json.loads((trained.folder / "repair.json").read_text())["settings"]["chosen"]["copies"]
    assert sum(record.values()) == PHOTOS * SETTINGS.copies
    copies = tmp_path / "copies"
    shutil.copytree(trained.folder / "work" / "copies", copies)
    for path in sorted(copies.rglob("*.bmp"))[::2]:  # as if it had been killed before these were written
        path.unlink()
    again = FoldTrainer(trained.plan, tmp_path)
    written = [again._write_copies(part) for part in range(3)]
    assert {name: sum(getattr(counts, name) for _, counts in written) for name in record} == record
    for path in (trained.folder / "work" / "copies").rglob("*.*"):
        assert (copies / path.relative_to(trained.folder / "work" / "copies")).read_bytes() == path.read_bytes()


def test_networks_trained_without_an_attribute_are_judged_by_it(photos: tuple[Path, Path], tmp_path: Path) -> None:
    fitted = Recipe(name="fitted", judge_fills=False, edits=(*FITTED.edits, Step(edit="background-swap")))
    settings = replace(SETTINGS, leave_out=True, epochs=2)
    result = execute_repair(config_for(photos, fitting_recipe=fitted, train=settings), tmp_path / "out")
    assert list(result.left_out) == ["size"]  # the background is fitted on and not judged
    without = result.left_out["size"].drop
    size = next(row.drop for row in result.attributes if row.attribute == "size")
    assert without.before == size.before
    assert without.after != size.after  # other networks answered
    assert json.loads((tmp_path / "out" / "repair.json").read_text())["left_out"]["size"]["drop"]["n"] == PHOTOS
    files = list((tmp_path / "out" / "work" / "trained").glob("*.safetensors"))
    assert len(files) == 7 + 2 * 3  # without size, and without background
    copies = [photo for part in FoldTrainer(result.plan, tmp_path / "out" / "work").copies for photo in part]
    kept = [photo.without("size") for photo in copies]
    assert sum(len(photo.files) for photo in kept) < sum(len(photo.files) for photo in copies)
    assert {name for photo in kept for name in photo.attributes} == {"", "background"}


def make_tuner(trained: RepairResult, **changes: Any) -> tuple[FineTuner, list[PhotoCopies]]:
    """The network before training, and the copies of the first part."""
    trainer = FoldTrainer(trained.plan, trained.folder / "work")
    tuner = trainer.tuner
    return replace(tuner, settings=replace(SETTINGS, **changes)), trainer.copies[0]


def test_shuffled_labels_give_no_gain(trained: RepairResult) -> None:
    torch = pytest.importorskip("torch")
    tuner, copies = make_tuner(trained, rate=5.0, epochs=4)
    module = make_small_object_module()
    with torch.no_grad():  # it knows the colours, but not yet which class has which
        module[4].weight.zero_()
        module[4].bias.zero_()
    tuner = replace(tuner, network=replace(tuner.network, module=module))
    others = FoldTrainer(trained.plan, trained.folder / "work").copies[1]
    images = [read_picture(photo.files[0]) for photo in others]
    truth = np.array([photo.column for photo in others])

    def train_with(columns: Sequence[int]) -> float:
        given = [PhotoCopies(column, photo.files) for column, photo in zip(columns, copies, strict=True)]
        scores = tuner.score(tuner.blend(tuner.fit(given, "training"), 1.0), images)
        return float((scores.argmax(axis=1) == truth).mean())

    columns = [photo.column for photo in copies]
    rng = np.random.default_rng(3)
    assert train_with(columns) > 0.9
    assert np.mean([train_with(rng.permutation(columns).tolist()) for _ in range(4)]) < 0.5  # guessing is 0.25


@pytest.mark.parametrize("name", [name for name in AUGMENTATIONS if name not in ("edited", "stylised", "plain")])
def test_each_augmentation_trains(trained: RepairResult, name: str) -> None:
    torch, _ = library("torch"), library("torchvision")
    tuner, copies = make_tuner(trained, augment=(name,), epochs=1, crop=0.8)
    plain, _ = make_tuner(trained, augment=("plain",), epochs=1, crop=0.8)
    weights, without = tuner.fit(copies, "training"), plain.fit(copies, "training")
    assert all(torch.isfinite(weight).all() for weight in weights.values())
    assert any(not torch.equal(weights[key], without[key]) for key in weights)  # it does something
    again = tuner.fit(copies, "training")
    assert all(torch.equal(weights[key], again[key]) for key in weights)  # the same each time


def make_pictures(trained: RepairResult, **changes: Any) -> TrainingPictures:
    tuner, copies = make_tuner(trained, epochs=2, **changes)
    return TrainingPictures(
        photos=copies, settings=tuner.settings, preparation=tuner.network.preparation, seed=tuner.seed
    )  # fmt: skip


def test_an_epoch_shows_one_copy_of_each_photo_and_the_next_another(trained: RepairResult) -> None:
    pictures = make_pictures(trained, augment=("plain",))
    photos = len(pictures.photos)
    assert len(pictures) == 2 * photos
    assert {pictures[place][1] for place in range(photos)} <= set(range(len(LABELS)))
    assert any(not np.array_equal(pictures[place][0], pictures[photos + place][0]) for place in range(photos))


def test_every_epoch_takes_each_picture_once_and_in_another_order() -> None:
    batches = EpochBatches(10, 4, 3, 0)
    rows = list(batches)
    assert len(batches) == len(rows) == 9
    epochs = [np.concatenate(rows[start : start + 3]) - 10 * epoch for epoch, start in enumerate((0, 3, 6))]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert rows == list(batches)  # the same each time


def test_workers_of_a_gpu_s_loader_give_the_pictures_that_one_process_gives(trained: RepairResult) -> None:
    torch = library("torch")
    pictures = make_pictures(trained, crop=0.5)
    batches = EpochBatches(len(pictures.photos), 4, 2, 0)
    alone, shared = (
        list(torch.utils.data.DataLoader(pictures, batch_sampler=batches, num_workers=workers)) for workers in (0, 2)
    )
    assert all(torch.equal(one, other) for first, second in zip(alone, shared, strict=True)
               for one, other in zip(first, second, strict=True))  # fmt: skip


def test_a_picture_of_an_epoch_does_not_depend_on_those_before_it(trained: RepairResult) -> None:
    torch, _ = library("torch"), library("torchvision")
    pictures = make_pictures(trained, augment=("augmix",), crop=0.8)
    later = [pictures[place][0] for place in (3, 2)]  # as another worker would come to them
    torch.manual_seed(5)
    state = torch.get_rng_state()
    assert all(torch.equal(pictures[place][0], one) for place, one in zip((3, 2), later, strict=True))
    assert torch.equal(torch.get_rng_state(), state)


def test_the_last_layers_are_trained_and_the_others_stay() -> None:
    module = make_small_object_module()
    assert list(choose_parameters(module, 1)) == ["4.weight", "4.bias"]
    assert len(choose_parameters(module, 0)) == 4


def test_copies_follow_the_augmentations() -> None:
    fitting = FITTED
    assert TrainSettings(augment=("augmix",)).copy_recipe(fitting) is None
    stylised = TrainSettings(augment=("stylised",)).copy_recipe(fitting)
    assert stylised is not None
    assert [step.edit for step in stylised.edits] == ["texture"]
    both = TrainSettings(augment=("edited", "stylised")).copy_recipe(fitting)
    assert both is not None
    assert [step.edit for step in both.edits] == ["size", "texture"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epochs": 0}, "epochs of at least 1"),
        ({"augment": ("augmxi",)}, "did you mean"),
        ({"augment": ()}, "expected augment"),
        ({"shares": (0.0,)}, "shares above 0"),
        ({"layers": -1}, "layers of at least 0"),
        ({"rate": 0.0}, "rate above 0"),
        ({"unedited": 1.5}, "unedited from 0 to 1"),
        ({"schedule": "linear"}, "schedule of cosine, constant"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        TrainSettings(**changes)


def test_an_onnx_file_cannot_be_trained_and_is_told_so_in_one_line(photos: tuple[Path, Path], tmp_path: Path) -> None:
    address = write_small_object_network(tmp_path / "network.onnx")
    with pytest.raises(UserError, match="training needs a torch network") as error:
        repair(images=photos[0], masks=photos[1], model=address, method="train", out=tmp_path / "out")
    assert "\n" not in str(error.value)


def test_without_a_method_an_onnx_file_is_tried_without_training(photos: tuple[Path, Path], tmp_path: Path) -> None:
    address = write_small_object_network(tmp_path / "network.onnx")
    plan = prepare_repair(config_for(photos, model=address, method=None))
    methods, refused = select_methods(plan.config, plan.network)
    assert "train" not in methods
    assert [row.name for row in refused] == ["train"]


def test_settings_come_from_text_and_an_unknown_one_is_refused(photos: tuple[Path, Path]) -> None:
    config = config_for(photos)
    changed = config.with_settings({"epochs": "3", "augment": "edited,augmix", "rate": "1e-3", "shares": "0.5,1"}).train
    assert (changed.epochs, changed.augment, changed.rate, changed.shares) == (3, ("edited", "augmix"), 1e-3, (0.5, 1))
    for given in ("1", "true", True, 1):
        assert config.with_settings({"leave_out": given}).train.leave_out is True
    assert config.with_settings({"leave_out": "0"}).train.leave_out is False
    with pytest.raises(UserError, match="expected 1 or 0 for the setting leave_out, got '2'"):
        config.with_settings({"leave_out": "2"})
    with pytest.raises(UserError, match="did you mean 'epochs'"):
        config.with_settings({"epoch": "3"})
    with pytest.raises(UserError, match="expected a number"):
        config.with_settings({"epochs": "many"})
    with pytest.raises(UserError, match="expected --method"):
        replace(config, method=None).with_settings({"epochs": "3"})


def test_a_module_with_a_transform_that_no_description_holds_is_refused(
    photos: tuple[Path, Path], tmp_path: Path
) -> None:
    def invert(picture: Any) -> Any:
        return 1 - prepare_small_picture(picture)

    with pytest.raises(UserError, match="can be written beside a network"):
        repair(images=photos[0], masks=photos[1], model=make_small_object_module(), labels=LABELS, transform=invert,
               method="train", out=tmp_path / "out")  # fmt: skip
