"""Train the background model; stops by the clock, and goes on where it was with --state.

python training/train.py PACK --out FOLDER [--start WEIGHTS] [--state FILE] --seconds 570 --planned 1000
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from counterfoil.painters.background_network import BackgroundNetwork
from photos import Batch, Photos, load_photos

AVERAGING = 0.9995  # how slowly the averaged weights, which are the result, follow
WARM_STEPS = 300
LARGEST_PART = 12_000_000  # bytes of a file of weights
DECAY_SHARE = 0.5  # of the planned time, at its end: the rate falls to nothing
# Log signal-to-noise ratios, by share of the steps: most of them where edits of backgrounds work.
SHARES, RATIOS = (0.0, 0.15, 0.85, 1.0), (-10.0, -4.5, 4.0, 8.0)


def log_ratios(count: int, device: str) -> Tensor:
    """One noise level per picture, evenly spread over the shares, in random order."""
    places = (torch.rand(1, device=device) + torch.arange(count, device=device) / count) % 1.0
    result = torch.zeros(count, device=device)
    for low, high, start, end in zip(SHARES[:-1], SHARES[1:], RATIOS[:-1], RATIOS[1:], strict=True):
        inside = (places >= low) & (places < high)
        result = torch.where(inside, start + (places - low) / (high - low) * (end - start), result)
    return result[torch.randperm(count, device=device)]


def loss_of(network: BackgroundNetwork, batch: Batch, noise: Tensor, ratios: Tensor) -> tuple[Tensor, Tensor]:
    """The weighted error of v over the batch, and of each picture."""
    signal, sigma = (torch.sigmoid(sign * ratios).sqrt()[:, None, None, None] for sign in (1, -1))
    noisy = signal * batch.pictures + sigma * noise
    planes = torch.cat([noisy, batch.pictures * batch.known, batch.known], 1)
    with torch.autocast(noise.device.type, dtype=torch.bfloat16):
        predicted = network(planes, ratios)
    errors = (predicted.float() - (signal * noise - sigma * batch.pictures)) ** 2 * batch.weights
    return errors.sum() / (3 * batch.weights.sum()), errors.sum((1, 2, 3)) / (3 * batch.weights.sum((1, 2, 3)) + 1)


class Training:
    """Network, averaged weights and optimiser, on the way."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked, self.step, self.spent = asked, 0, 0.0
        self.network = BackgroundNetwork().to(asked.device, memory_format=torch.channels_last)
        if asked.start:
            self.network.load_state_dict({name: value.float() for name, value in load_file(asked.start).items()})
        self.weights = list(self.network.parameters())
        self.averaged = [weight.detach().clone() for weight in self.weights]
        fused = asked.device == "cuda"
        self.optimiser = torch.optim.AdamW(self.weights, asked.rate, (0.9, 0.99), weight_decay=0.01, fused=fused)
        if asked.state and asked.state.is_file():
            self._resume(torch.load(asked.state, map_location=asked.device, weights_only=True))
        self.loss = torch.compile(loss_of) if fused else loss_of

    def _resume(self, state: dict[str, Any]) -> None:
        self.network.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])
        for mine, stored in zip(self.averaged, state["averaged"], strict=True):
            mine.copy_(stored)
        self.step, self.spent = state["step"], state["spent"]

    def run(self, photos: Photos) -> None:
        """Train until the seconds are over."""
        started, before, losses = time.monotonic(), self.spent, []
        while (now := time.monotonic() - started) < self.asked.seconds and self.step < self.asked.most_steps:
            self.spent = before + now
            losses.append(self._step(photos))
            if self.step % 500 == 0 or len(losses) == 20:
                mean = torch.stack(losses[-500:]).mean().item()
                speed = len(losses) * self.asked.batch / (time.monotonic() - started)
                print(f"{self.spent:6.0f} s  step {self.step}  loss {mean:.5f}  {speed:.0f} pictures/s", flush=True)
        self.spent = before + time.monotonic() - started

    def _step(self, photos: Photos) -> Tensor:
        for group in self.optimiser.param_groups:
            group["lr"] = self._rate()
        with torch.no_grad():
            batch = photos.batch(self.asked.batch)
            batch = batch._replace(pictures=batch.pictures.contiguous(memory_format=torch.channels_last))
            ratios = log_ratios(self.asked.batch, self.asked.device)
        loss, _ = self.loss(self.network, batch, torch.randn_like(batch.pictures), ratios)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.weights, 1.0, foreach=True)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        self.step += 1
        with torch.no_grad():
            torch._foreach_lerp_(self.averaged, self.weights, 1 - min(AVERAGING, self.step / (self.step + 10)))
        return loss.detach()

    def _rate(self) -> float:
        left = 1 - self.spent / self.asked.planned
        return float(self.asked.rate * min(1.0, (self.step + 1) / WARM_STEPS) * min(1.0, max(left, 0) / DECAY_SHARE))

    def save(self) -> None:
        """The averaged weights in halves, for use; everything, to go on."""
        with torch.no_grad():
            final = BackgroundNetwork().to(self.asked.device)
            for mine, averaged in zip(final.parameters(), self.averaged, strict=True):
                mine.copy_(averaged)
        halves = {name: value.half().contiguous().cpu() for name, value in final.state_dict().items()}
        self.asked.out.mkdir(parents=True, exist_ok=True)
        for number, part in enumerate(_parts(halves)):
            save_file(part, self.asked.out / f"part_{number}.safetensors")
        if self.asked.state:
            everything = {"network": self.network.state_dict(), "optimiser": self.optimiser.state_dict()}
            numbers = {"averaged": self.averaged, "step": self.step, "spent": self.spent}
            torch.save({**everything, **numbers}, self.asked.state)


def _parts(weights: dict[str, Tensor]) -> list[dict[str, Tensor]]:
    """The weights in a few files, none of which is large."""
    parts: list[dict[str, Tensor]] = [{}]
    for name, value in sorted(weights.items()):
        if sum(held.nbytes for held in parts[-1].values()) + value.nbytes > LARGEST_PART:
            parts.append({})
        parts[-1][name] = value
    return parts


def asked() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pack", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--start", type=Path, help="weights to start from, of the shipped kind")
    parser.add_argument("--state", type=Path, help="where a training that was stopped goes on")
    parser.add_argument("--left-out", type=Path, help="numbers of more photos that must not be seen (.npy)")
    parser.add_argument("--seconds", type=float, default=570)
    parser.add_argument("--planned", type=float, default=1000, help="seconds of the whole training, over all calls")
    parser.add_argument("--batch", type=int, default=112)
    parser.add_argument("--rate", type=float, default=3e-4)
    parser.add_argument("--most-steps", type=int, default=10**9)
    parser.add_argument("--limit", type=int, help="photos, for a try")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def main() -> None:
    """Load, train, save."""
    wanted = asked()
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    photos = load_photos(wanted.pack, wanted.left_out, wanted.device, wanted.limit)
    print(f"{len(photos.images)} photos", flush=True)
    training = Training(wanted)
    training.run(photos)
    training.save()


if __name__ == "__main__":
    main()
