"""Models of timm and torchvision, weights in safetensors files, and TorchScript archives."""

from __future__ import annotations

import math
import re
import zipfile
from pathlib import Path
from typing import Any

from counterfoil.errors import UserError
from counterfoil.labels.label_space import match_imagenet_columns
from counterfoil.models.model_options import Request, override_preprocessing, read_description, read_labels
from counterfoil.models.preprocessing import accept_description, verify_preparation
from counterfoil.models.torch_classifier import build_classifier
from counterfoil.models.torch_network import Scores, TensorTransform, TorchNetwork
from counterfoil.models.weight_files import (
    check_file,
    is_file_path,
    read_weights,
    report_hub_errors,
    suggest_addresses,
)
from counterfoil.plugins import import_extra
from counterfoil.types import Model, Preprocessing


def load_timm(request: Request) -> Model:
    """A timm model by its name and weights tag; raises `UserError` where there is none."""
    timm = import_extra("timm", "torch")
    place, _, size = request.place.partition("@")
    if size not in ("", "test"):
        raise UserError(f"expected timm:NAME.TAG, or timm:NAME.TAG@test for its test size, got '{request.address}'")
    name = _exact_name(timm, place)
    with report_hub_errors(request.address, "with the file at hand, use 'safetensors:ARCH:FILE'"):
        module = timm.create_model(name, pretrained=True).eval()
    transform, guess = read_timm_preprocessing(module, size == "test")
    preparation = verify_preparation(TensorTransform(transform), guess, f"timm {timm.__version__}")
    return build_classifier(request, TorchNetwork(module, _labels(module, request), preparation))


def _exact_name(timm: Any, place: str) -> str:
    """The full name; one without a weights tag is refused, since its meaning changes between timm versions."""
    if place.startswith(("hf-hub:", "hf_hub:", "local-dir:")):
        return place
    if Path(place).is_dir():
        return f"local-dir:{place}"
    if is_file_path(place):
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
    offered = suggest_addresses(place, tagged or known, "timm")
    raise UserError(f"expected a pretrained model of timm's, got 'timm:{place}'; did you mean {offered}?")


def read_timm_preprocessing(module: Any, test_size: bool = False) -> tuple[Any, Preprocessing]:
    """timm's transform for these weights, and the preprocessing in its configuration."""
    timm_data = import_extra("timm.data", "torch")
    config = timm_data.resolve_model_data_config(module, use_test_size=test_size)
    height, width = config["input_size"][1:]
    squash = config["crop_mode"] == "squash" and config["crop_pct"] == 1
    resize = None if squash else math.floor(min(height, width) / config["crop_pct"])
    known = config["interpolation"] in ("bilinear", "bicubic", "lanczos")
    guess = Preprocessing(
        size=(height, width), resize=resize, interpolation=config["interpolation"] if known else "bilinear",
        mean=_in_levels(config["mean"]), std=_in_levels(config["std"]),
    )  # fmt: skip
    return timm_data.create_transform(**config, is_training=False), guess


def _in_levels(values: Any) -> tuple[float, float, float]:
    red, green, blue = (255 * float(value) for value in values)
    return red, green, blue


def _labels(module: Any, request: Request) -> tuple[str, ...]:
    """The labels in the weights' configuration, else those of the ImageNet set that timm names for them."""
    timm_data = import_extra("timm.data", "torch")
    names = module.pretrained_cfg.get("label_names")
    if names:
        return tuple(names.values() if isinstance(names, dict) else names)
    subset = timm_data.infer_imagenet_subset(module)
    if subset is None:
        raise UserError(
            f"expected names for the {module.num_classes} columns of '{request.address}', timm has none;"
            f" use 'safetensors:ARCH:FILE' with the labels in FILE's .json"
        )
    return tuple(timm_data.ImageNetInfo(subset).label_names())


