"""A painter over an unconditional pixel model, by ImageNet-E's method.

Such a model reads no text: the prompt is `lambda NUMBER`. The background is noised in part and denoised again, guided
along the gradient of its complexity; after every step the object, equally noised, is put back in its place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from counterfoil.errors import UserError
from counterfoil.painters.diffusers_repository import (
    DiffusersRepository,
    choose_device,
    choose_dtype,
    choose_precision,
    describe_environment,
    report_load_errors,
)
from counterfoil.painters.guidance import SIDE, raise_complexity
from counterfoil.painters.inpainting import InpaintingArea, paint_areas, prepare_area
from counterfoil.painters.painter_protocol import (
    Painted,
    PainterBase,
    PaintOptions,
    PaintRefused,
    PaintRequest,
    measure_seconds,
    refuse_slow,
)
from counterfoil.plugins import import_extra

_STEPS = 100  # of the whole way from noise to picture, as ImageNet-E respaces it
_STRENGTH = 0.25  # of the way that a background goes back
_LARGEST = 1000.0  # of lambda; beyond it only the guidance is left


def parse_lambda(prompt: str) -> float:
    """The number in `lambda NUMBER`; raises `UserError` for other prompts."""
    word, _, number = prompt.partition(" ")
    try:
        value = float(number) if word == "lambda" else math.nan
    except ValueError:
        value = math.nan
    if not abs(value) <= _LARGEST:
        raise UserError(
            f"expected 'lambda NUMBER' with a number of -{_LARGEST:g} to {_LARGEST:g} for a model without words,"
            f" got '{prompt}'"
        )
    return value


@dataclass(frozen=True, kw_only=True)
class PixelPainter(PainterBase):
    """An unconditional model that paints backgrounds."""

    name: str
    network: Any
    noise: Any  # the scheduler that the model was trained with
    revision: str
    device: str
    options: PaintOptions
    _fitting: list[int] = field(default_factory=list, repr=False, compare=False)

    @property
    def settings(self) -> Mapping[str, object]:
        """All settings that change a picture."""
        return {
            "painter": self.name, "revision": self.revision, "pipeline": type(self.network).__name__,
            "scheduler": "blended ancestral sampling", "steps": self._steps, "strength": self._strength,
            "guidance": "push of the predicted spectrum by lambda and the noise left", "size": self._size,
            "precision": choose_precision(self.device, self.options),
        }  # fmt: skip

    @property
    def environment(self) -> Mapping[str, str]:
        """Device and versions."""
        return describe_environment(self.device)

    def paint(self, requests: Sequence[PaintRequest]) -> list[Painted]:
        """One background or refusal per request, in order."""
        for request in requests:
            self.check_prompt(request.prompt)
        areas = [prepare_area(request, self._size, self._multiple) for request in requests]
        return paint_areas(areas, self._paint_batch, self, self._fitting)

    def check_prompt(self, prompt: str) -> None:
        """Raises `UserError` for a prompt other than `lambda NUMBER`."""
        parse_lambda(prompt)

    def check_time(self, request: PaintRequest, pictures: int) -> None:
        """Raises `UserError` where painting would take hours without a GPU."""
        quick = replace(self, options=replace(self.options, steps=2, strength=1.0))
        steps = len(self._schedule)
        refuse_slow(self, lambda: steps / 2 * measure_seconds(lambda: quick.paint([request])), pictures)

    @property
    def _steps(self) -> int:
        return self.options.steps or _STEPS

    @property
    def _strength(self) -> float:
        return self.options.strength or _STRENGTH

    @property
    def _size(self) -> int:
        side = self.network.config.sample_size
        return int(self.options.size or (max(side) if isinstance(side, (list, tuple)) else side))

    @property
    def _multiple(self) -> int:
        """The number that a side must be a multiple of: it is halved for each level but the last."""
        return max(8, 1 << (len(self.network.config.block_out_channels) - 1))

    @cached_property
    def _schedule(self) -> list[tuple[int, float]]:
        """The timesteps, last one first, and the share of the picture's variance at each."""
        whole = self.noise.alphas_cumprod.double().tolist()
        times = np.linspace(0, len(whole) - 1, min(self._steps, len(whole))).round().astype(int)
        visited = times[: max(1, round(self._strength * len(times)))]
        return [(int(time), whole[time]) for time in reversed(visited)]

    def _paint_batch(self, areas: Sequence[InpaintingArea]) -> list[Painted]:
        torch = import_extra("torch", "diffusion")
        draws = [torch.Generator("cpu").manual_seed(area.request.seed % 2**63) for area in areas]
        photo = _stack(torch, [area.photo.transpose(2, 0, 1) for area in areas]).to(self.device) * 2 - 1
        mask = _stack(torch, [area.mask[None] for area in areas]).to(self.device)
        pull = torch.tensor([parse_lambda(area.request.prompt) for area in areas], device=self.device)

        def draw() -> Any:
            return torch.cat([torch.randn(photo[:1].shape, generator=one) for one in draws]).to(self.device)

        with torch.inference_mode():
            pixels = self._denoise(photo, mask, pull.view(-1, 1, 1, 1) * math.sqrt(mask[0].numel()) / SIDE, draw)
        levels = ((pixels.clamp(-1, 1) + 1) * 127.5).round().permute(0, 2, 3, 1).cpu().numpy()
        return [_check_levels(image) for image in levels]

    def _denoise(self, photo: Any, mask: Any, pull: Any, draw: Any) -> Any:
        """Denoise the background; the object is put back after every step."""
        torch = import_extra("torch", "diffusion")
        shares = [share for _, share in self._schedule] + [1.0]
        noised = math.sqrt(shares[0]) * photo + math.sqrt(1 - shares[0]) * draw()
        dtype = choose_dtype(self.device, self.options)
        predicted = photo
        for (time, share), before in zip(self._schedule, shares[1:], strict=True):
            steps = torch.full((len(photo),), time, device=self.device)
            noise = self.network(noised.to(dtype), steps).sample.float()[:, :3]
            predicted = (noised - math.sqrt(1 - share) * noise) / math.sqrt(share)
            predicted = raise_complexity(predicted.clamp(-1, 1), pull * math.sqrt(1 - share)).clamp(-1, 1)
            spread = 1 - share / before
            mean = math.sqrt(before) * spread * predicted + math.sqrt(share / before) * (1 - before) * noised
            painted = mean / (1 - share) + math.sqrt(spread * (1 - before) / (1 - share)) * draw()
            object_there = math.sqrt(before) * photo + math.sqrt(1 - before) * draw()
            noised = mask * painted + (1 - mask) * object_there
        return mask * predicted + (1 - mask) * photo


