"""Some of the objects that were cut out, to check the masks by eye: doubtful ones first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import nsmallest
from typing import TypeAlias

from counterfoil.object_mask import MaskVerdict
from counterfoil.study.examples import example_rank, list_originals, read_pictures
from counterfoil.study.runs import Study
from counterfoil.types import Variant

CutOutReader: TypeAlias = Callable[[Variant], "bytes | None"]  # an original to a JPEG of its object alone

_DOUBTFUL, _OTHERS = 6, 4  # shown at most


@dataclass(frozen=True)
class CutOut:
    """The object of one photo as its mask cuts it out."""

    sample_id: str
    picture: bytes  # JPEG
    verdict: MaskVerdict | None  # None where none was recorded


def choose_cut_outs(study: Study, read: CutOutReader) -> list[CutOut]:
    """Return the doubtful masks and a few others, drawn by a fixed rule; empty where the photos are not at hand."""
    if study.run.collection:
        return []
    names = {verdict.sample for verdict in study.doubtful_masks}
    doubtful = (key for key in list_originals(study) if key.sample_id in names) if names else ()
    others = (key for key in list_originals(study) if key.sample_id not in names)
    chosen = [*nsmallest(_DOUBTFUL, doubtful, example_rank), *nsmallest(_OTHERS, others, example_rank)]
    verdicts = study.masks_of({key.sample_id for key in chosen})
    originals = read_pictures(study.manifest, chosen)
    pictures = {key.sample_id: read(originals[key][0]) for key in chosen}
    return [CutOut(name, picture, verdicts.get(name)) for name, picture in pictures.items() if picture is not None]
