"""The identity of models given as code: it changes with their weights, wherever these lie, and with nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from counterfoil.models.model_identity import ObjectState
from counterfoil.models.model_loaders import load_model

_HEAD = """
import functools, pickle
import numpy as np

def probabilities(images, weight):
    dark = np.array([float(image.mean()) for image in images]) * weight / 255
    share = np.clip(dark, 0, 1)
    return np.stack([1 - share, share], axis=1)
"""
MODELS = {
    "an array of the object": """
class Net:
    labels = ("night", "day")
    def __init__(self): self.weight = np.load("weight.npy")
    def __call__(self, images): return probabilities(images, float(self.weight[0]))
make = Net
""",
    "an array inside another object": """
class Inner:
    __slots__ = ("parts",)
class Net:
    labels = ("night", "day")
    def __init__(self):
        self.inner = Inner()
        self.inner.parts = {"layers": [np.load("weight.npy")]}
    def __call__(self, images): return probabilities(images, float(self.inner.parts["layers"][0][0]))
make = Net
""",
    "a global of the module": """
WEIGHT = np.load("weight.npy")
class Net:
    labels = ("night", "day")
    def __call__(self, images): return probabilities(images, float(WEIGHT[0]))
make = Net
""",
    "a variable of the enclosing function": """
def make():
    weight = np.load("weight.npy")
    def net(images): return probabilities(images, float(weight[0]))
    net.labels = ("night", "day")
    return net
""",
    "a partial": """
class Net(functools.partial):
    labels = ("night", "day")
def make():
    return Net(probabilities, weight=float(np.load("weight.npy")[0]))
""",
    "a file that the object names": """
class Net:
    labels = ("night", "day")
    def __init__(self): self.path = "weight.npy"
    def __call__(self, images): return probabilities(images, float(np.load(self.path)[0]))
make = Net
""",
    "a file that only the code names, so that its answers tell": """
class Net:
    labels = ("night", "day")
    def __call__(self, images): return probabilities(images, float(np.load("weight.npy")[0]))
make = Net
""",
}
BESIDE_AN_ARRAY = {  # an array that never changes must not hide weights that lie elsewhere
    "an attribute of the class": """
class Net:
    labels = ("night", "day")
    weight = np.load("weight.npy")
    def __call__(self, images): return probabilities(images, float(self.weight[0]))
make = Net
""",
    "a default of a function": """
def answer(images, *, weight=np.load("weight.npy")): return probabilities(images, float(weight[0]))
class Net:
    labels = ("night", "day")
    def __call__(self, images): return answer(images)
make = Net
""",
    "a global of a module beside": """
import store
class Net:
    labels = ("night", "day")
    def __call__(self, images): return probabilities(images, float(store.WEIGHT[0]))
make = Net
""",
    "a file that a method names": MODELS["a file that only the code names, so that its answers tell"],
}
_ASK = "from counterfoil.models.model_loaders import load_model; print(load_model('python:net:make').identity)"


def identity(folder: Path) -> str:
    """Asked in a process of its own, as a resumed run is."""
    done = subprocess.run([sys.executable, "-c", _ASK], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("kind", MODELS)
def test_other_weights_give_another_identity_and_the_same_weights_the_same(kind: str, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(_HEAD + MODELS[kind])
    np.save(tmp_path / "weight.npy", np.array([0.5]))
    first, again = identity(tmp_path), identity(tmp_path)
    np.save(tmp_path / "weight.npy", np.array([0.9]))
    assert first == again
    assert identity(tmp_path) != first


@pytest.mark.parametrize("kind", BESIDE_AN_ARRAY)
def test_weights_beside_an_array_that_stays_the_same_count_too(kind: str, tmp_path: Path) -> None:
    (tmp_path / "store.py").write_text("import numpy as np\nWEIGHT = np.load('weight.npy')\n")
    (tmp_path / "net.py").write_text(_HEAD + "MEAN = np.zeros(3)\n" + BESIDE_AN_ARRAY[kind])
    np.save(tmp_path / "weight.npy", np.array([0.5]))
    first, again = identity(tmp_path), identity(tmp_path)
    np.save(tmp_path / "weight.npy", np.array([0.9]))
    assert first == again
    assert identity(tmp_path) != first


def test_other_code_in_a_module_beside_gives_another_identity(tmp_path: Path) -> None:
    (tmp_path / "scale.py").write_text("def scale(x):\n    return 0.5 * x\n")
    (tmp_path / "net.py").write_text(
        _HEAD + "from scale import scale\n" + MODELS["an array of the object"].replace("float(", "scale(")
    )
    np.save(tmp_path / "weight.npy", np.array([0.5]))
    first = identity(tmp_path)
    (tmp_path / "scale.py").write_text("def scale(x):\n    return 0.6 * x\n")
    assert identity(tmp_path) != first


def test_a_model_that_says_its_digest_is_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_digest_net.py").write_text(
        _HEAD + MODELS["an array of the object"].replace("labels =", "digest = 'weights of May'; labels =")
    )
    np.save(tmp_path / "weight.npy", np.array([0.5]))
    monkeypatch.chdir(tmp_path)
    assert load_model("python:own_digest_net:make").digest == "weights of May"


@pytest.mark.torch
def test_the_state_of_a_torch_module_counts_down_to_its_buffers_and_in_every_number_format() -> None:
    import torch

    def digest(change: float, dtype: object) -> str:
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).to(dtype)
        module[1].running_mean[1] += change
        state = ObjectState()
        state.add({"net": module})
        assert state.weights
        assert not state.is_opaque
        return state.digest

    for dtype in (torch.float32, torch.bfloat16):
        assert digest(0, dtype) == digest(0, dtype)
        assert digest(0, dtype) != digest(1, dtype)


def test_an_object_that_holds_itself_is_walked_once() -> None:
    ring: dict[str, object] = {"weight": np.ones(2)}
    ring["ring"] = ring
    state = ObjectState()
    state.add(ring)
    assert state.weights == 1
    assert not state.is_opaque


def test_an_object_that_nobody_can_look_into_is_opaque(tmp_path: Path) -> None:
    import cv2

    state = ObjectState()
    state.add({"weights": np.ones(2), "detector": cv2.SIFT_create()})  # type: ignore[attr-defined]
    assert state.is_opaque
