"""ImageNet-C's fifteen corruptions of the whole picture, one file per family."""

from __future__ import annotations

from collections.abc import Mapping

from counterfoil.edit.corruptions.blurring import DefocusBlur, GlassBlur, MotionBlur, ZoomBlur
from counterfoil.edit.corruptions.corruption import Corruption
from counterfoil.edit.corruptions.digital import Brightness, Contrast, ElasticTransform, JpegCompression, Pixelate
from counterfoil.edit.corruptions.noise import GaussianNoise, ImpulseNoise, ShotNoise
from counterfoil.edit.corruptions.weather import Fog, Frost, Snow

# By the names under which they are registered as edits, in ImageNet-C's order.
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
    "corruption-contrast": Contrast,
    "corruption-elastic-transform": ElasticTransform,
    "corruption-pixelate": Pixelate,
    "corruption-jpeg-compression": JpegCompression,
}
