"""Guidance against a classifier: what lowers the probability of the true class, by its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from counterfoil.extras import required
from counterfoil.paint.sampler import Array, Guide

PUSH = 0.2  # root mean square of a step at full noise, pictures from -1 to 1


def gradient_guide(log_probability: Callable[[Any], Any], push: float = PUSH) -> Guide:
    """Steps down the log probability of the truth; it takes a tensor (1, 3, height, width) from 0 to 255."""
    torch: Any = required("torch", "diffusion")

    def guide(clean: Array, noise: float) -> Array:
        picture = torch.as_tensor(clean).detach().requires_grad_(True)
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(log_probability((picture + 1) * 127.5).sum(), picture)
        size = gradient.square().mean().sqrt().clamp(min=1e-12)
        stepped = (picture - push * noise * gradient / size).detach()
        return stepped.numpy() if isinstance(clean, np.ndarray) else stepped

    return guide
