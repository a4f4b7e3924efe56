"""ImageNet-C's fifteen corruptions by the names under which they are registered, in its order."""

from __future__ import annotations

from collections.abc import Mapping

from counterfoil.edits.corruptions.digital import (
    Brightness,
    ContrastCorruption,
    ElasticTransform,
    JpegCompression,
    Pixelate,
)
from counterfoil.edits.corruptions.noise import GaussianNoise, ImpulseNoise, ShotNoise
from counterfoil.edits.corruptions.optical_blur import DefocusBlur, GlassBlur, MotionBlur, ZoomBlur
from counterfoil.edits.corruptions.severity import Corruption
from counterfoil.edits.corruptions.weather import Fog, Frost, Snow

CORRUPTIONS: Mapping[str, type[Corruption]] = {
    "corruption-gaussian-noise": GaussianNoise,
    "corruption-shot-noise": ShotNoise,
    "corruption-impulse-noise": ImpulseNoise,
    "corruption-defocus-blur": DefocusBlur,
    "corruption-glass-blur": GlassBlur,
    "corruption-motion-blur": MotionBlur,
    "corruption-zoom-blur": ZoomBlur,
    "corruption-snow": Snow,
    "corruption-frost": Frost,
    "corruption-fog": Fog,
    "corruption-brightness": Brightness,
    "corruption-contrast": ContrastCorruption,
    "corruption-elastic-transform": ElasticTransform,
    "corruption-pixelate": Pixelate,
    "corruption-jpeg-compression": JpegCompression,
}
