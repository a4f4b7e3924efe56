"""The part of U2-Netp that gives its second map gives the same map as the whole."""

from __future__ import annotations

import cv2
import numpy as np
import onnx

from counterfoil.assets.cache import fetch_asset
from counterfoil.assets.onnx_session import open_onnx_session
from counterfoil.assets.salience_graph import MAP, SIDE, open_coarse_salience_session, take_second_map
from counterfoil.segmentation import SalienceNetwork
from edit_pictures import blob_on_grass


def test_the_part_gives_the_second_map_of_the_whole() -> None:
    weights = fetch_asset("u2netp")
    coarse = cv2.resize(np.random.default_rng(0).standard_normal((20, 20, 3)), (SIDE, SIDE))
    planes = np.ascontiguousarray(coarse.transpose(2, 0, 1)[None], np.float32)
    whole, part = open_onnx_session(weights), open_coarse_salience_session(weights)
    expected = whole.run([whole.get_outputs()[MAP].name], {whole.get_inputs()[0].name: planes})[0]
    given = part.run(None, {part.get_inputs()[0].name: planes})
    assert len(given) == 1
    np.testing.assert_allclose(given[0], expected, atol=1e-4)


def test_the_part_is_smaller_and_computes_no_sizes() -> None:
    whole = fetch_asset("u2netp").read_bytes()
    kinds = [
        [node.op_type for node in onnx.load_from_string(each).graph.node] for each in (whole, take_second_map(whole))
    ]
    assert kinds[1].count("Conv") < kinds[0].count("Conv")
    assert "Shape" not in kinds[1]


def test_the_coarse_map_shows_the_same_object() -> None:
    weights, picture = fetch_asset("u2netp"), blob_on_grass()
    maps = [SalienceNetwork(weights, coarse).raw_salience(picture.image) > 0.5 for coarse in (False, True)]
    assert maps[0].any()
    assert np.count_nonzero(maps[0] & maps[1]) > 0.9 * np.count_nonzero(maps[0] | maps[1])
