"""Image classifiers of Hugging Face's transformers, from the hub or a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.errors import UserError
from counterfoil.labels.label_space import match_imagenet_columns
from counterfoil.models.model_options import Request
from counterfoil.models.preprocessing import Preparation, verify_preparation
from counterfoil.models.torch_classifier import build_classifier
from counterfoil.models.torch_network import TorchNetwork
from counterfoil.models.weight_files import is_file_path, report_hub_errors
from counterfoil.plugins import import_extra
from counterfoil.types import Model, Preprocessing

_FILTERS = {1: "lanczos", 2: "bilinear", 3: "bicubic"}  # Pillow's numbers
_UNKNOWN = (0.5, 0.5, 0.5)
_ADVICE = "give hf:org/name@revision as the hub writes it, or the folder that save_pretrained made"


@dataclass(frozen=True)
class Repository:
    """A model on the hub or in a folder."""

    place: str
    revision: str | None

    @property
    def options(self) -> dict[str, Any]:
        """The options of every from_pretrained: code of the repository is never run."""
        return {"revision": self.revision, "trust_remote_code": False}


def parse_repository(request: Request) -> Repository:
    """The repository at an address."""
    place, _, revision = request.place.partition("@")
    if Path(place).expanduser().is_dir():
        return Repository(str(Path(place).expanduser()), None)
    if is_file_path(place) or place.count("/") != 1:
        kind = request.address.partition(":")[0]
        raise UserError(
            f"expected {kind}:org/name@revision or a folder that is there, got '{request.address}'"
            + ("; a single file is 'safetensors:ARCH:FILE'" if is_file_path(place) else "")
        )
    return Repository(place, revision or "main")


def load_huggingface(request: Request) -> Model:
    """An image classifier of transformers."""
    transformers = import_extra("transformers", "torch")
    at = parse_repository(request)
    with report_hub_errors(request.address, _ADVICE):
        config = transformers.AutoConfig.from_pretrained(at.place, **at.options)
        processor = transformers.AutoImageProcessor.from_pretrained(at.place, **at.options)
        model = transformers.AutoModelForImageClassification.from_pretrained(at.place, weights_only=True, **at.options)
    network = TorchNetwork(
        wrap_logits(model.eval()), _read_labels(config, request), verify_processor(processor, transformers)
    )
    return build_classifier(request, network)


def _read_labels(config: Any, request: Request) -> tuple[str, ...]:
    names = tuple(config.id2label[place] for place in range(len(config.id2label)))
    if all(name == f"LABEL_{place}" for place, name in enumerate(names)):
        raise UserError(
            f"expected class names in the configuration of '{request.address}', got LABEL_0 and so on;"
            f" write id2label into its config.json"
        )
    return match_imagenet_columns(names) or names


def wrap_logits(model: Any) -> Any:
    """A transformers model as a module from pictures to logits."""
    torch = import_extra("torch", "torch")

    class Logits(torch.nn.Module):  # type: ignore[misc, name-defined]  # torch is there only once it was asked for
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, pictures: Any) -> Any:
            return self.model(pixel_values=pictures).logits

    return Logits().eval()


@dataclass(frozen=True)
class ProcessorTransform:
    """An image processor of transformers as a transform."""

    processor: Any

    def __str__(self) -> str:
        """The processor as its library prints it."""
        return str(self.processor)

    def __call__(self, picture: Image.Image) -> NDArray[np.float32]:
        """The network's input, (3, height, width)."""
        return np.asarray(self.processor(images=picture, return_tensors="pt")["pixel_values"][0].numpy(), np.float32)


def verify_processor(processor: Any, transformers: Any) -> Preparation:
    """The preparation of an image processor, by our own code where that gives equal pictures."""
    return verify_preparation(
        ProcessorTransform(processor), _read_preprocessing(processor), f"transformers {transformers.__version__}"
    )


def _read_preprocessing(processor: Any) -> Preprocessing:
    """The preprocessing in the processor's configuration; it is then compared with the processor itself."""
    size, crop = (dict(getattr(processor, name, None) or {}) for name in ("size", "crop_size"))
    shorter = size.get("shortest_edge") or 0
    fraction = getattr(processor, "crop_pct", None)
    if fraction and shorter and not crop:  # ConvNeXt's way: resize to size / crop_pct, then crop to size
        crop, shorter = {"height": shorter, "width": shorter}, int(shorter / fraction)
    final = crop if crop and getattr(processor, "do_center_crop", True) else size
    height, width = final.get("height") or shorter, final.get("width") or shorter
    mean, std = _read_levels(processor)
    interpolation = _FILTERS.get(int(getattr(processor, "resample", None) or 2), "bilinear")
    return Preprocessing(size=(height, width), resize=shorter or None, interpolation=interpolation, mean=mean, std=std)  # type: ignore[arg-type]


def _read_levels(processor: Any) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    scale = 1 / getattr(processor, "rescale_factor", 1 / 255) if getattr(processor, "do_rescale", True) else 1.0
    if not getattr(processor, "do_normalize", True):
        return (0.0, 0.0, 0.0), (scale, scale, scale)
    given = (getattr(processor, name, None) or _UNKNOWN for name in ("image_mean", "image_std"))
    mean, std = ((scale * r, scale * g, scale * b) for r, g, b in given)
    return mean, std
