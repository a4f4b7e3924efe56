"""A run whose pictures a device makes: the same drops as the exact way, said in its record, never mixed with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import counterfoil as cf
from colour_network import mean_colour_network
from command_line import counterfoil
from counterfoil.models.preprocessing import list_geometries
from planted import LABELS, write_photos
from torch_networks import small_network
from torch_setup import library, seeded, write_json

pytestmark = pytest.mark.torch

EDITS = [
    "background-swap", "background-blur", "background-grayscale", "size", cf.edits.Size(0.08), "position", "direction",
    "flip", "object-hue", "object-blur", "silhouette", "occlusion", "jpeg", "text", "corruption-gaussian-noise",
]  # fmt: skip


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small real network of torch over the photos' labels, by its address."""
    torch, path = library("torch"), tmp_path_factory.mktemp("network") / "net.pt"
    layers = torch.nn.Sequential(small_network(), torch.nn.Linear(3, len(LABELS)))
    torch.jit.save(torch.jit.script(seeded(torch, layers)), str(path))
    write_json(path.with_suffix(".json"), labels=list(LABELS), size=[64, 64], resize=72)
    return f"torchscript:{path}"


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_photos(tmp_path_factory.mktemp("photos"), 8)


Run = Callable[..., cf.Result]


@pytest.fixture
def run(photos: tuple[Path, Path], network: str) -> Run:
    def make(folder: Path, device: str, limit: int | None = None) -> cf.Result:
        return cf.run(
            photos[0], [network], masks=photos[1], edits=EDITS, out=folder, workers=2, limit=limit,
            options=cf.ModelOptions(device="cpu"), render_device=device,
        )  # fmt: skip

    return make


def test_a_device_gives_the_drops_of_the_exact_way(run: Run, tmp_path: Path) -> None:
    exact, device = (run(tmp_path / f"by {name}", name) for name in ("", "cpu"))
    assert [(row.edit, row.level, row.accuracy, row.n) for row in exact.drops] == [
        (row.edit, row.level, row.accuracy, row.n) for row in device.drops
    ]
    assert exact.skipped == device.skipped
    tables = [pq.read_table(result.folder / "variants.parquet") for result in (exact, device)]
    for column in ("id", "object_share", "centre_x", "centre_y", "fill"):
        assert tables[0][column].to_pylist() == tables[1][column].to_pylist()
    record = json.loads((device.folder / "run.json").read_text())
    assert record["rendering"] == "torch on cpu"
    assert {"size", "object-hue", "corruption-gaussian-noise"} <= set(record["rendered_edits"])
    assert not {"jpeg", "text"} & set(record["rendered_edits"])
    assert json.loads((exact.folder / "run.json").read_text())["rendering"] == ""


def test_a_folder_of_the_exact_way_is_refused_to_a_device(run: Run, tmp_path: Path) -> None:
    run(tmp_path, "", limit=2)
    with pytest.raises(cf.UserError, match="holds a run with another way of making pictures"):
        run(tmp_path, "cpu", limit=2)


def test_a_device_run_that_is_there_is_read_again(run: Run, tmp_path: Path) -> None:
    first = run(tmp_path, "cpu", limit=2)
    parts = {part.name: part.stat().st_mtime_ns for part in (tmp_path / "work" / "parts").iterdir()}
    again = run(tmp_path, "cpu", limit=2)
    assert [row.accuracy for row in first.drops] == [row.accuracy for row in again.drops]
    assert parts == {part.name: part.stat().st_mtime_ns for part in (tmp_path / "work" / "parts").iterdir()}


def test_the_command_takes_a_device_and_refuses_one_that_is_not_there(
    photos: tuple[Path, Path], tmp_path: Path
) -> None:
    library("torch")
    onnx = mean_colour_network(tmp_path / "net.onnx", len(LABELS))
    describe = json.dumps({"labels": LABELS, "size": [32, 32], "resize": 36})
    given = ["run", "--images", photos[0], "--masks", photos[1], "--model", f"onnx:{onnx}", "--describe", describe]
    short = ["--limit", 2, "--workers", 1, "--out", tmp_path / "out"]
    refused = counterfoil(*given, *short, "--render-device", "cuda:99")
    assert refused.returncode == 2
    assert "got 'cuda:99'; torch sees" in refused.stderr
    assert "Traceback" not in refused.stderr
    with_ray = counterfoil(*given, *short, "--render-device", "cpu", "--engine", "ray")
    assert with_ray.returncode == 2
    assert "expected --render-device with an engine of this machine" in with_ray.stderr
    made = counterfoil(*given, *short, "--render-device", "cpu")
    assert made.returncode == 3  # the network guesses, and two photos are too few to judge it
    assert json.loads((tmp_path / "out" / "run.json").read_text())["rendering"] == "torch on cpu"


def test_models_that_take_pictures_alike_ask_for_them_once(network: str) -> None:
    model = cf.load_model(network, options=cf.ModelOptions(device="cpu"))
    assert [geometry.resize for geometry in list_geometries([model, model])] == [72]
