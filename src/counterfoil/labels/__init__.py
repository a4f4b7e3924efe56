"""Label spaces: which names a set of classes has, and how a folder's name finds its class."""

from counterfoil.labels.benchmarks import (
    SPACES,
    imagenet9,
    imagenet_a,
    imagenet_d,
    imagenet_r,
    imagenet_s_ids,
    space_named,
    ximagenet12,
)
from counterfoil.labels.columns import imagenet_columns
from counterfoil.labels.space import LabelSpace, imagenet1k, own_space, space_of

__all__ = [
    "SPACES", "LabelSpace", "imagenet1k", "imagenet9", "imagenet_a", "imagenet_columns", "imagenet_d", "imagenet_r",
    "imagenet_s_ids", "own_space", "space_named", "space_of", "ximagenet12",
]  # fmt: skip
