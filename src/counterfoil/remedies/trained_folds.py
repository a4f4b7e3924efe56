"""The remedy `train` over the three folds: trained, chosen and judged on parts that share no photo."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from counterfoil import __version__
from counterfoil.edits.registry import edit_named, name_of
from counterfoil.models.onnx_export import compare_with_original, export_to_file
from counterfoil.models.torch_classifier import choose_device
from counterfoil.models.torch_network import TorchNetwork
from counterfoil.plugins import import_extra
from counterfoil.progress import show_stage
from counterfoil.recipes.edit_recipe import Recipe, load_recipe
from counterfoil.remedies.class_map import UnknownStructureError
from counterfoil.remedies.fine_tuning import FineTuner, Weights
from counterfoil.remedies.mined_pictures import MinedPicture, MinedPictures
from counterfoil.remedies.network_file import NetworkFile, WrittenNetwork, describe_network
from counterfoil.remedies.photo_parts import FOLDS
from counterfoil.remedies.picture_answers import Asker
from counterfoil.remedies.repair_config import FITTING_SEED, TRAIN, RepairPlan
from counterfoil.remedies.training_copies import CopyWriter, PhotoCopies
from counterfoil.store.files import write_atomically
from counterfoil.torch import CopyCounts, choose_copy_recipe, read_picture

LARGEST_ON_CPU = 30_000_000  # weights: a larger network is trained without a GPU only where that is asked for


def find_trainable(network: NetworkFile) -> TorchNetwork:
    """The torch network behind a model; raises `UnknownStructureError` where there is none that can be trained."""
    trainable = network.torch_network
    if trainable is None:
        raise UnknownStructureError(
            "training needs a torch network (timm:, torchvision:, safetensors:, hf:, or an nn.Module in Python); an"
            " ONNX file holds no parameters to train"
        )
    if trainable.file is not None or not any(True for _ in trainable.module.parameters()):
        raise UnknownStructureError("it holds no parameters that can be trained")
    return trainable


@dataclass(frozen=True, kw_only=True)
class TrainedFolds:
    """The trained networks: one for each fold, which never saw the photos it is judged on, and one of all photos."""

    folds: tuple[WrittenNetwork, ...]
    choosing: tuple[tuple[str, Asker], ...]  # of each fold, trained on the fitting part alone: identity and answers
    final: WrittenNetwork
    shares: tuple[float, ...]  # of the way, chosen by each fold
    counts: CopyCounts  # of the copies
    fitted_edits: Mapping[tuple[str, str], str]  # edit and level to the attribute
    left_out: Mapping[str, tuple[tuple[str, Asker], ...]]  # by attribute, of each fold: trained without it

    @property
    def settings(self) -> dict[str, Any]:
        """What was chosen and made, for the record."""
        return {"folds": [{"share": share} for share in self.shares], "copies": self.counts._asdict()}


@dataclass(frozen=True)
class FoldTrainer:
    """Trains a network on the parts of a repair; every training is a file, so a killed repair goes on."""

    plan: RepairPlan
    folder: Path  # of work files
    mined: MinedPictures = field(default_factory=MinedPictures)  # fitted on too

    def train(self) -> TrainedFolds:
        """Train, choose the share of the way, train again on both parts; in the end on all photos."""
        shares, folds, choosing = [], [], []
        for number, fold in enumerate(FOLDS, start=1):
            first = self._fit([fold.fitting], f"training for the choice, fold {number} of {len(FOLDS)}")
            with show_stage(f"choosing how far to go, fold {number} of {len(FOLDS)}"):
                share = self._choose_share(first, fold.choosing)
            network = self.tuner.blend(first, share)
            shares.append(share)
            choosing.append((network.digest, partial(self.tuner.score, network)))
            both = [fold.fitting, fold.choosing]
            folds.append(self._write(self._fit(both, f"training fold {number} of {len(FOLDS)}"), share))
        usual = min(shares, key=lambda share: (-Counter(shares)[share], share))
        final = self._write(self._fit(range(len(FOLDS)), "training on all photos"), usual)
        return TrainedFolds(
            folds=tuple(folds), choosing=tuple(choosing), final=final, shares=tuple(shares),
            counts=CopyCounts(*(sum(values) for values in zip(*(row for _, row in self._written), strict=True))),
            fitted_edits=self._fitted_edits(), left_out=self._leave_out(shares),
        )  # fmt: skip

    def _leave_out(self, shares: Sequence[float]) -> dict[str, tuple[tuple[str, Asker], ...]]:
        """For each attribute of the copies the networks of the folds, trained without it."""
        if not self.tuner.settings.leave_out:
            return {}
        made = {name for part in self.copies for photo in part for name in photo.attributes if name}
        return {
            attribute: tuple(
                self._fit_without(attribute, number, share) for number, share in enumerate(shares, start=1)
            )
            for attribute in sorted(made)
        }

    def _fit_without(self, attribute: str, number: int, share: float) -> tuple[str, Asker]:
        fold, stage = FOLDS[number - 1], f"training without {attribute}, fold {number} of {len(FOLDS)}"
        weights = self._fit([fold.fitting, fold.choosing], stage, without=attribute)
        network = self.tuner.blend(weights, share)
        return network.digest, partial(self.tuner.score, network)

    @property
    def copies(self) -> list[list[PhotoCopies]]:
        """The copies of the photos of each part."""
        return [photos for photos, _ in self._written]

    @cached_property
    def _written(self) -> list[tuple[list[PhotoCopies], CopyCounts]]:
        """The copies of each part, and how many of them are edited."""
        return [self._write_copies(part) for part in range(len(FOLDS))]

    @cached_property
    def tuner(self) -> FineTuner:
        """The network and how it is trained."""
        plan, network = self.plan, find_trainable(self.plan.network)
        return FineTuner(
            network=network, columns=plan.columns.photos, deviation=plan.network.preprocessing.std,
            settings=plan.config.train, device=choose_device(plan.config.options.device), seed=plan.config.seed,
        )  # fmt: skip

    @cached_property
    def _recipe(self) -> Recipe | None:
        config = self.plan.config
        fitting = config.fitting_recipe
        recipe = config.train.copy_recipe(load_recipe(fitting) if isinstance(fitting, str) else fitting)
        return None if recipe is None else choose_copy_recipe(recipe)

    def _write_copies(self, part: int) -> tuple[list[PhotoCopies], CopyCounts]:
        config, samples = self.plan.config, self.plan.parts.parts[part]
        writer = CopyWriter(
            source=config.source, samples=samples, recipe=self._recipe, settings=config.train,
            seed=config.seed + FITTING_SEED, segmenter=config.segmenter, folder=self.folder / "copies",
            workers=config.workers,
        )  # fmt: skip
        return writer.write([self.plan.columns.column(sample.label) for sample in samples])

    def _fit(self, parts: Sequence[int], stage: str, without: str = "") -> Weights:
        """The weights of a training on some parts, from its file where it is done; `without` an attribute."""
        photos = [photo for part in parts for photo in self.copies[part]]
        photos += self._as_copies(self.mined.usable(parts))
        if without:
            photos = [photo for photo in (row.without(without) for row in photos) if photo.files]
        about = [
            __version__, self.plan.model.identity, asdict(self.tuner.settings), self.tuner.seed,
            self.plan.columns.photos.tolist(), [[photo.column, *(str(file.relative_to(self.folder)) for file in
            photo.files)] for photo in photos],
        ]  # fmt: skip
        name = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]
        path, tensors = self.folder / "trained" / f"{name}.safetensors", import_extra("safetensors.torch", "torch")
        if not path.is_file():
            write_atomically(path, tensors.save(dict(self.tuner.fit(photos, stage))))
        loaded: Weights = tensors.load(path.read_bytes())
        return loaded

    def _as_copies(self, pictures: Sequence[MinedPicture]) -> list[PhotoCopies]:
        return [
            PhotoCopies(self.plan.columns.column(picture.label), (picture.file,), (picture.condition.attribute,))
            for picture in pictures
        ]

    def _choose_share(self, weights: Weights, part: int) -> float:
        """The share of the way with the best accuracy among the photos' classes; of equals the nearest to the old."""
        copies = [*self.copies[part], *self._as_copies(self.mined.of_part(part))]
        pictures = [(photo.column, file) for photo in copies for file in photo.files]
        images = [read_picture(file) for _, file in pictures]
        truth = np.array([column for column, _ in pictures])
        scored = {share: self._rate(weights, share, images, truth) for share in sorted(self.tuner.settings.shares)}
        return max(scored, key=lambda share: (scored[share], -share))

    def _rate(
        self, weights: Weights, share: float, images: Sequence[NDArray[np.uint8]], truth: NDArray[np.int64]
    ) -> tuple[float, float]:
        """Accuracies with the photos' classes competing and with all."""
        scores = self.tuner.score(self.tuner.blend(weights, share), images)
        columns = self.tuner.columns
        among = columns[scores[:, columns].argmax(axis=1)]
        return float((among == truth).mean()), float((scores.argmax(axis=1) == truth).mean())

    def _write(self, weights: Weights, share: float) -> WrittenNetwork:
        """The trained network as ONNX and as safetensors."""
        network, settings = self.tuner.blend(weights, share), self.tuner.settings
        state = {name: tensor.contiguous().clone() for name, tensor in network.module.state_dict().items()}
        note = (
            f"trained {settings.epochs} epochs with {' and '.join(settings.augment)} copies, {share:.0%} of the way"
            f" from the old weights"
        )
        return WrittenNetwork(
            content=self._make_onnx(network), passes=1, note=note,
            description=describe_network(self.plan.network, takes_photo=False, note=note),
            weights=import_extra("safetensors.torch", "torch").save(state),
        )  # fmt: skip

    def _make_onnx(self, network: TorchNetwork) -> bytes:
        """The network as ONNX, compared with the original: the old graph with other weights, else exported anew."""
        path, address = self.folder / "trained" / "export.onnx", self.plan.network.address
        content = replace_weights(self.plan.network.proto, self.tuner.network.module, network.module)
        if content is not None:
            write_atomically(path, content)
            compare_with_original(address, path, network)
        else:
            export_to_file(address, network, path)
        content = path.read_bytes()
        path.unlink()
        return content

    def _fitted_edits(self) -> dict[tuple[str, str], str]:
        """The edits and levels of the copies, with their attributes."""
        if self._recipe is None:
            return {}
        edits = [edit_named(step.edit, settings) for step in self._recipe.edits for settings in step.all_settings]
        return {(name_of(edit), edit.level): edit.attribute for edit in edits}


def replace_weights(proto: Any, old: Any, new: Any) -> bytes | None:
    """The graph of a module with the parameters of another; None where the graph holds one of them in another form."""
    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    stored = {tensor.name: tensor for tensor in changed.graph.initializer}
    before = {name: tensor.detach().numpy() for name, tensor in old.named_parameters()}
    for name, tensor in new.named_parameters():
        values = tensor.detach().numpy()
        if np.array_equal(values, before[name]):
            continue
        there = numpy_helper.to_array(stored[name]) if name in stored else None
        if there is None or not np.array_equal(there, before[name]):
            return None
        stored[name].CopyFrom(numpy_helper.from_array(values.astype(there.dtype), name))
    content: bytes = changed.SerializeToString(deterministic=True)
    return content


def too_large_for_cpu(network: NetworkFile, device: str) -> str:
    """Why a network is not trained unasked; empty where it is."""
    trainable = network.torch_network
    if trainable is None or choose_device(device) != "cpu" or trainable.parameters <= LARGEST_ON_CPU:
        return ""
    return f"{trainable.parameters / 1e6:.0f} million weights on a CPU; ask for it with --method {TRAIN}"