def load_pixel_painter(address: str, repository: DiffusersRepository, options: PaintOptions) -> PixelPainter:
    """The painter over an unconditional model."""
    diffusers = import_extra("diffusers", "diffusion")
    _refuse_unused(address, options)
    device = choose_device(options)
    with report_load_errors(address):
        inside = {"subfolder": "unet"} if repository.is_pipeline else {}
        network = diffusers.UNet2DModel.from_pretrained(repository.place, **inside, **repository.options)
        noise = diffusers.DDPMScheduler.from_pretrained(
            repository.place, subfolder="scheduler", **_revision(repository)
        )
    _check_kind(address, repository, network, noise)
    if not (options.size or network.config.sample_size):
        raise UserError(f"expected --size: '{address}' does not say at which size it was trained")
    network = network.eval().to(device, choose_dtype(device, options))
    return PixelPainter(
        name=address, network=network, noise=noise, revision=repository.revision, device=device, options=options
    )


def _refuse_unused(address: str, options: PaintOptions) -> None:
    for name in ("guidance", "scheduler"):
        if getattr(options, name) is not None:
            raise UserError(f"expected no --{name} with '{address}': a model over pixels is guided by lambda alone")


def _check_kind(address: str, repository: DiffusersRepository, network: Any, noise: Any) -> None:
    """Raises `UserError` for a kind of model that cannot be used."""
    config = network.config
    faults = {
        "one that works on an autoencoder's codes": any(
            file.startswith(("vae/", "vqvae/")) for file in repository.files
        ),
        "one that must be told a class": bool(config.num_class_embeds or config.class_embed_type),
        f"one of {config.in_channels} colours": config.in_channels != 3,
        f"one that predicts {noise.config.prediction_type}": noise.config.prediction_type != "epsilon",
    }
    for fault in (fault for fault, present in faults.items() if present):
        raise UserError(
            f"expected an unconditional model over RGB pixels that predicts noise, got '{address}', {fault}"
        )


def _revision(repository: DiffusersRepository) -> dict[str, str]:
    return {"revision": repository.commit} if repository.commit else {}


def _stack(torch: Any, planes: Sequence[Any]) -> Any:
    return torch.from_numpy(np.ascontiguousarray(np.stack(planes), np.float32))


def _check_levels(levels: Any) -> Painted:
    if not np.isfinite(levels).all():
        return PaintRefused("the model gave numbers that are not finite; try --precision f32")
    return np.asarray(levels, np.uint8)
