"""A user's script, for type checkers: everything here is right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import counterfoil as cf
from counterfoil.testing import assert_robust


@cf.edit(attribute="background")
def snow(image: NDArray[np.uint8], mask: NDArray[np.uint8], rng: np.random.Generator, amount: float = 0.2) -> object:
    image[(rng.random(mask.shape) < amount) & (mask == 0)] = 255
    return image


def model(images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float64]:
    return np.full((len(images), 2), 0.5)


def check(folder: str) -> list[str]:
    wrapped: cf.Model = cf.wrap_model(model, labels=["a", "b"])
    edits = [cf.edits.Size(0.1), snow(amount=0.5), "background-swap"]
    result: cf.Result = cf.run(folder, {"mine": wrapped}, edits=edits, limit=4)
    drops: list[float] = [drop.drop for drop in result.drops]
    for variant, picture in cf.variants(folder, edits=edits):
        print(variant.edit, picture.image.shape, drops)
    verdict: cf.GateResult = cf.gate(result, max_drop={"background": 5.0})
    compared: cf.Comparison = cf.compare(result, folder)
    assert_robust(wrapped, folder, attribute="background", max_drop=5)
    workspace: cf.Workspace = cf.build(folder, "work", edits=edits)
    benchmark: cf.Benchmark = cf.freeze(workspace, "bench", name="b", version="1.0.0")
    cf.evaluate(benchmark, [wrapped]).report("out")
    return [verdict.verdict, compared.sentence]
