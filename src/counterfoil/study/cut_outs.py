"""Some of the objects that were cut out, to check the masks by eye: doubtful ones first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from counterfoil.object_mask import MaskVerdict
from counterfoil.study.examples import example_rank, picture_key, read_originals
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
    verdicts = {verdict.sample: verdict for verdict in study.masks}
    originals = {str(variant.sample_id): variant for variant in read_originals(study)}
    order = sorted(originals, key=lambda name: example_rank(picture_key(originals[name])))
    doubtful = [name for name in order if name in verdicts and verdicts[name].is_doubtful]
    others = [name for name in order if name not in doubtful]
    chosen = [*doubtful[:_DOUBTFUL], *others[:_OTHERS]]
    pictures = {name: read(originals[name]) for name in chosen}
    return [CutOut(name, picture, verdicts.get(name)) for name, picture in pictures.items() if picture is not None]
