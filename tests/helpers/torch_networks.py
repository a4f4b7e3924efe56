"""Small real networks of every library, with random weights, saved as their libraries save them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage import data

from torch_setup import library, seeded, write_json

PHOTOS: list[NDArray[np.uint8]] = [data.chelsea(), data.coffee(), data.astronaut(), data.rocket()]
ANIMALS = ["ant", "bee", "cat", "dog", "eel"]
ARCHITECTURE = "test_resnet"  # timm's smallest: 0.5 million weights, 160 pixels
_SIZE = 64


def timm_folder(folder: Path) -> str:
    """As `timm.models.save_for_hf` writes it."""
    timm, torch = library("timm"), library("torch")
    library("timm.models").save_for_hf(
        seeded(torch, timm.create_model(ARCHITECTURE, pretrained=False)), str(folder), safe_serialization=True
    )
    return f"timm:{folder}"


def safetensors_file(folder: Path) -> str:
    """One's own weights of five classes, with the labels in the JSON beside them."""
    timm, torch = library("timm"), library("torch")
    path = folder / "weights.safetensors"
    module = seeded(torch, timm.create_model(ARCHITECTURE, num_classes=len(ANIMALS)))
    library("safetensors.torch").save_file(module.state_dict(), path)
    write_json(path.with_suffix(".json"), labels=ANIMALS)
    return f"safetensors:{ARCHITECTURE}:{path}"


def huggingface_folder(folder: Path) -> str:
    """A vision transformer of two layers, as `save_pretrained` writes it."""
    transformers, torch = library("transformers"), library("torch")
    config = transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, image_size=_SIZE,
        id2label=dict(enumerate(ANIMALS)),
    )  # fmt: skip
    seeded(torch, transformers.ViTForImageClassification(config)).save_pretrained(folder)
    transformers.ViTImageProcessor(size={"height": _SIZE, "width": _SIZE}).save_pretrained(folder)
    return f"hf:{folder}"


def open_clip_file(folder: Path) -> str:
    """A CLIP of two layers on either side, its configuration registered with open_clip."""
    open_clip, torch = library("open_clip"), library("torch")
    write_json(
        folder / "tiny-clip.json", embed_dim=32,
        vision_cfg={"image_size": _SIZE, "layers": 2, "width": 64, "patch_size": 16, "head_width": 32},
        text_cfg={"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2},
    )  # fmt: skip
    open_clip.add_model_config(folder / "tiny-clip.json")
    path = folder / "clip.safetensors"
    library("safetensors.torch").save_file(seeded(torch, open_clip.create_model("tiny-clip")).state_dict(), path)
    return f"open_clip:tiny-clip/{path}"


def clip_huggingface_folder(folder: Path) -> str:
    """A CLIP of two layers with a tokenizer of single letters, as `save_pretrained` writes them."""
    transformers, torch = library("transformers"), library("torch")
    folder.mkdir(exist_ok=True)
    letters = [chr(code) for code in range(33, 127)]
    words = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({word: place for place, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    tower = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    end = len(words) - 1
    config = transformers.CLIPConfig(
        text_config={**tower, "vocab_size": len(words), "max_position_embeddings": 48, "bos_token_id": end - 1,
                     "eos_token_id": end, "pad_token_id": end},
        vision_config={**tower, "image_size": _SIZE, "patch_size": 16}, projection_dim=16,
    )  # fmt: skip
    seeded(torch, transformers.CLIPModel(config)).save_pretrained(folder)
    tokenizer = transformers.CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=48)
    tokenizer.save_pretrained(folder)
    transformers.CLIPImageProcessor(
        size={"shortest_edge": _SIZE}, crop_size={"height": _SIZE, "width": _SIZE}
    ).save_pretrained(folder)
    return f"clip-hf:{folder}"


def torchscript_file(folder: Path) -> str:
    """A convolution and a linear layer, scripted."""
    path = folder / "net.pt"
    library("torch").jit.save(library("torch").jit.script(small_network()), str(path))
    write_json(path.with_suffix(".json"), labels=["red", "green", "blue"], size=[_SIZE, _SIZE], resize=72)
    return f"torchscript:{path}"


def small_network() -> Any:
    torch = library("torch")
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 5, stride=4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(8, 3),
    )  # fmt: skip
    return seeded(torch, layers)


def torchvision_weights(hub: Path) -> str:
    """Random weights where torchvision keeps those it has downloaded."""
    torchvision, torch = library("torchvision"), library("torch")
    weights = torchvision.models.get_model_weights("squeezenet1_1")["IMAGENET1K_V1"]
    folder = hub / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    module = seeded(torch, torchvision.models.get_model("squeezenet1_1"))
    torch.save(module.state_dict(), folder / weights.url.rpartition("/")[2])
    return "torchvision:squeezenet1_1@IMAGENET1K_V1"
