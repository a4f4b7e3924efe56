"""`torchvision:resnet50@IMAGENET1K_V2`."""

from __future__ import annotations

from typing import Any

from counterfoil.errors import UserError
from counterfoil.extras import required
from counterfoil.labels import imagenet_columns
from counterfoil.models.options import Request
from counterfoil.models.preparation import proven
from counterfoil.models.torch.classifier import classifier_of
from counterfoil.models.torch.network import TorchNetwork, as_transform
from counterfoil.models.torch.reaching import nearest, reaching
from counterfoil.types import Model, Preprocessing


def load_torchvision(request: Request) -> Model:
    """A classifier of torchvision's, by its name and the name of its weights."""
    torchvision = required("torchvision", "torch")
    name, _, version = request.place.partition("@")
    weights = _weights(torchvision.models, name, version)
    with reaching(request.address, "torchvision downloads them when the network is there"):
        # First as tensors alone: a file that needs code to be read stops here, before torchvision opens it.
        weights.get_state_dict(progress=False, check_hash=True, map_location="cpu", weights_only=True)
        module = torchvision.models.get_model(name, weights=weights).eval()
    names = tuple(weights.meta["categories"])
    preparation = proven(
        as_transform(weights.transforms()), _guess(weights.transforms()), f"torchvision {torchvision.__version__}"
    )
    return classifier_of(request, TorchNetwork(module, imagenet_columns(names) or names, preparation))


def _weights(models: Any, name: str, version: str) -> Any:
    known = models.list_models(module=models)
    if name not in known:
        raise UserError(
            f"expected a classifier of torchvision's, got 'torchvision:{name}';"
            f" did you mean {nearest(name.lower(), known, 'torchvision')}?"
        )
    versions = {entry.name: entry for entry in models.get_model_weights(name)}
    if version not in versions:
        exact = " or ".join(f"'torchvision:{name}@{entry}'" for entry in versions)
        given = f"{name}@{version}" if version else name
        raise UserError(f"expected the name of the weights, got 'torchvision:{given}'; use {exact}")
    return versions[version]


def _guess(preset: Any) -> Preprocessing:
    """What torchvision's preset says that it does."""
    (crop,), (resize,) = preset.crop_size, preset.resize_size
    mean, std = ((255 * r, 255 * g, 255 * b) for r, g, b in (preset.mean, preset.std))
    interpolation = preset.interpolation.value
    known = interpolation in ("bilinear", "bicubic", "lanczos")
    return Preprocessing((crop, crop), resize, interpolation if known else "bilinear", mean, std)
