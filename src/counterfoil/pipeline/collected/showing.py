"""The pictures of a recorded run once more, for its report: read from the collection, or made from the photos."""

from __future__ import annotations

from functools import cache

import numpy as np

from counterfoil.errors import Unusable, UserError
from counterfoil.evaluate import Collection
from counterfoil.pipeline.collected.labelled import ById
from counterfoil.pipeline.collected.opening import collection_at
from counterfoil.pipeline.recorded.pictures import Maker, remaker
from counterfoil.pipeline.recorded.study import Study
from counterfoil.types import Picture, Variant


def maker_for(study: Study) -> Maker:
    """Gives a recorded run's pictures; None where collection or photo is gone."""
    run = study.runs[0]
    return _shower(run.images) if run.collection else remaker(study)


def _shower(address: str) -> Maker:
    @cache
    def opened() -> tuple[Collection, ById] | None:
        try:
            collection = collection_at(address)
        except (UserError, OSError):  # it was moved or changed since: the page does without
            return None
        return collection, ById(collection.exhibits)

    def show(variant: Variant) -> Picture | None:
        found = opened()
        if found is None or variant.id not in found[1]:
            return None
        try:
            image = found[0].read(found[1][variant.id])
        except (Unusable, UserError):  # the picture, or a background that it stands on, is broken by now
            return None
        return Picture(image, np.full(image.shape[:2], 255, np.uint8))

    return show
