"""Fine-tuning of a torch network on copies of photos, on the CPU or a GPU; the weights of batch norms' averages stay.

What is learnt is kept as a set of weights beside the old ones, so that any share of the way between the two can be
taken (WiSE-FT, Wortsman et al. 2022).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.models.preprocessing import Preparation
from counterfoil.models.torch_network import TorchNetwork
from counterfoil.plugins import import_extra
from counterfoil.progress import Extent, ProgressMeter, count_progress, open_meter
from counterfoil.remedies.train_settings import TrainSettings
from counterfoil.remedies.training_copies import PhotoCopies
from counterfoil.torch import read_picture
from counterfoil.worker_pool import cores

Weights: TypeAlias = Mapping[str, Any]  # tensors by the names of the parameters that were trained
_ADVERSARIAL_LEVELS = 4.0  # of 255


@dataclass(frozen=True, kw_only=True)
class FineTuner:
    """What all trainings of one network have in common."""

    network: TorchNetwork
    columns: NDArray[np.int64]  # of the photos' classes, ascending
    deviation: tuple[float, float, float]  # that levels 0..255 are divided by
    settings: TrainSettings
    device: str
    seed: int

    def fit(self, photos: Sequence[PhotoCopies], stage: str) -> Weights:
        """The weights that training on these photos gives."""
        torch = import_extra("torch", "torch")
        settings, module = self.settings, copy.deepcopy(self.network.module).to(self.device)
        trained = choose_parameters(module, settings.layers)
        optimiser = torch.optim.AdamW(trained.values(), lr=settings.rate, weight_decay=settings.decay)
        batches = -(-len(photos) // settings.batch)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, self._factor(settings.epochs * batches))
        extent = Extent(stage=stage, unit="pictures", total=settings.epochs * len(photos))
        with self._seeded(torch), open_meter(count_progress(extent)) as meter:
            _start_training(torch, module)
            self._take_steps(module, (optimiser, schedule), self._batches(torch, photos), meter)
        return {name: weight.detach().cpu().clone() for name, weight in trained.items()}

    def _take_steps(self, module: Any, steps: tuple[Any, Any], batches: Any, meter: ProgressMeter) -> None:
        optimiser, schedule = steps
        for images, columns in batches:
            images, targets = (
                given.to(self.device, non_blocking=True) for given in (images, self._targets(columns))
            )  # fmt: skip
            loss = self._loss(module, *self._augment_batch(module, images, targets))
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            schedule.step()
            meter.add(len(images))

    def _loss(self, module: Any, images: Any, targets: Any) -> Any:
        torch = import_extra("torch", "torch")
        scores = module(images)
        if self.network.scores == "probabilities":
            scores = scores.clamp_min(1e-8).log()
        return torch.nn.functional.cross_entropy(scores[:, self._competing.to(scores.device)], targets)

    @cached_property
    def _competing(self) -> Any:
        """The columns over which the loss is taken."""
        every = np.arange(len(self.network.labels))
        chosen = self.columns if self.settings.competing == "photos" else every
        return import_extra("torch", "torch").from_numpy(np.ascontiguousarray(chosen, np.int64))

    def _targets(self, columns: Any) -> Any:
        """The places of the classes among those that compete."""
        return import_extra("torch", "torch").searchsorted(self._competing, columns)

    def _augment_batch(self, module: Any, images: Any, targets: Any) -> tuple[Any, Any]:
        """What works on a whole batch."""
        names = self.settings.augment
        if "adversarial" in names:
            images = self._perturb(module, images, targets)
        if "erasing" in names:
            erase = import_extra("torchvision.transforms", "torch").RandomErasing(p=0.5, value="random")
            images = import_extra("torch", "torch").stack([erase(image) for image in images])
        mixers = [name for name in ("mixup", "cutmix") if name in names]
        for name in mixers:
            v2 = import_extra("torchvision.transforms.v2", "torch")
            mixer = {"mixup": v2.MixUp, "cutmix": v2.CutMix}[name]
            if targets.ndim == 1:
                images, targets = mixer(num_classes=len(self._competing))(images, targets)
        return images, targets

    def _perturb(self, module: Any, images: Any, targets: Any) -> Any:
        """One step of the fast gradient sign method."""
        torch = import_extra("torch", "torch")
        images = images.clone().requires_grad_(True)
        (gradient,) = torch.autograd.grad(self._loss(module, images, targets), images)
        reach = _ADVERSARIAL_LEVELS / torch.tensor(self.deviation, device=images.device).view(1, 3, 1, 1)
        return (images + reach * gradient.sign()).detach()

    def _batches(self, torch: Any, photos: Sequence[PhotoCopies]) -> Any:
        """The batches of all epochs from one loader: its workers, on a GPU one per core, are started once."""
        settings = self.settings
        pictures = TrainingPictures(
            photos=photos, settings=settings, preparation=self.network.preparation, seed=self.seed
        )  # fmt: skip
        return torch.utils.data.DataLoader(
            pictures, batch_sampler=EpochBatches(len(photos), settings.batch, settings.epochs, self.seed),
            num_workers=0 if self.device == "cpu" else cores(), pin_memory=self.device != "cpu",
        )  # fmt: skip

    def _factor(self, steps: int) -> Any:
        """The learning rate of a step, as a share of the highest."""
        if self.settings.schedule == "constant":
            return lambda step: 1.0
        return lambda step: 0.5 * (1 + np.cos(np.pi * step / max(steps, 1)))

    @contextmanager
    def _seeded(self, torch: Any) -> Iterator[None]:
        """Random numbers of this training's own, and every core."""
        threads = torch.get_num_threads()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            torch.set_num_threads(cores())
            try:
                yield
            finally:
                torch.set_num_threads(threads)

    def blend(self, weights: Weights, share: float) -> TorchNetwork:
        """The network with a share of the way from the old weights to these."""
        torch, module = import_extra("torch", "torch"), copy.deepcopy(self.network.module).cpu().eval()
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                if name in weights:
                    parameter += share * (weights[name].to(parameter.dtype) - parameter)
        return replace(self.network, module=module, file=None)

    def score(self, network: TorchNetwork, pictures: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """The scores of pictures without augmentation, (n, labels)."""
        torch = import_extra("torch", "torch")
        rows = []
        module = network.module.to(self.device)
        with torch.inference_mode():
            for start in range(0, len(pictures), self.settings.batch):
                batch = pictures[start : start + self.settings.batch]
                ready = np.stack([self.network.preparation.picture(image) for image in batch])
                rows.append(module(torch.from_numpy(ready).to(self.device)).float().cpu().numpy())
        return np.asarray(np.concatenate(rows), np.float32)


@dataclass(frozen=True)
class EpochBatches:
    """The places of the pictures of every batch, epoch after epoch, each in another order."""

    photos: int
    batch: int
    epochs: int
    seed: int

    def __len__(self) -> int:
        """How many batches there are."""
        return self.epochs * -(-self.photos // self.batch)

    def __iter__(self) -> Iterator[list[int]]:
        """The places of each batch."""
        for epoch in range(self.epochs):
            order = np.random.default_rng([self.seed, epoch]).permutation(self.photos) + epoch * self.photos
            for start in range(0, self.photos, self.batch):
                yield order[start : start + self.batch].tolist()


@dataclass(frozen=True, kw_only=True)
class TrainingPictures:
    """The pictures of all epochs, one after the other, as torch's `DataLoader` takes them; each with its column."""

    photos: Sequence[PhotoCopies]
    settings: TrainSettings
    preparation: Preparation
    seed: int

    def __len__(self) -> int:
        """As many as there are photos, for each epoch."""
        return self.settings.epochs * len(self.photos)

    def __getitem__(self, place: int) -> tuple[Any, int]:
        """The network's input and the column of the class: of each photo the copy whose turn it is."""
        epoch, number = divmod(place, len(self.photos))
        photo = self.photos[number]
        rng = np.random.default_rng([self.seed, epoch, number])
        image = read_picture(photo.files[epoch % len(photo.files)])
        picture = self._transform(self.settings.crop_and_mirror(image, rng), rng)
        ready = self.preparation.picture(np.asarray(picture, np.uint8))
        return import_extra("torch", "torch").from_numpy(ready), photo.column

    def _transform(self, picture: Image.Image, rng: np.random.Generator) -> Image.Image:
        """torchvision's transforms, their random numbers the picture's own: the number of workers changes nothing."""
        if not self._transforms:
            return picture
        torch = import_extra("torch", "torch")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(2**31)))
            for transform in self._transforms:
                picture = transform(picture)
        return picture

    @cached_property
    def _transforms(self) -> list[Any]:
        return self.settings.picture_transforms()


def choose_parameters(module: Any, layers: int) -> dict[str, Any]:
    """The parameters of the last so many layers that hold some, of all where `layers` is 0; the others are frozen."""
    holding = [name for name, part in module.named_modules() if any(True for _ in part.parameters(recurse=False))]
    chosen = set(holding[-layers:] if layers else holding)
    trained = {}
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(name.rpartition(".")[0] in chosen)
        if parameter.requires_grad:
            trained[name] = parameter
    return trained


def _start_training(torch: Any, module: Any) -> None:
    """Dropout as in training; the averages of batch norms stay, since batches of few photos would spoil them."""
    module.train()
    for part in module.modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
            part.eval()
