"""The network that takes a click, converted from Paddle's program."""

from __future__ import annotations

import numpy as np
import pytest

from counterfoil.assets.cache import cache_folder, fetch_asset
from counterfoil.assets.embedded_networks import build_click_network, make_fixed_pictures
from counterfoil.assets.hrnet import SIDE, convert_hrnet
from counterfoil.assets.onnx_session import open_onnx_session
from counterfoil.errors import UserError

# Logits of Paddle's own inference (paddlepaddle 2.6.2) for the first fixed picture, clicked on its middle: every 70th
# row and column from the 25th on.
PADDLE = [
    [0.4876, 0.4792, 0.4979, 0.4149, 0.3229, 0.1633],
    [0.6345, 0.6487, 1.6070, 2.2042, 0.2179, 0.5187],
    [0.7181, 1.9235, 2.7401, 2.9160, 2.1175, 0.4828],
    [0.9737, 2.2618, 2.6889, 2.8729, 2.3110, 0.5364],
    [0.6415, 0.6988, 2.0043, 2.1791, 0.5569, 0.6637],
    [0.5294, 0.7816, 0.3838, 0.2065, 0.4156, 0.2885],
]


def test_the_converted_network_answers_as_paddle_does() -> None:
    session = open_onnx_session(build_click_network(fetch_asset, cache_folder()))
    mean, deviation = np.array((0.485, 0.456, 0.406), np.float32), np.array((0.229, 0.224, 0.225), np.float32)
    picture = make_fixed_pictures((SIDE, SIDE))[0]
    ready = ((picture / np.float32(255) - mean) / deviation).transpose(2, 0, 1)[None]
    rows, columns = np.mgrid[:SIDE, :SIDE]
    clicks = np.zeros((1, 3, SIDE, SIDE), np.float32)
    clicks[0, 1] = (rows - 200) ** 2 + (columns - 200) ** 2 <= 25
    (logits,) = session.run(["logits"], {"pictures": np.ascontiguousarray(ready, np.float32), "clicks": clicks})
    np.testing.assert_allclose(logits[0, 0, 25::70, 25::70], PADDLE, atol=2e-3)


def test_another_program_is_refused() -> None:
    program, weights = (fetch_asset(f"pp-lcnetv2-{part}").read_bytes() for part in ("program", "weights"))
    with pytest.raises(UserError, match="expected"):
        convert_hrnet(program, weights)
