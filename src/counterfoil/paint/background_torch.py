"""The background model in torch, from the same weights as in ONNX Runtime: for a GPU, many pictures at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.extras import required
from counterfoil.paint.background_model import read_weights, weights_file
from counterfoil.paint.sampler import Array, Guide, Predict, Scene, painted


def check_gpu() -> None:
    """Refuse a machine whose GPU torch does not see."""
    if not required("torch", "diffusion").cuda.is_available():
        raise UserError("expected a GPU for device: cuda, but torch sees none; use device: cpu")


def torch_model(device: str, half: bool = False, weights: bytes | None = None) -> Predict:
    """The model on this device; `half` computes in bfloat16, faster and no longer equal to the last digits."""
    torch: Any = required("torch", "diffusion")
    if device.startswith("cuda"):
        check_gpu()
    from counterfoil.paint.background_network import BackgroundNetwork

    if not half:  # equal to ONNX Runtime means full precision, not TF32, which cuDNN takes unasked
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.deterministic = True  # or a surrogate's gradient would be another one every time
    network: Any = BackgroundNetwork().eval().to(device)
    tensors = read_weights(weights if weights is not None else weights_file())
    network.load_state_dict({name: torch.from_numpy(array) for name, array in tensors.items()})
    network.requires_grad_(False)

    def predicted(planes: Array, log_ratio: float) -> Array:
        given = torch.full((len(planes),), log_ratio, device=device)
        with torch.no_grad(), torch.autocast(torch.device(device).type, torch.bfloat16, enabled=half):
            return network(planes.float(), given).float()

    return predicted


def painted_on(
    device: str, predict: Predict, scene: Scene, schedule: Sequence[float], guide: Guide | None = None
) -> NDArray[np.float32]:
    """Paint a scene of NumPy arrays on a device; the noise comes from the pictures' own seeds there too."""
    torch: Any = required("torch", "diffusion")
    planes = (scene.background, scene.colours, scene.known, scene.noise)
    there = Scene(*(torch.from_numpy(plane).to(device) for plane in planes))
    return np.asarray(painted(predict, there, schedule, guide).cpu().numpy(), np.float32)