def load_safetensors(request: Request) -> Model:
    """A user's weights in a timm architecture; the labels are in the JSON beside the file."""
    architecture, _, file = request.place.partition(":")
    if not architecture or not file:
        raise UserError(
            f"expected safetensors:ARCH:FILE, such as 'safetensors:resnet50:weights.safetensors',"
            f" got '{request.address}'"
        )
    timm = import_extra("timm", "torch")
    if not timm.is_model(architecture):
        raise UserError(
            f"expected an architecture of timm's, got '{architecture}'; did you mean"
            f" {suggest_addresses(architecture, timm.list_models(), 'safetensors')}?"
        )
    weights, path = read_weights(Path(file)), Path(file)
    description = read_description(path, request.options.describe)
    labels = read_labels(description, path.parent)
    module = timm.create_model(architecture, pretrained=False, num_classes=len(labels)).eval()
    with report_hub_errors(request.address, f"check that the file holds {architecture} with {len(labels)} classes"):
        module.load_state_dict(weights)
    transform, guess = read_timm_preprocessing(module)
    wanted = override_preprocessing(description, guess)
    own = wanted != guess
    preparation = (
        accept_description(wanted)
        if own
        else verify_preparation(TensorTransform(transform), guess, f"timm {timm.__version__}")
    )
    return build_classifier(request, TorchNetwork(module, labels, preparation))


_REACHES_FILES = re.compile(r"\b(?:torch|aten|ops\.aten)(?:\.|::)(save|load|from_file|_load\w*)\b")


def load_torchscript(request: Request) -> Model:
    """A TorchScript archive with its labels and preprocessing in the JSON beside it."""
    path = Path(request.place)
    check_file(path, "a TorchScript archive")
    _check_code(path)
    description = read_description(path, request.options.describe)
    with report_hub_errors(request.address, "save it with torch.jit.save"):
        module = import_extra("torch", "torch").jit.load(path, map_location="cpu").eval()
    scores: Scores = "probabilities" if description.scores == "probabilities" else "logits"
    network = TorchNetwork(
        module, read_labels(description, path.parent), accept_description(description.preprocessing), scores, path
    )  # fmt: skip
    return build_classifier(request, network)


def _check_code(path: Path) -> None:
    """Check the archive's code, read as text."""
    if not zipfile.is_zipfile(path):
        raise UserError(
            f"expected a TorchScript archive, got {path}, which is something else;"
            f" weights alone are 'safetensors:ARCH:{path}'"
        )
    with zipfile.ZipFile(path) as archive:
        code = [name for name in archive.namelist() if name.endswith(".py")]
        if not code:
            raise UserError(
                f"expected a TorchScript archive, got {path}, which holds weights alone; use 'safetensors:ARCH:{path}'"
            )
        for name in code:
            match = _REACHES_FILES.search(archive.read(name).decode("utf-8", "replace"))
            if match:
                raise UserError(
                    f"expected a TorchScript archive that only computes, got {path}: its code calls {match[0]}"
                )


def load_torchvision(request: Request) -> Model:
    """A torchvision classifier by its name and the name of its weights."""
    torchvision = import_extra("torchvision", "torch")
    name, _, version = request.place.partition("@")
    weights = _weights(torchvision.models, name, version)
    with report_hub_errors(request.address, "torchvision downloads them when the network is there"):
        # First as tensors only: a file that needs code to be read is refused before torchvision opens it.
        weights.get_state_dict(progress=False, check_hash=True, map_location="cpu", weights_only=True)
        module = torchvision.models.get_model(name, weights=weights).eval()
    names = tuple(weights.meta["categories"])
    preparation = verify_preparation(
        TensorTransform(weights.transforms()), _guess(weights.transforms()), f"torchvision {torchvision.__version__}"
    )
    return build_classifier(request, TorchNetwork(module, match_imagenet_columns(names) or names, preparation))


def _weights(models: Any, name: str, version: str) -> Any:
    known = models.list_models(module=models)
    if name not in known:
        raise UserError(
            f"expected a classifier of torchvision's, got 'torchvision:{name}';"
            f" did you mean {suggest_addresses(name.lower(), known, 'torchvision')}?"
        )
    versions = {entry.name: entry for entry in models.get_model_weights(name)}
    if version not in versions:
        exact = " or ".join(f"'torchvision:{name}@{entry}'" for entry in versions)
        given = f"{name}@{version}" if version else name
        raise UserError(f"expected the name of the weights, got 'torchvision:{given}'; use {exact}")
    return versions[version]


def _guess(preset: Any) -> Preprocessing:
    """The preprocessing as torchvision's preset describes it."""
    (crop,), (resize,) = preset.crop_size, preset.resize_size
    mean, std = ((255 * r, 255 * g, 255 * b) for r, g, b in (preset.mean, preset.std))
    interpolation = preset.interpolation.value
    known = interpolation in ("bilinear", "bicubic", "lanczos")
    return Preprocessing(
        size=(crop, crop), resize=resize, interpolation=interpolation if known else "bilinear", mean=mean, std=std
    )
