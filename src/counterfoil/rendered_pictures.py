"""A picture that a run made, what is measured of it, and why one is not counted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.device_rendering.torch_renderer import MadePicture
from counterfoil.errors import Unusable
from counterfoil.models.preprocessing import MadeInputs, list_geometries
from counterfoil.object_mask import hard_object
from counterfoil.sources.pixels import hash_pixels
from counterfoil.store.prediction_tables import RenderedVariant, ToolTrace
from counterfoil.types import TOOL_CHECKS, Model, Picture, Sample, Skipped, Variant

Image = NDArray[np.uint8]
_NO_TRACE = ToolTrace()
_MAY_REPEAT = frozenset({"original", "control", "size"}) | TOOL_CHECKS  # attributes
_NO_ALPHA = np.zeros((0, 0), np.uint8)


class MeasuredPicture(NamedTuple):
    """A picture that was made, its place in the plan, and what was measured of it."""

    place: int
    planned: Variant
    measured: RenderedVariant
    picture: Picture
    inputs: tuple[Image, ...] = ()  # that a device made for the networks, by their geometries

    @classmethod
    def of_device(
        cls, place: int, planned: Variant, variant: Variant, made: MadePicture, trace: ToolTrace
    ) -> MeasuredPicture:
        """A picture of a device, whose alpha stays there."""
        measured = describe_object(variant, made.image, (made.rows, made.columns), trace)
        return cls(place, planned, measured, Picture(made.image, _NO_ALPHA), made.inputs)


def refuse(sample: Sample, place: int, planned: Variant, error: Unusable) -> list[tuple[int, Skipped]]:
    """The row of a picture that cannot be made; none for a double, which is no picture of its own."""
    row = place, Skipped(sample.id, "edit", planned.edit, str(error))
    return [] if planned.attribute in TOOL_CHECKS else [row]


def collect_inputs(models: Sequence[Model], pictures: Sequence[MeasuredPicture]) -> MadeInputs:
    """What a device made of the pictures for the models' networks."""
    geometries = list_geometries(models) if any(each.inputs for each in pictures) else ()
    return {geometry: [each.inputs[place] for each in pictures] for place, geometry in enumerate(geometries)}


def find_repetition(variant: Variant, same: Sequence[Variant]) -> str:
    """Why a picture with the pixels of these earlier ones is skipped; empty where it counts."""
    if any(_repeats(variant, other) for other in same):
        return f"replicate {variant.replicate + 1} has the same pixels as another, and counts once"
    levels = [other.level for other in same if _is_same_edit(variant, other)]
    return f"level {variant.level} has the same pixels as level {levels[0]}, and counts once" if levels else ""


def _repeats(variant: Variant, other: Variant) -> bool:
    """Whether two variants are replicates of one condition."""
    return variant.replicate > 0 and all(
        (variant.attribute == other.attribute, variant.edit == other.edit, variant.level == other.level)
    )


def _is_same_edit(variant: Variant, other: Variant) -> bool:
    """Whether two variants are one edit at two levels, where equal pixels mean that one of them says nothing."""
    may_repeat = variant.attribute in _MAY_REPEAT  # an object may have the size that two levels ask for
    return not may_repeat and (variant.attribute, variant.edit) == (other.attribute, other.edit)


def measure(variant: Variant, picture: Picture, tool: ToolTrace = _NO_TRACE) -> RenderedVariant:
    """The hash of a picture's pixels, and the object's share of the picture and centre."""
    covered = hard_object(picture.alpha)
    return describe_object(variant, picture.image, (covered.sum(axis=1), covered.sum(axis=0)), tool)


def describe_object(
    variant: Variant, image: Image, counts: tuple[NDArray[np.int_], NDArray[np.int_]], tool: ToolTrace
) -> RenderedVariant:
    """The same, of an object that has so many pixels in each row and in each column."""
    rows, columns = counts
    share = 100 * float(rows.sum() / (len(rows) * len(columns)))
    return RenderedVariant(variant, hash_pixels(image), share, _centre(columns), _centre(rows), tool)


def _centre(counts: NDArray[np.int_]) -> float:
    """The centre of the object along one side, as a share of that side; NaN without an object."""
    if not counts.any():
        return math.nan
    return float((counts @ (np.arange(len(counts)) + 0.5)) / counts.sum() / len(counts))
