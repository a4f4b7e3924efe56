"""`timm:resnet50.a1_in1k` or a folder that timm saved, and `safetensors:ARCH:FILE` for one's own weights."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from counterfoil.errors import UserError
from counterfoil.extras import required
from counterfoil.models.description import describe, labels_of, overridden
from counterfoil.models.options import Request
from counterfoil.models.preparation import described, proven
from counterfoil.models.torch.classifier import classifier_of
from counterfoil.models.torch.network import TorchNetwork, as_transform
from counterfoil.models.torch.reaching import looks_like_a_file, nearest, reaching
from counterfoil.models.weights import read_weights
from counterfoil.types import Model, Preprocessing


def load_timm(request: Request) -> Model:
    """A model of timm's, by its name with the tag of its weights."""
    timm = required("timm", "torch")
    place, _, size = request.place.partition("@")
    if size not in ("", "test"):
        raise UserError(f"expected timm:NAME.TAG, or timm:NAME.TAG@test for its test size, got '{request.address}'")
    name = _exact_name(timm, place)
    with reaching(request.address, "with the file at hand, use 'safetensors:ARCH:FILE'"):
        module = timm.create_model(name, pretrained=True).eval()
    transform, guess = preprocessing_of(module, size == "test")
    preparation = proven(as_transform(transform), guess, f"timm {timm.__version__}")
    return classifier_of(request, TorchNetwork(module, _labels(module, request), preparation))


def _exact_name(timm: Any, place: str) -> str:
    """A name without the tag of its weights is refused: what it stands for changes between versions of timm."""
    if place.startswith(("hf-hub:", "hf_hub:", "local-dir:")):
        return place
    if Path(place).is_dir():
        return f"local-dir:{place}"
    if looks_like_a_file(place):
        raise UserError(f"expected a name of timm's, got the path '{place}'; use 'safetensors:ARCH:{place}'")
    known = timm.list_pretrained()
    if place in known:
        return place
    architecture = place.partition(".")[0]
    tagged = [name for name in known if name.partition(".")[0] == architecture]
    if tagged and place == architecture:
        default = timm.get_pretrained_cfg(place)
        exact = f"{place}.{default.tag}" if default is not None and default.tag else tagged[0]
        raise UserError(
            f"expected the tag of the weights too, got 'timm:{place}', which {len(tagged)} sets of weights answer to;"
            f" did you mean 'timm:{exact}'?"
        )
    offered = nearest(place, tagged or known, "timm")
    raise UserError(f"expected a pretrained model of timm's, got 'timm:{place}'; did you mean {offered}?")


def preprocessing_of(module: Any, test_size: bool = False) -> tuple[Any, Preprocessing]:
    """timm's transform for these weights, and what its configuration says it does."""
    data = required("timm.data", "torch")
    given = data.resolve_model_data_config(module, use_test_size=test_size)
    height, width = given["input_size"][1:]
    squash = given["crop_mode"] == "squash" and given["crop_pct"] == 1
    resize = None if squash else math.floor(min(height, width) / given["crop_pct"])
    known = given["interpolation"] in ("bilinear", "bicubic", "lanczos")
    guess = Preprocessing(
        (height, width), resize, given["interpolation"] if known else "bilinear",
        _in_levels(given["mean"]), _in_levels(given["std"]),
    )  # fmt: skip
    return data.create_transform(**given, is_training=False), guess


def _in_levels(values: Any) -> tuple[float, float, float]:
    red, green, blue = (255 * float(value) for value in values)
    return red, green, blue


def _labels(module: Any, request: Request) -> tuple[str, ...]:
    """The names in the weights' configuration, else the ImageNet set that timm knows they were trained on."""
    data = required("timm.data", "torch")
    names = module.pretrained_cfg.get("label_names")
    if names:
        return tuple(names.values() if isinstance(names, dict) else names)
    subset = data.infer_imagenet_subset(module)
    if subset is None:
        raise UserError(
            f"expected names for the {module.num_classes} columns of '{request.address}', timm has none;"
            f" use 'safetensors:ARCH:FILE' with the labels in FILE's .json"
        )
    return tuple(data.ImageNetInfo(subset).label_names())


def load_safetensors(request: Request) -> Model:
    """One's own weights in an architecture of timm's; the labels stand in the JSON beside the file."""
    architecture, _, file = request.place.partition(":")
    if not architecture or not file:
        raise UserError(
            f"expected safetensors:ARCH:FILE, such as 'safetensors:resnet50:weights.safetensors',"
            f" got '{request.address}'"
        )
    timm = required("timm", "torch")
    if not timm.is_model(architecture):
        raise UserError(
            f"expected an architecture of timm's, got '{architecture}'; did you mean"
            f" {nearest(architecture, timm.list_models(), 'safetensors')}?"
        )
    weights, path = read_weights(Path(file)), Path(file)
    description = describe(path, request.options.describe)
    labels = labels_of(description, path.parent)
    module = timm.create_model(architecture, pretrained=False, num_classes=len(labels)).eval()
    with reaching(request.address, f"check that the file holds {architecture} with {len(labels)} classes"):
        module.load_state_dict(weights)
    transform, guess = preprocessing_of(module)
    wanted = overridden(description, guess)
    own = wanted != guess
    preparation = described(wanted) if own else proven(as_transform(transform), guess, f"timm {timm.__version__}")
    return classifier_of(request, TorchNetwork(module, labels, preparation))
