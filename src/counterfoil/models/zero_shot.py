"""Zero-shot classifiers of OpenCLIP and of transformers: class prompts compared with the picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from counterfoil.errors import UserError
from counterfoil.labels.label_space import imagenet1k
from counterfoil.models.huggingface import parse_repository, verify_processor
from counterfoil.models.model_options import Request, fill_templates
from counterfoil.models.preprocessing import verify_preparation
from counterfoil.models.torch_classifier import build_classifier
from counterfoil.models.torch_network import TensorTransform, TorchNetwork
from counterfoil.models.weight_files import read_weights, report_hub_errors, suggest_addresses
from counterfoil.plugins import import_extra
from counterfoil.types import Model, Preprocessing

_PROMPT_BATCH = 64  # prompts per call of the text encoder

EncodeText = Callable[[Sequence[str]], Any]  # prompts to features, one row each


def load_open_clip(request: Request) -> Model:
    """An open_clip model: architecture and weights tag, or a file of weights."""
    open_clip = import_extra("open_clip", "clip")
    architecture, _, pretrained = request.place.partition("/")
    _check_name(open_clip, architecture, pretrained)
    with report_hub_errors(request.address, "with the file at hand, use 'open_clip:ARCH/FILE'"):
        model, _, transform = open_clip.create_model_and_transforms(
            architecture, pretrained=pretrained, weights_only=True,
            force_quick_gelu=_wants_quick_gelu(open_clip, architecture, pretrained),
        )  # fmt: skip
        tokenizer = open_clip.get_tokenizer(architecture)
    model.eval()
    module = _zero_shot(
        request, model.visual, lambda texts: model.encode_text(tokenizer(list(texts))), model.logit_scale
    )
    guess = _read_preprocessing(open_clip, model)
    preparation = verify_preparation(TensorTransform(transform), guess, f"open_clip {open_clip.__version__}")
    return build_classifier(request, TorchNetwork(module, _label_space(request).labels, preparation))


def _check_name(open_clip: Any, architecture: str, pretrained: str) -> None:
    known = open_clip.list_models()
    if architecture not in known:
        raise UserError(
            f"expected open_clip:ARCH/TAG, got the architecture '{architecture}';"
            f" did you mean {suggest_addresses(architecture, known, 'open_clip')}?"
        )
    if Path(pretrained).is_file():
        read_weights(Path(pretrained))  # refuses files without weights, or weights that need code
        return
    tags = open_clip.list_pretrained_tags_by_model(architecture)
    if pretrained not in tags:
        offered = suggest_addresses(
            f"{architecture}/{pretrained}", [f"{architecture}/{tag}" for tag in tags], "open_clip"
        )
        raise UserError(
            f"expected a tag of {architecture}'s weights or a file, got '{pretrained}'; did you mean {offered}?"
        )


def _wants_quick_gelu(open_clip: Any, architecture: str, pretrained: str) -> bool:
    """Whether the weights were trained with QuickGELU; open_clip only warns where the architecture lacks it."""
    return bool((open_clip.get_pretrained_cfg(architecture, pretrained) or {}).get("quick_gelu", False))


def _read_preprocessing(open_clip: Any, model: Any) -> Preprocessing:
    given = open_clip.get_model_preprocess_cfg(model)
    size = given.get("size", 224)
    height, width = (size, size) if isinstance(size, int) else size
    mean, std = ((255 * r, 255 * g, 255 * b) for r, g, b in (given["mean"], given["std"]))
    resize = None if given.get("resize_mode") == "squash" else min(height, width)
    interpolation = given.get("interpolation", "bicubic")
    return Preprocessing(size=(height, width), resize=resize, interpolation=interpolation, mean=mean, std=std)


def load_clip_huggingface(request: Request) -> Model:
    """A transformers model with an image and a text encoder."""
    transformers = import_extra("transformers", "torch")
    at = parse_repository(request)
    with report_hub_errors(request.address, "give clip-hf:org/name@revision, or the folder that save_pretrained made"):
        model = transformers.AutoModel.from_pretrained(at.place, weights_only=True, **at.options).eval()
        processor = transformers.AutoImageProcessor.from_pretrained(at.place, **at.options)
        tokenizer = transformers.AutoTokenizer.from_pretrained(at.place, **at.options)
    if not hasattr(model, "get_text_features"):
        raise UserError(
            f"expected a model with image and text encoders, got {type(model).__name__} at '{request.address}'"
        )

    def encode_text(texts: Sequence[str]) -> Any:
        # SigLIP was trained with prompts padded to the full length; for CLIP padding changes nothing
        tokens = tokenizer(list(texts), padding="max_length", truncation=True, return_tensors="pt")
        return _unwrap_features(model.get_text_features(**tokens))

    module = _zero_shot(request, _image_encoder(model), encode_text, model.logit_scale)
    return build_classifier(
        request, TorchNetwork(module, _label_space(request).labels, verify_processor(processor, transformers))
    )


def _unwrap_features(output: Any) -> Any:
    """The features, which newer versions of transformers wrap."""
    return getattr(output, "pooler_output", output)


def _label_space(request: Request) -> Any:
    return request.options.classes or imagenet1k()


def _image_encoder(model: Any) -> Any:
    torch = import_extra("torch", "torch")

    class ImageEncoder(torch.nn.Module):  # type: ignore[misc, name-defined]  # torch is there only once asked for
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, pictures: Any) -> Any:
            return _unwrap_features(self.model.get_image_features(pixel_values=pictures))

    return ImageEncoder()


def _zero_shot(request: Request, encoder: Any, encode_text: EncodeText, logit_scale: Any) -> Any:
    """A module from pictures to logits: the similarity of each picture to the text of each class."""
    torch = import_extra("torch", "torch")
    classes = _class_features(torch, request, encode_text)

    class ZeroShot(torch.nn.Module):  # type: ignore[misc, name-defined]  # torch is there only once asked for
        def __init__(self) -> None:
            super().__init__()
            self.encoder = encoder
            self.register_buffer("classes", logit_scale.exp().detach() * classes)

        def forward(self, pictures: Any) -> Any:
            features = torch.nn.functional.normalize(self.encoder(pictures), dim=-1)
            return features @ self.classes.T

    return ZeroShot().eval()


def _class_features(torch: Any, request: Request, encode_text: EncodeText) -> Any:
    """One unit vector per class: the mean over its prompts, normalised."""
    texts = fill_templates(_label_space(request), request.options.templates)
    flat = [text for group in texts for text in group]
    with torch.inference_mode():
        parts = [encode_text(flat[start : start + _PROMPT_BATCH]) for start in range(0, len(flat), _PROMPT_BATCH)]
        features = torch.nn.functional.normalize(torch.cat(parts), dim=-1)
        means = features.view(len(texts), len(request.options.templates), -1).mean(dim=1)
        return torch.nn.functional.normalize(means, dim=-1).clone()
