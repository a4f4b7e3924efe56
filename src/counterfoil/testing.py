"""Assertions on models for a test suite."""

from __future__ import annotations

from typing import Any

from counterfoil.errors import UserError
from counterfoil.report.gate import Bound
from counterfoil.run_result import Result
from counterfoil.run_verdicts import gate
from counterfoil.runner import run


def assert_robust(
    model: Any,
    images: Any,
    *,
    attribute: str | None = None,
    max_drop: float = 5.0,
    bound: Bound = "point",
    **settings: Any,
) -> Result:
    """Assert that an attribute costs a model no more than some points of accuracy.

    Args:
        model: A model as `run` takes it.
        images: Photos as `run` takes them.
        attribute: The attribute, such as "background", or an edit; every attribute of the default recipe if not given.
        max_drop: Points of accuracy that it may cost.
        bound: "point" looks at the measured drop alone, "upper" asks for proof that it is not larger, which takes
            hundreds of photos, "lower" fails only where it is proven to be larger.
        settings: Further arguments of `run`, such as `labels`, `transform`, `edits` or `out`.

    Returns:
        The result of the run, for further assertions.

    Raises:
        AssertionError: An edit costs more, or cannot be judged; the message names each.
        UserError: The input cannot be used, or no photo could be edited.

    Examples:
        >>> import numpy as np
        >>> def photo(colour, shift):
        ...     image, mask = np.full((64, 64, 3), 90, np.uint8), np.zeros((64, 64), np.uint8)
        ...     image[20:40, 20 + shift : 44], mask[20:40, 20 + shift : 44] = colour, 255
        ...     return image, mask
        >>> photos = []
        >>> for label, colour in {"red": (200, 40, 40), "blue": (40, 40, 200)}.items():
        ...     photos += [(image, label, mask) for image, mask in (photo(colour, shift) for shift in range(10))]
        >>> reddest = lambda images: ["red" if each[..., 0].max() > each[..., 2].max() else "blue" for each in images]
        >>> assert_robust({"reddest": reddest}, photos, attribute="object-grayscale", max_drop=5)
        Traceback (most recent call last):
        ...
        AssertionError: violated: reddest, object-grayscale gray: drop 50.0 points ...
    """
    if attribute is not None and "edits" not in settings and "recipe" not in settings:
        settings["edits"] = [attribute]
    result = run(images, model, **settings)
    if not any(drop.n for drop in result.drops):
        reasons = sorted({row.reason for row in result.skipped})
        raise UserError(f"expected photos that can be edited, got none: {'; '.join(reasons[:3])}")
    judged = gate(result, max_drop={attribute or "any": max_drop}, bound=bound)
    failed = [line for line in judged.lines if not line.startswith("holds")]
    if failed:
        raise AssertionError("\n".join(failed))
    return result
