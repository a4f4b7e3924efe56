"""imagecorruptions 1.1.2 made to run with current NumPy, SciPy and scikit-image; its results are unchanged."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from types import ModuleType
from typing import Any

import numpy as np
import scipy.ndimage
import skimage.filters


def imagecorruptions() -> Any:
    """The package, with the four names put back that it misses."""
    if "imagecorruptions" in sys.modules:
        return sys.modules["imagecorruptions"]
    if not hasattr(np, "float_"):
        setattr(np, "float_", np.float64)  # noqa: B010  the linter takes the plain form for a use of the old name
    interpolation = ModuleType("scipy.ndimage.interpolation")
    interpolation.map_coordinates = scipy.ndimage.map_coordinates  # type: ignore[attr-defined]
    sys.modules["scipy.ndimage.interpolation"] = interpolation
    _put_back_pkg_resources()
    gaussian = skimage.filters.gaussian

    def gaussian_as_it_was(image: Any, *arguments: Any, multichannel: bool = False, **named: Any) -> Any:
        return gaussian(image, *arguments, channel_axis=-1 if multichannel else None, **named)

    skimage.filters.gaussian = gaussian_as_it_was
    package = importlib.import_module("imagecorruptions")
    skimage.filters.gaussian = gaussian
    return package


def _put_back_pkg_resources() -> None:
    if importlib.util.find_spec("pkg_resources") is not None:
        return
    resources = ModuleType("pkg_resources")

    def resource_filename(package: str, path: str) -> str:
        return os.path.join(os.path.dirname(str(sys.modules[package].__file__)), path)

    resources.resource_filename = resource_filename  # type: ignore[attr-defined]
    sys.modules["pkg_resources"] = resources
