"""Edits, about one file per attribute, and a registry of all by name.

The edits' classes are names of this package: `counterfoil.edits.Size(0.1)`. All are imported when one is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from counterfoil.edits.background import (
        BackgroundAdditive,
        BackgroundBlur,
        BackgroundPlain,
        BackgroundSwap,
        BackgroundTexture,
        BackgroundWorst,
        Segmented,
    )
    from counterfoil.edits.background_colour import (
        BackgroundBrightness,
        BackgroundContrast,
        BackgroundGrayscale,
        BackgroundHue,
        BackgroundRainbow,
    )
    from counterfoil.edits.background_folder import BackgroundFolder
    from counterfoil.edits.blur import ObjectBlur
    from counterfoil.edits.colour import ObjectBrightness, ObjectGrayscale, ObjectHue
    from counterfoil.edits.combine import Combine, CombineDonor
    from counterfoil.edits.complexity import Complexity
    from counterfoil.edits.control import Control
    from counterfoil.edits.corruptions.digital import (
        Brightness,
        ContrastCorruption,
        ElasticTransform,
        JpegCompression,
        Pixelate,
    )
    from counterfoil.edits.corruptions.noise import GaussianNoise, ImpulseNoise, ShotNoise
    from counterfoil.edits.corruptions.optical_blur import DefocusBlur, GlassBlur, MotionBlur, ZoomBlur
    from counterfoil.edits.corruptions.weather import Fog, Frost, Snow
    from counterfoil.edits.direction import Direction, Flip, Tilt
    from counterfoil.edits.fill_control import FillControl
    from counterfoil.edits.light import Exposure, WhiteBalance
    from counterfoil.edits.material import Material
    from counterfoil.edits.motion import ObjectMotion
    from counterfoil.edits.occlusion import Crop, Occlusion, OcclusionObject
    from counterfoil.edits.painted import PaintedAdversarial, PaintedComplexity, PaintedRandom, PaintedRemoval
    from counterfoil.edits.position import Position, PositionGrid
    from counterfoil.edits.presence import ObjectBox, ObjectRemoved
    from counterfoil.edits.scene_edits import SceneDirection, ScenePosition, SceneSize, SceneSwap
    from counterfoil.edits.second_object import SecondObject
    from counterfoil.edits.shadow import Shadow
    from counterfoil.edits.shape import Edges, Silhouette
    from counterfoil.edits.size import Size
    from counterfoil.edits.text import Text
    from counterfoil.edits.texture import Texture
    from counterfoil.edits.whole_picture import Grayscale, Jpeg, Resize

__all__ = [
    "BackgroundAdditive", "BackgroundBlur", "BackgroundBrightness", "BackgroundContrast", "BackgroundFolder",
    "BackgroundGrayscale", "BackgroundHue", "BackgroundPlain", "BackgroundRainbow", "BackgroundSwap",
    "BackgroundTexture", "BackgroundWorst", "Brightness", "Combine", "CombineDonor", "Complexity",
    "ContrastCorruption", "Control", "Crop", "DefocusBlur", "Direction", "Edges", "ElasticTransform", "Exposure",
    "FillControl", "Flip", "Fog", "Frost", "GaussianNoise", "GlassBlur", "Grayscale", "ImpulseNoise", "Jpeg",
    "JpegCompression", "Material", "MotionBlur", "ObjectBlur", "ObjectBox", "ObjectBrightness", "ObjectGrayscale",
    "ObjectHue", "ObjectMotion", "ObjectRemoved", "Occlusion", "OcclusionObject", "PaintedAdversarial",
    "PaintedComplexity", "PaintedRandom", "PaintedRemoval", "Pixelate", "Position", "PositionGrid", "Resize",
    "SceneDirection", "ScenePosition", "SceneSize", "SceneSwap", "SecondObject", "Segmented", "Shadow", "ShotNoise",
    "Silhouette", "Size", "Snow", "Text", "Texture", "Tilt", "WhiteBalance", "ZoomBlur"
]  # fmt: skip

if not TYPE_CHECKING:  # a checker knows the names above and refuses others

    def __getattr__(name: str) -> object:
        """The class of an edit; all edits are imported with the first."""
        if name not in __all__:
            raise AttributeError(f"module 'counterfoil.edits' has no attribute '{name}'")
        from counterfoil.edits.registry import OURS  # it imports every file of this package

        return next(kind for kind in OURS.values() if kind.__name__ == name)


def __dir__() -> list[str]:
    """The edits' classes, for completion."""
    return sorted(__all__)
