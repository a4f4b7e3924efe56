"""`diffusers:MODEL@revision`: a pipeline of diffusers, loaded and set up for one kind of painting."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from counterfoil.errors import UserError
from counterfoil.extras import required
from counterfoil.paint.painter import PaintOptions, Paints
from counterfoil.paint.repository import Repository, loading

_AUTO = {"pictures": "AutoPipelineForText2Image", "backgrounds": "AutoPipelineForInpainting"}
_DTYPES = {"f32": "float32", "bf16": "bfloat16", "fp16": "float16"}


@dataclass(frozen=True)
class LoadedPipeline:
    """A pipeline on its device, with what it was asked to be."""

    address: str
    paints: Paints
    pipeline: Any
    revision: str
    device: str
    options: PaintOptions

    @property
    def steps(self) -> int:
        """Denoising steps of a picture."""
        return int(self.options.steps or self.default("num_inference_steps"))

    @property
    def settings(self) -> Mapping[str, object]:
        """Everything that changes a picture."""
        return {
            "painter": self.address, "revision": self.revision, "pipeline": type(self.pipeline).__name__,
            "scheduler": type(self.pipeline.scheduler).__name__, "steps": self.steps,
            "guidance": self.options.guidance if self.options.guidance is not None else self.default("guidance_scale"),
            "precision": self.precision, **({"size": self.options.size} if self.options.size else {}),
            **({"strength": self.options.strength or self.default("strength")} if self.takes("strength") else {}),
        }  # fmt: skip

    @property
    def precision(self) -> str:
        """The precision that numbers are held in."""
        return precision_on(self.device, self.options)

    @property
    def environment(self) -> Mapping[str, str]:
        """Device and versions."""
        return environment_on(self.device)

    def default(self, name: str) -> Any:
        """What the pipeline does where nobody says."""
        parameter = self._parameters.get(name)
        return None if parameter is None else parameter.default

    def takes(self, name: str) -> bool:
        """Whether the pipeline knows an argument."""
        return name in self._parameters

    @property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(type(self.pipeline).__call__).parameters


def load_pipeline(address: str, found: Repository, paints: Paints, options: PaintOptions) -> LoadedPipeline:
    """The pipeline of a repository that was looked at."""
    diffusers = required("diffusers", "diffusion")
    device = device_for(options)
    with loading(address):
        dtype = dtype_on(device, options)
        pipeline = getattr(diffusers, _AUTO[paints]).from_pretrained(found.place, dtype=dtype, **found.options)
        pipeline = pipeline.to(device) if pipeline.dtype == dtype else pipeline.to(device, dtype)  # older versions
    pipeline.set_progress_bar_config(disable=True)
    if options.scheduler is not None:
        pipeline.scheduler = _scheduler(diffusers, options.scheduler, pipeline.scheduler)
    return LoadedPipeline(address, paints, pipeline, found.revision, device, options)


def device_for(options: PaintOptions) -> str:
    """The device asked for; auto takes a GPU where torch sees one."""
    torch = required("torch", "diffusion")
    if options.device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(f"expected a GPU for --device {options.device}, but torch sees none; use --device cpu")
    try:
        torch.zeros(1, device=options.device).item()
        return str(torch.device(options.device))
    except (RuntimeError, NotImplementedError, AssertionError) as error:
        raise UserError(
            f"expected --device auto, cpu, cuda or cuda:NUMBER, got '{options.device}', which torch cannot use here"
        ) from error


def precision_on(device: str, options: PaintOptions) -> str:
    """bf16 on a GPU and f32 elsewhere, unless told otherwise."""
    if options.precision != "auto":
        return options.precision
    return "bf16" if device.startswith("cuda") else "f32"


def dtype_on(device: str, options: PaintOptions) -> Any:
    """The same, as torch names it."""
    return getattr(required("torch", "diffusion"), _DTYPES[precision_on(device, options)])


def environment_on(device: str) -> dict[str, str]:
    """What pictures are made with."""
    torch = required("torch", "diffusion")
    named = torch.cuda.get_device_name(device) if device.startswith("cuda") else device
    versions = {name: str(required(name, "diffusion").__version__) for name in ("torch", "diffusers", "transformers")}
    return {"device": named, **versions}


def _scheduler(diffusers: Any, name: str, present: Any) -> Any:
    known = [other for other in dir(diffusers) if other.endswith("Scheduler")]
    if name not in known:
        close = difflib.get_close_matches(name, known, n=2, cutoff=0.3)
        raise UserError(
            f"expected a scheduler of diffusers, got '{name}'; did you mean {' or '.join(close) or known[0]}?"
        )
    with loading(name):
        return getattr(diffusers, name).from_config(present.config)
