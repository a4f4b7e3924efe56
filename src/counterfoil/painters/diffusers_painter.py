"""A painter over a diffusers pipeline that reads prompts."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from counterfoil.errors import UserError
from counterfoil.painters.diffusers_repository import (
    choose_device,
    choose_dtype,
    choose_precision,
    describe_environment,
    find_repository,
    report_load_errors,
)
from counterfoil.painters.inpainting import InpaintingArea, paint_areas, prepare_area
from counterfoil.painters.painter_protocol import (
    Painted,
    PainterBase,
    PaintOptions,
    PaintRefused,
    PaintRequest,
    Paints,
    measure_seconds,
    refuse_slow,
    run_in_batches,
)
from counterfoil.painters.pixel_painter import PixelPainter, load_pixel_painter
from counterfoil.plugins import import_extra

_AUTO = {"pictures": "AutoPipelineForText2Image", "backgrounds": "AutoPipelineForInpainting"}
_MULTIPLE = 16  # pixels: eight per latent cell, and some networks merge two by two cells


@dataclass(frozen=True, kw_only=True)
class DiffusersPainter(PainterBase):
    """A pipeline that paints many requests at once, each from its own generator."""

    name: str  # the address it was loaded from
    paints: Paints
    pipeline: Any
    revision: str
    device: str
    options: PaintOptions
    _fitting: list[int] = field(default_factory=list, repr=False, compare=False)  # batch sizes; the last one counts

    @property
    def settings(self) -> Mapping[str, object]:
        """All settings that change a picture."""
        options = self.options
        return {
            "painter": self.name, "revision": self.revision, "pipeline": type(self.pipeline).__name__,
            "scheduler": type(self.pipeline.scheduler).__name__, "steps": self._steps,
            "guidance": options.guidance if options.guidance is not None else self._default("guidance_scale"),
            "precision": choose_precision(self.device, options), **({"size": options.size} if options.size else {}),
            **({"strength": options.strength or self._default("strength")} if self._takes("strength") else {}),
        }  # fmt: skip

    @property
    def environment(self) -> Mapping[str, str]:
        """Device and versions."""
        return describe_environment(self.device)

    def paint(self, requests: Sequence[PaintRequest]) -> list[Painted]:
        """One picture or refusal per request, in order."""
        if self.paints == "pictures":
            return run_in_batches(requests, self._paint_pictures, self, self._fitting)
        size = self.options.size or self._native_size
        areas = [prepare_area(request, size, _MULTIPLE) for request in requests]
        return paint_areas(areas, self._paint_areas, self, self._fitting)

    def check_prompt(self, prompt: str) -> None:
        """Raises `UserError` for a prompt that only a pixel model understands."""
        if re.fullmatch(r"lambda [-+]?[\d.]+(e[-+]?\d+)?", prompt):
            raise UserError(
                f"expected a model without words for '{prompt}', got {self.name}, which would read it as words;"
                " the recipe wants an unconditional model over pixels"
            )

    def check_time(self, request: PaintRequest, pictures: int) -> None:
        """Raises `UserError` where painting would take hours without a GPU."""
        whole = 1.0 if self._takes("strength") else None  # a share of two steps may be none
        quick = replace(self, options=replace(self.options, steps=2, strength=whole), _fitting=[])
        steps = self._steps * (self.options.strength or self._default("strength") or 1.0)
        refuse_slow(self, lambda: steps / 2 * measure_seconds(lambda: quick.paint([request])), pictures)

    @property
    def _steps(self) -> int:
        return int(self.options.steps or self._default("num_inference_steps"))

    def _default(self, argument: str) -> Any:
        """The pipeline's default for an argument."""
        parameter = self._parameters.get(argument)
        return None if parameter is None else parameter.default

    def _takes(self, argument: str) -> bool:
        return argument in self._parameters

    @property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(type(self.pipeline).__call__).parameters

    @property
    def _native_size(self) -> int:
        """The side that the model was trained at; older pipelines have it in the network's configuration."""
        pipeline = self.pipeline
        cells = getattr(pipeline, "default_sample_size", None) or pipeline.unet.config.sample_size
        return int(cells * pipeline.vae_scale_factor)

    def _paint_pictures(self, requests: Sequence[PaintRequest]) -> list[Painted]:
        size = self.options.size
        return self._call(requests, {} if size is None else {"height": size, "width": size})

    def _paint_areas(self, areas: Sequence[InpaintingArea]) -> list[Painted]:
        height, width = areas[0].size
        strength = self.options.strength
        arguments: dict[str, Any] = {
            "image": [area.photo for area in areas], "mask_image": [area.mask for area in areas],
            "height": height, "width": width, **({} if strength is None else {"strength": strength}),
        }  # fmt: skip
        return self._call([area.request for area in areas], arguments)

    def _call(self, requests: Sequence[PaintRequest], arguments: Mapping[str, Any]) -> list[Painted]:
        """Run the pipeline; generators are on the CPU, so that the noise is the same on every device."""
        torch = import_extra("torch", "diffusion")
        options = self.options
        guidance = {"guidance_scale": options.guidance} if options.guidance is not None else {}
        try:
            output = self.pipeline(
                prompt=[request.prompt for request in requests],
                **self._negative_prompts(requests),
                generator=[torch.Generator("cpu").manual_seed(request.seed % 2**63) for request in requests],
                num_inference_steps=self._steps,
                output_type="np",
                **guidance,
                **arguments,
            )
        except ValueError as error:
            line = " ".join(str(error).split())[:240]
            raise UserError(f"{type(self.pipeline).__name__} of {self.name} refuses: {line}") from error
        except (AttributeError, TypeError) as error:
            if options.scheduler is None:
                raise
            raise UserError(
                f"expected a scheduler that works with {type(self.pipeline).__name__}, got"
                f" '{options.scheduler}': {' '.join(str(error).split())[:160]}; leave --scheduler to the model"
            ) from error
        withheld = getattr(output, "nsfw_content_detected", None) or [False] * len(requests)
        return [_check_image(image, flagged) for image, flagged in zip(output.images, withheld, strict=True)]

    def _negative_prompts(self, requests: Sequence[PaintRequest]) -> dict[str, list[str]]:
        if not any(request.negative for request in requests):
            return {}
        if not self._takes("negative_prompt"):
            kind = type(self.pipeline).__name__
            raise UserError(f"{kind} of {self.name} takes no negative prompt: leave --negative and the recipe's empty")
        return {"negative_prompt": [request.negative for request in requests]}


