"""Pictures per second of a network of Stable Diffusion 1.5's size: our painter in batches against one call per picture.

The weights are random, since speed does not depend on them; nothing is downloaded. Needs a GPU and the diffusion extra.

    python bench/paint_diffusers.py [--steps 25] [--size 512]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import torch
import transformers

from counterfoil.painters.diffusers_painter import DiffusersPainter
from counterfoil.painters.painter_protocol import PaintOptions, PaintRequest

PLAIN = 8  # pictures of the plain loop
BATCHES = 2  # of each batch size, after one to warm up


def tokenizer() -> Any:
    letters = [chr(code) for code in range(33, 127)]
    words = ["<|startoftext|>", "<|endoftext|>", *letters, *(f"{letter}</w>" for letter in letters)]
    folder = Path(tempfile.mkdtemp())
    (folder / "vocab.json").write_text(json.dumps({word: place for place, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    return transformers.CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=77)


def pipeline() -> Any:
    """The parts of Stable Diffusion 1.5 at their sizes."""
    torch.manual_seed(0)
    with torch.device("cuda"):
        network = diffusers.UNet2DConditionModel(
            sample_size=64, cross_attention_dim=768, attention_head_dim=8, block_out_channels=(320, 640, 1280, 1280)
        )
        autoencoder = diffusers.AutoencoderKL(
            block_out_channels=(128, 256, 512, 512), layers_per_block=2, latent_channels=4, sample_size=512,
            down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
        )  # fmt: skip
        text = transformers.CLIPTextModel(
            transformers.CLIPTextConfig(
                hidden_size=768,
                intermediate_size=3072,
                num_hidden_layers=12,
                num_attention_heads=12,
                bos_token_id=0,
                eos_token_id=1,
                pad_token_id=1,
            )
        )
    made = diffusers.StableDiffusionPipeline(
        vae=autoencoder, text_encoder=text, tokenizer=tokenizer(), unet=network, safety_checker=None,
        scheduler=diffusers.DPMSolverMultistepScheduler(), feature_extractor=None, requires_safety_checker=False,
    )  # fmt: skip
    made.set_progress_bar_config(disable=True)
    return made.to("cuda", torch.bfloat16)


def wishes(count: int) -> list[PaintRequest]:
    return [PaintRequest(f"a backpack in the kitchen, number {place}", "", place) for place in range(count)]


def plain_loop(made: Any, asked: Sequence[PaintRequest], steps: int, size: int) -> list[Any]:
    """What people write: one call a picture."""
    return [
        made(wish.prompt, generator=torch.Generator("cpu").manual_seed(wish.seed), num_inference_steps=steps,
             height=size, width=size, output_type="np").images[0]
        for wish in asked
    ]  # fmt: skip


def rate(work: Callable[[], object], pictures: int) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return pictures / (time.perf_counter() - start)


def painter(made: Any, batch: int, steps: int, size: int) -> DiffusersPainter:
    options = PaintOptions(device="cuda", batch_size=batch, steps=steps, size=size)
    return DiffusersPainter(
        name="bench", paints="pictures", pipeline=made, revision="random", device="cuda", options=options
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--size", type=int, default=512)
    asked = parser.parse_args()
    made = pipeline()
    parameters = sum(weight.numel() for weight in made.unet.parameters())
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, diffusers {diffusers.__version__};"
          f" network of {parameters / 1e6:.0f} M parameters, {asked.size} px, {asked.steps} steps, bf16")  # fmt: skip
    plain_loop(made, wishes(1), asked.steps, asked.size)
    alone = rate(lambda: plain_loop(made, wishes(PLAIN), asked.steps, asked.size), PLAIN)
    print(f"plain loop, one call a picture: {alone:.2f} pictures/s", flush=True)
    reference = [np.rint(255 * image) for image in plain_loop(made, wishes(2), asked.steps, asked.size)]
    for batch in (8, 16, 32):
        ours = painter(made, batch, asked.steps, asked.size)
        found = ours.paint(wishes(batch))
        many = rate(lambda ours=ours, batch=batch: ours.paint(wishes(BATCHES * batch)), BATCHES * batch)  # type: ignore[misc]
        apart = [np.abs(one - np.asarray(other, np.float64)) for one, other in zip(reference, found, strict=False)]
        print(f"painter, batches of {batch}: {many:.2f} pictures/s, {many / alone:.2f}x; levels from the plain loop's"
              f" picture: mean {np.mean(apart):.2f}, most {np.max(apart):.0f};"
              f" memory {torch.cuda.max_memory_allocated() / 2**30:.0f} GiB", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
