"""Whole diffusion pipelines with random weights, small enough for a test, saved as their libraries save them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch_setup import library

SIDE = 32  # pixels: four latent cells a side would leave nothing to see, sixteen do


def _tokenizer(folder: Path) -> Any:
    """A tokenizer of letters: every byte that a prompt has is a token."""
    letters = [chr(code) for code in range(33, 127)]
    words = ["<|startoftext|>", "<|endoftext|>", *letters, *(f"{letter}</w>" for letter in letters)]
    folder.mkdir(parents=True)
    (folder / "vocab.json").write_text(json.dumps({word: place for place, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    transformers = library("transformers")
    return transformers.CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=77)


def _text_encoder(torch: Any, projected: bool = False) -> Any:
    transformers = library("transformers")
    config = transformers.CLIPTextConfig(
        vocab_size=200, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=77, bos_token_id=0, eos_token_id=1, pad_token_id=1, projection_dim=16,
    )  # fmt: skip
    torch.manual_seed(1)
    kind = transformers.CLIPTextModelWithProjection if projected else transformers.CLIPTextModel
    return kind(config)


def _autoencoder(torch: Any, diffusers: Any) -> Any:
    torch.manual_seed(2)
    return diffusers.AutoencoderKL(
        in_channels=3, out_channels=3, latent_channels=4, block_out_channels=(8, 8), layers_per_block=1,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2, norm_num_groups=4,
    )  # fmt: skip


def _network(torch: Any, diffusers: Any, channels: int, **more: Any) -> Any:
    torch.manual_seed(3)
    return diffusers.UNet2DConditionModel(
        sample_size=SIDE // 2, in_channels=channels, out_channels=4, block_out_channels=(8, 16), layers_per_block=1,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        norm_num_groups=4, attention_head_dim=2, **{"cross_attention_dim": 16, **more},
    )  # fmt: skip


def stable_diffusion(folder: Path, *, inpainting: bool = False, scheduler: str = "DDIMScheduler") -> Path:
    """A pipeline of Stable Diffusion 1.5's kind."""
    torch, diffusers = library("torch"), library("diffusers")
    parts: dict[str, Any] = {
        "vae": _autoencoder(torch, diffusers), "text_encoder": _text_encoder(torch),
        "tokenizer": _tokenizer(folder.with_name(f"{folder.name}-words")),
        "unet": _network(torch, diffusers, 9 if inpainting else 4),
        "scheduler": getattr(diffusers, scheduler)(steps_offset=1, clip_sample=False),
        "safety_checker": None, "feature_extractor": None,
    }  # fmt: skip
    kind = diffusers.StableDiffusionInpaintPipeline if inpainting else diffusers.StableDiffusionPipeline
    kind(**parts, requires_safety_checker=False).save_pretrained(folder, safe_serialization=True)
    return folder


def stable_diffusion_xl(folder: Path) -> Path:
    """A pipeline of Stable Diffusion XL's kind: two text encoders, and the picture's size as a condition."""
    torch, diffusers = library("torch"), library("diffusers")
    tokenizer = _tokenizer(folder.with_name(f"{folder.name}-words"))
    network = _network(
        torch, diffusers, 4, cross_attention_dim=32, addition_embed_type="text_time", addition_time_embed_dim=8,
        projection_class_embeddings_input_dim=6 * 8 + 16, transformer_layers_per_block=1,
    )  # fmt: skip
    diffusers.StableDiffusionXLPipeline(
        vae=_autoencoder(torch, diffusers), text_encoder=_text_encoder(torch), tokenizer=tokenizer,
        text_encoder_2=_text_encoder(torch, projected=True), tokenizer_2=tokenizer, unet=network,
        scheduler=diffusers.EulerDiscreteScheduler(), add_watermarker=False,
    ).save_pretrained(folder, safe_serialization=True)  # fmt: skip
    return folder


def flux(folder: Path) -> Path:
    """A pipeline of Flux's kind: a transformer in place of the network of convolutions, and no negative prompt."""
    torch, diffusers, transformers = library("torch"), library("diffusers"), library("transformers")
    tokenizers = library("tokenizers")
    letters = [chr(code) for code in range(33, 127)]
    words = {word: place for place, word in enumerate(["<pad>", "</s>", "<unk>", *letters])}
    speller = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    speller.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
    torch.manual_seed(5)
    autoencoder = diffusers.AutoencoderKL(
        in_channels=3, out_channels=3, latent_channels=1, block_out_channels=(8,), layers_per_block=1,
        down_block_types=("DownEncoderBlock2D",), up_block_types=("UpDecoderBlock2D",), norm_num_groups=4,
        use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.06, scaling_factor=1.5,
    )  # fmt: skip
    network = diffusers.FluxTransformer2DModel(
        patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=16, pooled_projection_dim=16, axes_dims_rope=(4, 4, 8),
    )  # fmt: skip
    config = transformers.T5Config(vocab_size=200, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    diffusers.FluxPipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(), vae=autoencoder, text_encoder=_text_encoder(torch),
        tokenizer=_tokenizer(folder.with_name(f"{folder.name}-words")), transformer=network,
        text_encoder_2=transformers.T5EncoderModel(config),
        tokenizer_2=transformers.PreTrainedTokenizerFast(
            tokenizer_object=speller, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=64
        ),
    ).save_pretrained(folder, safe_serialization=True)  # fmt: skip
    return folder


def with_safety_checker(pipeline: Any) -> None:
    """Give a pipeline a checker that blocks every picture."""
    torch, transformers = library("torch"), library("transformers")
    checkers = library("diffusers.pipelines.stable_diffusion.safety_checker")
    vision = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
              "image_size": 32, "patch_size": 16}  # fmt: skip
    checker = checkers.StableDiffusionSafetyChecker(transformers.CLIPConfig(vision_config=vision, projection_dim=16))
    with torch.no_grad():
        checker.concept_embeds_weights.fill_(-2.0)  # below any cosine
    pipeline.safety_checker = checker.eval()
    side = {"height": 32, "width": 32}
    pipeline.feature_extractor = transformers.CLIPImageProcessor(size={"shortest_edge": 32}, crop_size=side)


def pixel_model(folder: Path, network: dict[str, Any] | None = None, scheduler: dict[str, Any] | None = None) -> Path:
    """An unconditional model over pixels, or one that differs from it in the settings given."""
    torch, diffusers = library("torch"), library("diffusers")
    torch.manual_seed(4)
    settings = {"sample_size": SIDE, "in_channels": 3, "out_channels": 3, **(network or {})}
    unet = diffusers.UNet2DModel(
        layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4,
        down_block_types=("DownBlock2D",) * 2, up_block_types=("UpBlock2D",) * 2, **settings,
    )  # fmt: skip
    noise = diffusers.DDPMScheduler(**(scheduler or {}))
    diffusers.DDPMPipeline(unet, noise).save_pretrained(folder, safe_serialization=True)
    return folder
