"""What each paper would print of a run over its archive, by its own rule, named in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from counterfoil.pipeline.published import imagenet_9, imagenet_c, imagenet_d, imagenet_e, ximagenet_12
from counterfoil.pipeline.published.class_sets import tables_of
from counterfoil.pipeline.recorded.study import Study
from counterfoil.report import PaperTable

RULES: dict[str, Callable[[Study], Sequence[PaperTable]]] = {
    "imagenet-e": imagenet_e.tables,
    "imagenet-d": imagenet_d.tables,
    "ximagenet-12": ximagenet_12.tables,
    "imagenet-9": imagenet_9.tables,
    "imagenet-c": imagenet_c.tables,
    "imagenet-a": tables_of("ImageNet-A", 200, both=True),
    "imagenet-r": tables_of("ImageNet-R", 200, both=True),
    "imagenet-sketch": tables_of("ImageNet-Sketch", 1000),
    "imagenet-v2": tables_of("ImageNet-V2", 1000),
    "imagenet-val": tables_of("ImageNet validation", 1000),
    "objectnet": tables_of("ObjectNet", 113, both=True),
}
