"""Label spaces: which names a set of classes has, and how a folder's name finds its class."""

from counterfoil.labels.space import LabelSpace, imagenet1k, own_space, space_of

__all__ = ["LabelSpace", "imagenet1k", "own_space", "space_of"]
