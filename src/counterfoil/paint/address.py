"""Addresses of painters: `diffusers:MODEL@revision`, `python:module:factory`."""

from __future__ import annotations

from collections.abc import Callable

from counterfoil.errors import UserError
from counterfoil.own_code import plugin_named, plugins_of
from counterfoil.paint.diffusers_painter import load_diffusers
from counterfoil.paint.painter import Painter, PaintOptions, Paints
from counterfoil.paint.python import load_plugin_painter, load_python_painter

ENTRY_POINTS = "counterfoil.painters"  # the group in which another package names its loaders by scheme

PAINTERS: dict[str, tuple[Callable[[str, str, Paints, PaintOptions], Painter], str]] = {
    "diffusers": (load_diffusers, "diffusers:org/name@revision or a folder: any diffusers pipeline with safetensors"),
    "python": (load_python_painter, "python:module:factory, where factory() returns an object with `paint(wishes)`"),
}


def painter_schemes() -> dict[str, str]:
    """What each scheme loads, ours and those of other packages."""
    others = {scheme: plugin.about for scheme, plugin in plugins_of(ENTRY_POINTS).items() if scheme not in PAINTERS}
    return {**{scheme: about for scheme, (_, about) in PAINTERS.items()}, **others}


def load_painter(address: str, paints: Paints, options: PaintOptions | None = None) -> Painter:
    """The painter at this address, for whole pictures or for backgrounds."""
    kind, colon, place = address.partition(":")
    if colon and place and kind in PAINTERS:
        return PAINTERS[kind][0](address, place, paints, options or PaintOptions())
    plugin = plugin_named(ENTRY_POINTS, kind) if colon else None
    if plugin is not None:
        return load_plugin_painter(address, plugin, paints, options or PaintOptions())
    known = "; ".join(about for _, about in PAINTERS.values())
    raise UserError(f"expected the address of a painter, got '{address}'; there are: {known}")
