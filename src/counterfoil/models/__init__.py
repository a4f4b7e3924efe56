"""Models by address: a name says where the weights are, the model says how it wants its pictures."""

from counterfoil.models.address import ADDRESSES, load_model

__all__ = ["ADDRESSES", "load_model"]
