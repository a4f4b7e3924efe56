"""The background model as a U-Net in torch, for the GPU and for training.

Its parts are named as the weights of the shipped file, from which `build_background_graph` builds the same network for
ONNX Runtime.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from counterfoil.painters.background_model import (
    ATTENDING,
    BLOCKS,
    CHANNELS,
    EMBEDDING,
    GROUPS,
    HEADS,
    INPUT_PLANES,
    PATCH,
    frequencies,
)


class Residual(nn.Module):  # type: ignore[misc]
    """A residual block of two convolutions, the second scaled and shifted by the noise level."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        super().__init__()
        self.norm_in = nn.GroupNorm(GROUPS, incoming)
        self.convolution_in = nn.Conv2d(incoming, outgoing, 3, padding=1)
        self.norm_out = nn.GroupNorm(GROUPS, outgoing)
        self.convolution_out = nn.Conv2d(outgoing, outgoing, 3, padding=1)
        self.modulation = nn.Linear(EMBEDDING, 2 * outgoing)
        self.shortcut = nn.Conv2d(incoming, outgoing, 1) if incoming != outgoing else nn.Identity()
        nn.init.zeros_(self.convolution_out.weight)
        nn.init.zeros_(self.convolution_out.bias)

    def forward(self, value: Tensor, noise: Tensor) -> Tensor:
        """`value` is (n, incoming, height, width), `noise` (n, EMBEDDING)."""
        inner = self.convolution_in(functional.silu(self.norm_in(value)))
        scale, shift = self.modulation(noise)[:, :, None, None].chunk(2, 1)
        inner = self.convolution_out(functional.silu(self.norm_out(inner) * (1 + scale) + shift))
        return self.shortcut(value) + inner


class Attention(nn.Module):  # type: ignore[misc]
    """Self-attention over all positions."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(GROUPS, channels)
        self.questions = nn.Conv2d(channels, 3 * channels, 1)
        self.answer = nn.Conv2d(channels, channels, 1)
        nn.init.zeros_(self.answer.weight)
        nn.init.zeros_(self.answer.bias)

    def forward(self, value: Tensor) -> Tensor:
        """`value` is (n, channels, height, width)."""
        count, channels, height, width = value.shape
        heads = self.questions(self.norm(value)).reshape(count, 3, HEADS, channels // HEADS, height * width)
        query, key, content = heads.transpose(-1, -2).unbind(1)
        seen = functional.scaled_dot_product_attention(query, key, content)
        return value + self.answer(seen.transpose(-1, -2).reshape(value.shape))


class Level(nn.Module):  # type: ignore[misc]
    """The blocks of one resolution on one side of the U."""

    def __init__(self, incoming: int, channels: int, blocks: int, attends: bool) -> None:
        super().__init__()
        self.residuals = nn.ModuleList(Residual(incoming, channels) for _ in range(blocks))
        self.attentions = nn.ModuleList(Attention(channels) if attends else nn.Identity() for _ in range(blocks))

    def block(self, number: int, value: Tensor, noise: Tensor) -> Tensor:
        """One residual block with its attention, if it has one."""
        return self.attentions[number](self.residuals[number](value, noise))


class BackgroundNetwork(nn.Module):  # type: ignore[misc]
    """Noisy picture, known colours and their mask in; v = alpha * noise - sigma * picture out."""

    def __init__(self) -> None:
        super().__init__()
        kinds = list(zip(CHANNELS, BLOCKS, ATTENDING, strict=True))
        self.register_buffer("frequencies", torch.from_numpy(frequencies()), persistent=False)
        self.embedding_in = nn.Linear(2 * len(frequencies()), EMBEDDING)
        self.embedding_out = nn.Linear(EMBEDDING, EMBEDDING)
        self.first = nn.Conv2d(INPUT_PLANES * PATCH**2, CHANNELS[0], 3, padding=1)
        self.down = nn.ModuleList(Level(channels, channels, blocks, attends) for channels, blocks, attends in kinds)
        self.up = nn.ModuleList(Level(2 * channels, channels, blocks, attends) for channels, blocks, attends in kinds)
        steps = list(pairwise(CHANNELS))
        self.coarser = nn.ModuleList(nn.Conv2d(fine, coarse, 2, stride=2) for fine, coarse in steps)
        self.finer = nn.ModuleList(nn.Conv2d(coarse, fine, 1) for fine, coarse in steps)
        self.middle = Residual(CHANNELS[-1], CHANNELS[-1])
        self.norm_last = nn.GroupNorm(GROUPS, CHANNELS[0])
        self.last = nn.Conv2d(CHANNELS[0], 3 * PATCH**2, 3, padding=1)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, planes: Tensor, log_ratio: Tensor) -> Tensor:
        """`planes` is (n, INPUT_PLANES, height, width) with sides in steps of 32, `log_ratio` (n,) signal to noise."""
        noise = self._noise(log_ratio)
        value, kept = self.first(functional.pixel_unshuffle(planes, PATCH)), []
        for number, level in enumerate(self.down):
            value = self.coarser[number - 1](value) if number else value
            for block in range(BLOCKS[number]):
                value = level.block(block, value, noise)
                kept.append(value)
        value = self.middle(value, noise)
        for number in reversed(range(len(self.up))):
            for block in range(BLOCKS[number]):
                value = self.up[number].block(block, torch.cat([value, kept.pop()], 1), noise)
            if number:
                value = functional.interpolate(self.finer[number - 1](value), scale_factor=2.0, mode="nearest")
        return functional.pixel_shuffle(self.last(functional.silu(self.norm_last(value))), PATCH)

    def _noise(self, log_ratio: Tensor) -> Tensor:
        angles = log_ratio[:, None] / 4 * self.frequencies[None]
        waves = torch.cat([angles.sin(), angles.cos()], 1).to(self.embedding_in.weight.dtype)
        return functional.silu(self.embedding_out(functional.silu(self.embedding_in(waves))))
