"""Painter over a diffusers pipeline."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from counterfoil.errors import UserError
from counterfoil.painters.diffusers_pipeline import (
    InpaintingArea,
    LoadedPipeline,
    by_size,
    diffusers_repository,
    inpainting_area,
    load_pipeline,
)
from counterfoil.painters.painter_protocol import (
    Painted,
    PainterBase,
    PaintOptions,
    PaintRefused,
    PaintRequest,
    Paints,
    refuse_slow,
    run_in_batches,
    seconds_of,
)
from counterfoil.painters.pixel_painter import PixelPainter, load_pixels
from counterfoil.plugins import import_extra

_MULTIPLE = 16  # pixels: eight to a latent cell, and some networks take two cells a side as one


@dataclass(frozen=True)
class DiffusersPainter(PainterBase):
    """A pipeline that paints many wishes at once, each from its own generator."""

    loaded: LoadedPipeline
    _room: list[int] = field(default_factory=list, repr=False, compare=False)  # the batch size that fits, once known

    @property
    def name(self) -> str:
        """The address it was loaded from."""
        return self.loaded.address

    @property
    def settings(self) -> Mapping[str, object]:
        """Everything that changes a picture."""
        return self.loaded.settings

    @property
    def environment(self) -> Mapping[str, str]:
        """Device and versions."""
        return self.loaded.environment

    @property
    def device(self) -> str:
        """Where it paints."""
        return self.loaded.device

    @property
    def options(self) -> PaintOptions:
        """What it was asked to be."""
        return self.loaded.options

    def paint(self, wishes: Sequence[PaintRequest]) -> list[Painted]:
        """One picture or refusal per wish, in order."""
        if self.loaded.paints == "pictures":
            return run_in_batches(wishes, self._pictures, self, self._room)
        size = self.loaded.options.size or self._native_size
        canvases = [inpainting_area(wish, size, _MULTIPLE) for wish in wishes]
        painted: list[Painted] = [PaintRefused("never painted")] * len(wishes)
        for places in by_size(canvases):  # a batch holds pictures of one size
            group = run_in_batches([canvases[place] for place in places], self._around, self, self._room)
            for place, found in zip(places, group, strict=True):
                painted[place] = found if isinstance(found, PaintRefused) else canvases[place].fitted_back(found)
        return painted

    def check_prompt(self, prompt: str) -> None:
        """Refuse what only a model over pixels understands."""
        if re.fullmatch(r"lambda [-+]?[\d.]+(e[-+]?\d+)?", prompt):
            raise UserError(
                f"expected a model without words for '{prompt}', got {self.name}, which would read it as words;"
                " the recipe wants an unconditional model over pixels"
            )

    def check_time(self, wish: PaintRequest, pictures: int) -> None:
        """Refuse what would take hours without a GPU."""
        whole = 1.0 if self.loaded.takes("strength") else None  # a part of two steps may be none
        hurried = DiffusersPainter(replace(self.loaded, options=replace(self.options, steps=2, strength=whole)))
        steps = self.loaded.steps * (self.options.strength or self.loaded.default("strength") or 1.0)
        refuse_slow(self, lambda: steps / 2 * seconds_of(lambda: hurried.paint([wish])), pictures)

    @property
    def _native_size(self) -> int:
        """The side that the model was trained at; older pipelines leave it to their network's configuration."""
        pipeline = self.loaded.pipeline
        cells = getattr(pipeline, "default_sample_size", None) or pipeline.unet.config.sample_size
        return int(cells * pipeline.vae_scale_factor)

    def _pictures(self, wishes: Sequence[PaintRequest]) -> list[Painted]:
        size = self.loaded.options.size
        return self._call(wishes, {} if size is None else {"height": size, "width": size})

    def _around(self, canvases: Sequence[InpaintingArea]) -> list[Painted]:
        height, width = canvases[0].size
        strength = self.loaded.options.strength
        arguments: dict[str, Any] = {
            "image": [canvas.photo for canvas in canvases], "mask_image": [canvas.mask for canvas in canvases],
            "height": height, "width": width, **({} if strength is None else {"strength": strength}),
        }  # fmt: skip
        return self._call([canvas.wish for canvas in canvases], arguments)

    def _call(self, wishes: Sequence[PaintRequest], arguments: Mapping[str, Any]) -> list[Painted]:
        """Generators live on the CPU: the same noise on every device, whatever stands beside the picture."""
        torch = import_extra("torch", "diffusion")
        options = self.loaded.options
        asked = {"guidance_scale": options.guidance} if options.guidance is not None else {}
        try:
            found = self.loaded.pipeline(
                prompt=[wish.prompt for wish in wishes],
                **self._negative(wishes),
                generator=[torch.Generator("cpu").manual_seed(wish.seed % 2**63) for wish in wishes],
                num_inference_steps=self.loaded.steps,
                output_type="np",
                **asked,
                **arguments,
            )
        except ValueError as error:
            line = " ".join(str(error).split())[:240]
            raise UserError(f"{type(self.loaded.pipeline).__name__} of {self.name} refuses: {line}") from error
        except (AttributeError, TypeError) as error:
            if options.scheduler is None:
                raise
            raise UserError(
                f"expected a scheduler that works with {type(self.loaded.pipeline).__name__}, got"
                f" '{options.scheduler}': {' '.join(str(error).split())[:160]}; leave --scheduler to the model"
            ) from error
        held_back = getattr(found, "nsfw_content_detected", None) or [False] * len(wishes)
        return [_checked(image, held) for image, held in zip(found.images, held_back, strict=True)]

    def _negative(self, wishes: Sequence[PaintRequest]) -> dict[str, list[str]]:
        if not any(wish.negative for wish in wishes):
            return {}
        if not self.loaded.takes("negative_prompt"):
            kind = type(self.loaded.pipeline).__name__
            raise UserError(f"{kind} of {self.name} takes no negative prompt: leave --negative and the recipe's empty")
        return {"negative_prompt": [wish.negative for wish in wishes]}


def load_diffusers(address: str, place: str, paints: Paints, options: PaintOptions) -> DiffusersPainter | PixelPainter:
    """The painter at `diffusers:MODEL@revision`: a pipeline that reads prompts, or a model over pixels."""
    import_extra("diffusers", "diffusion")
    found = diffusers_repository(address, place)
    if not found.reads_words:
        if paints == "pictures":
            raise UserError(f"expected a model that paints from words, got '{address}', which reads none")
        return load_pixels(address, found, options)
    return DiffusersPainter(load_pipeline(address, found, paints, options))


def _checked(image: Any, held_back: bool) -> Painted:
    values = np.asarray(image, np.float32)
    if held_back:
        return PaintRefused("held back by the model's safety checker")
    if not np.isfinite(values).all():
        return PaintRefused("the model gave numbers that are not finite; try --precision f32")
    return np.asarray(np.rint(255 * np.clip(values, 0, 1)), np.uint8)
