"""Painters loaded by address: diffusers models, users' own (python:module:factory) and those of plug-ins."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from counterfoil.errors import UserError
from counterfoil.painters.diffusers_painter import load_diffusers
from counterfoil.painters.painter_protocol import (
    Painted,
    Painter,
    PainterBase,
    PaintOptions,
    PaintRefused,
    PaintRequest,
    Paints,
)
from counterfoil.plugins import (
    Plugin,
    find_plugin,
    list_plugins,
    load_factory,
    read_optional,
    reporting_errors,
    source_digest,
)

_OF_DIFFUSERS = ("steps", "guidance", "scheduler", "size", "strength", "device", "precision")


@dataclass(frozen=True)
class PythonPainter(PainterBase):
    """A painter around a user's object with `paint(requests)`; number, type and shape of pictures are checked."""

    name: str
    painter: Any
    digest: str  # of the module's source, where the object has none

    @property
    def settings(self) -> Mapping[str, object]:
        """The object's settings, with its digest."""
        return {"painter": self.name, "revision": self.digest, **read_optional(self.painter, "settings", {})}

    @property
    def environment(self) -> Mapping[str, str]:
        """The object's environment."""
        return dict(read_optional(self.painter, "environment", {}))

    def check_prompt(self, prompt: str) -> None:
        """Call the object's own check, where it is a `PainterBase`."""
        if isinstance(self.painter, PainterBase):
            self.painter.check_prompt(prompt)

    def check_time(self, request: PaintRequest, pictures: int) -> None:
        """Call the object's own check, where it is a `PainterBase`."""
        if isinstance(self.painter, PainterBase):
            self.painter.check_time(request, pictures)

    def paint(self, requests: Sequence[PaintRequest]) -> list[Painted]:
        """One picture or refusal per request, in order."""
        with reporting_errors(f"{self.name} failed at {_name_prompts(requests)}", "; what is finished is kept"):
            images = list(self.painter.paint(requests))
        if len(images) != len(requests):
            raise UserError(f"expected {len(requests)} pictures from {self.name}, got {len(images)}")
        for image, request in zip(images, requests, strict=True):
            if not (isinstance(image, PaintRefused) or _fits(image, request)):
                expected = f"expected {_describe_wanted(request)} or a PaintRefused from {self.name}"
                raise UserError(f"{expected}, got {_describe_image(image)}")
        return images


def _fits(image: object, request: PaintRequest) -> bool:
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.shape[2:] != (3,) or not image.size:
        return False
    return request.around is None or image.shape == request.around.image.shape


def _describe_wanted(request: PaintRequest) -> str:
    shape = "(height, width, 3)" if request.around is None else f"{request.around.image.shape}, that of the photo,"
    return f"an array of dtype uint8 and shape {shape}"


def _describe_image(image: object) -> str:
    if isinstance(image, np.ndarray):
        return f"one of dtype {image.dtype} and shape {image.shape}"
    return f"an object of type {type(image).__name__}"


def _name_prompts(requests: Sequence[PaintRequest]) -> str:
    more = f" or at one of {len(requests) - 1} more prompts of its batch" if len(requests) > 1 else ""
    return f"the prompt '{requests[0].prompt}'{more}"


def load_python_painter(address: str, place: str, paints: Paints, options: PaintOptions) -> PythonPainter:
    """Import the module and call its factory."""
    _refuse_unused(address, options)
    return _check_painter(address, *load_factory(address, place))


def load_plugin_painter(address: str, plugin: Plugin, paints: Paints, options: PaintOptions) -> PythonPainter:
    """The painter that another package's loader gives for the address."""
    with reporting_errors(f"expected '{address}' to load, but it fails"):
        painter = plugin.load(address, address.partition(":")[2], paints, options)
    return _check_painter(address, painter, plugin.module)


def _check_painter(address: str, painter: Any, module: ModuleType) -> PythonPainter:
    if not callable(read_optional(painter, "paint", None)):
        raise UserError(f"expected '{address}' to name a factory of an object with `paint(requests)`, got none")
    checked = PythonPainter(address, painter, str(read_optional(painter, "digest", None) or source_digest(module)))
    try:
        json.dumps([checked.settings, checked.environment], allow_nan=False)
    except (TypeError, ValueError) as error:
        expected = f"expected `settings` and `environment` of '{address}' as dictionaries ready for JSON"
        raise UserError(f"{expected}: {error}") from error
    return checked


def _refuse_unused(address: str, options: PaintOptions) -> None:
    """Raises `UserError` for a setting that would have no effect."""
    usual = PaintOptions()
    for name in _OF_DIFFUSERS:
        if getattr(options, name) != getattr(usual, name):
            raise UserError(f"expected no --{name} with {address}: its factory is asked without settings; set it there")


ENTRY_POINTS = "counterfoil.painters"  # the group in which another package names its loaders by scheme

PAINTERS: dict[str, tuple[Callable[[str, str, Paints, PaintOptions], Painter], str]] = {
    "diffusers": (load_diffusers, "diffusers:org/name@revision or a folder: any diffusers pipeline with safetensors"),
    "python": (load_python_painter, "python:module:factory, where factory() returns an object with `paint(requests)`"),
}


def painter_schemes() -> dict[str, str]:
    """What each scheme loads, built-in and from other packages."""
    others = {scheme: plugin.about for scheme, plugin in list_plugins(ENTRY_POINTS).items() if scheme not in PAINTERS}
    return {**{scheme: about for scheme, (_, about) in PAINTERS.items()}, **others}


def load_painter(address: str, paints: Paints, options: PaintOptions | None = None) -> Painter:
    """The painter at this address, for whole pictures or for backgrounds."""
    kind, colon, place = address.partition(":")
    if colon and place and kind in PAINTERS:
        return PAINTERS[kind][0](address, place, paints, options or PaintOptions())
    plugin = find_plugin(ENTRY_POINTS, kind) if colon else None
    if plugin is not None:
        return load_plugin_painter(address, plugin, paints, options or PaintOptions())
    known = "; ".join(about for _, about in PAINTERS.values())
    raise UserError(f"expected the address of a painter, got '{address}'; there are: {known}")