def load_diffusers(address: str, place: str, paints: Paints, options: PaintOptions) -> DiffusersPainter | PixelPainter:
    """The painter at `diffusers:MODEL@revision`: a pipeline that reads prompts, or a pixel model."""
    diffusers = import_extra("diffusers", "diffusion")
    repository = find_repository(address, place)
    if not repository.reads_words:
        if paints == "pictures":
            raise UserError(f"expected a model that paints from words, got '{address}', which reads none")
        return load_pixel_painter(address, repository, options)
    device = choose_device(options)
    with report_load_errors(address):
        dtype = choose_dtype(device, options)
        kind = getattr(diffusers, _AUTO[paints])
        pipeline = kind.from_pretrained(repository.place, dtype=dtype, **repository.options)
        pipeline = pipeline.to(device) if pipeline.dtype == dtype else pipeline.to(device, dtype)  # older versions
    pipeline.set_progress_bar_config(disable=True)
    if options.scheduler is not None:
        pipeline.scheduler = _load_scheduler(diffusers, options.scheduler, pipeline.scheduler)
    return DiffusersPainter(
        name=address, paints=paints, pipeline=pipeline, revision=repository.revision, device=device, options=options
    )


def _load_scheduler(diffusers: Any, name: str, present: Any) -> Any:
    known = [other for other in dir(diffusers) if other.endswith("Scheduler")]
    if name not in known:
        close = difflib.get_close_matches(name, known, n=2, cutoff=0.3)
        raise UserError(
            f"expected a scheduler of diffusers, got '{name}'; did you mean {' or '.join(close) or known[0]}?"
        )
    with report_load_errors(name):
        return getattr(diffusers, name).from_config(present.config)


def _check_image(image: Any, withheld: bool) -> Painted:
    values = np.asarray(image, np.float32)
    if withheld:
        return PaintRefused("held back by the model's safety checker")
    if not np.isfinite(values).all():
        return PaintRefused("the model gave numbers that are not finite; try --precision f32")
    return np.asarray(np.rint(255 * np.clip(values, 0, 1)), np.uint8)
