"""A mask for a photo that has none."""

from counterfoil.segment.u2netp import U2Netp

__all__ = ["U2Netp"]
