"""Every adapter of the torch world, over real small networks: the contract, the preprocessing, the safety."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import torch_networks as networks
from counterfoil.contract_checks import check_classifier
from counterfoil.errors import UserError
from counterfoil.labels.benchmark_classes import imagenet_d
from counterfoil.labels.label_space import imagenet1k
from counterfoil.models.model_loaders import load_model
from counterfoil.models.model_options import ModelOptions
from counterfoil.models.preprocessing import LibraryTransform
from torch_networks import PHOTOS
from torch_setup import library, seeded, write_json

pytestmark = pytest.mark.torch

Build = Callable[[Path], str]
ADAPTERS: list[Build] = [
    networks.timm_folder,
    networks.safetensors_file,
    networks.torchvision_weights,
    networks.huggingface_folder,
    networks.open_clip_file,
    networks.clip_huggingface_folder,
    networks.torchscript_file,
]
CPU = ModelOptions(device="cpu", classes=imagenet_d())


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Build], str]:
    """The address of a network, made in a folder of its own."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "network"))

    def build(make: Build) -> str:
        if make is not networks.torchvision_weights:
            (tmp_path / "network").mkdir()
        return make(tmp_path / "network")

    return build


def largest_difference(model: Any, transform: Callable[[Any], Any]) -> float:
    """In levels of 255, between what a model is given and what its library's transform gives."""
    scale = np.array(model.preprocessing.std, np.float32).reshape(3, 1, 1)
    pairs = [(model.preparation.picture(photo), np.asarray(transform(Image.fromarray(photo)))) for photo in PHOTOS]
    return max(float((np.abs(ours - theirs) * scale).max()) for ours, theirs in pairs)


@pytest.mark.parametrize("make", ADAPTERS, ids=lambda make: make.__name__)
def test_every_adapter_keeps_the_contract_of_classifiers(make: Build, built: Callable[[Build], str]) -> None:
    model = load_model(built(make), options=CPU)
    check_classifier(model, PHOTOS)
    assert model.preprocessing is not None
    assert len(model.digest) == 64


def test_timm_weights_get_timms_preprocessing_and_imagenets_labels(
    built: Callable[[Build], str], tmp_path: Path
) -> None:
    model: Any = load_model(built(networks.timm_folder), options=CPU)
    timm, torch = library("timm"), library("torch")
    module = timm.create_model(f"local-dir:{tmp_path / 'network'}", pretrained=True).eval()
    transform = library("timm.data").create_transform(
        **library("timm.data").resolve_model_data_config(module), is_training=False
    )
    assert largest_difference(model, transform) <= 2
    with torch.inference_mode():
        theirs = module(torch.stack([transform(Image.fromarray(photo)) for photo in PHOTOS])).argmax(1).tolist()
    assert [model.labels[column] for column in model(PHOTOS).argmax(1)] == [imagenet1k().labels[i] for i in theirs]


def test_torchvision_weights_get_their_own_transforms(built: Callable[[Build], str]) -> None:
    model: Any = load_model(built(networks.torchvision_weights), options=CPU)
    weights = library("torchvision").models.get_model_weights("squeezenet1_1")["IMAGENET1K_V1"]
    assert largest_difference(model, weights.transforms()) <= 2
    assert tuple(model.labels) == imagenet1k().labels
    assert model.preprocessing.resize == 256


def test_a_transformers_model_gets_its_processors_pictures(built: Callable[[Build], str], tmp_path: Path) -> None:
    model: Any = load_model(built(networks.huggingface_folder), options=CPU)
    transformers, torch = library("transformers"), library("torch")
    processor = transformers.AutoImageProcessor.from_pretrained(tmp_path / "network")
    module = transformers.ViTForImageClassification.from_pretrained(tmp_path / "network").eval()
    assert largest_difference(model, lambda photo: processor(photo, return_tensors="np")["pixel_values"][0]) <= 2
    with torch.inference_mode():
        theirs = module(**processor([Image.fromarray(p) for p in PHOTOS], return_tensors="pt")).logits.argmax(1)
    assert [model.labels[column] for column in model(PHOTOS).argmax(1)] == [networks.ANIMALS[i] for i in theirs]


def test_a_transform_that_ours_does_not_equal_is_the_librarys(built: Callable[[Build], str], tmp_path: Path) -> None:
    """transformers crops the centre half a pixel further left than Pillow's and torchvision's rule does."""
    model: Any = load_model(built(networks.clip_huggingface_folder), options=CPU)
    assert isinstance(model.preprocessing, LibraryTransform)
    assert "CLIPImageProcessor" in model.preprocessing.transform
    assert "transformers" in model.preparation.how
    processor = library("transformers").AutoImageProcessor.from_pretrained(tmp_path / "network")
    assert largest_difference(model, lambda photo: processor(photo, return_tensors="np")["pixel_values"][0]) == 0


def test_a_processor_without_a_configuration_of_its_own_is_used_as_it_is(
    built: Callable[[Build], str], tmp_path: Path
) -> None:
    """transformers wraps timm's models; the processor then only holds timm's transform."""
    built(networks.timm_folder)
    config = tmp_path / "network" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "model_type": "timm_wrapper"}))
    wrapped: Any = load_model(f"hf:{tmp_path / 'network'}", options=CPU)
    direct = load_model(f"timm:{tmp_path / 'network'}", options=CPU)
    np.testing.assert_allclose(wrapped(PHOTOS), direct(PHOTOS), atol=1e-4)
    assert tuple(wrapped.labels) == tuple(direct.labels)


def test_zero_shot_scores_are_cosines_between_pictures_and_the_113_prompts(
    built: Callable[[Build], str], tmp_path: Path
) -> None:
    address = built(networks.open_clip_file)
    model: Any = load_model(address, options=CPU)
    open_clip, torch = library("open_clip"), library("torch")
    clip, _, transform = open_clip.create_model_and_transforms("tiny-clip", pretrained=address.partition("/")[2])
    texts = [f"A photo of a {name.lower()}" for name in ("alarm clock", "backpack", "coffee or french press")]
    places = [imagenet_d().labels.index(label) for label in ("alarm_clock", "backpack", "coffee_or_french_press")]
    with torch.inference_mode():
        told = clip.eval().encode_text(open_clip.get_tokenizer("tiny-clip")(texts), normalize=True)
        seen = clip.encode_image(torch.stack([transform(Image.fromarray(photo)) for photo in PHOTOS]), normalize=True)
        logits = (clip.logit_scale.exp() * seen @ told.T).numpy()
    ours = np.log(model(PHOTOS)[:, places])
    np.testing.assert_allclose(ours - ours[:, :1], logits - logits[:, :1], atol=1e-3)
    assert len(model.labels) == 113


def test_prompts_are_part_of_a_zero_shot_models_digest(built: Callable[[Build], str]) -> None:
    address = built(networks.open_clip_file)
    plain = load_model(address, options=CPU)
    sketch = load_model(
        address, options=ModelOptions(device="cpu", classes=imagenet_d(), templates=("a sketch of {c}",))
    )
    assert plain.digest != sketch.digest
    assert plain.digest == load_model(address, options=CPU).digest


def test_torch_onnx_and_openvino_give_the_same_answers(built: Callable[[Build], str]) -> None:
    library("onnxscript")
    library("openvino")
    address = built(networks.safetensors_file)
    ways = [
        load_model(address, options=ModelOptions(device="cpu", runtime=runtime))
        for runtime in ("own", "onnx", "openvino")
    ]
    torch_scores, *others = (way(PHOTOS) for way in ways)
    for scores in others:
        np.testing.assert_allclose(scores, torch_scores, atol=1e-4)
        np.testing.assert_array_equal(scores.argmax(1), torch_scores.argmax(1))
    assert len({way.digest for way in ways}) == 1
    assert len({way.preprocessing for way in ways}) == 1


def test_an_export_is_made_once_and_made_anew_where_its_file_was_changed(
    built: Callable[[Build], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, assets: Callable[[str], Path]
) -> None:
    library("onnxscript")
    monkeypatch.setattr("counterfoil.models.onnx_export.fetch_asset", assets)  # photos from the shared cache
    monkeypatch.setattr("counterfoil.models.onnx_export.cache_folder", lambda: tmp_path / "cache")
    address, wanted = built(networks.safetensors_file), ModelOptions(device="cpu", runtime="onnx")
    first = load_model(address, options=wanted)(PHOTOS)
    (file,) = (tmp_path / "cache" / "exported").glob("*.onnx")
    made = file.stat().st_mtime_ns
    load_model(address, options=wanted)
    assert file.stat().st_mtime_ns == made
    file.write_bytes(b"<html>another file</html>")
    np.testing.assert_array_equal(load_model(address, options=wanted)(PHOTOS), first)


def test_other_weights_behind_the_same_name_show_in_the_digest(built: Callable[[Build], str], tmp_path: Path) -> None:
    address = built(networks.safetensors_file)
    before = load_model(address, options=CPU).digest
    file = Path(address.rpartition(":")[2])
    weights = library("safetensors.torch").load_file(file)
    name = min(weights)
    library("safetensors.torch").save_file({**weights, name: weights[name] + 1e-6}, file)
    assert load_model(address, options=CPU).digest != before


class Trap:
    """A pickle that leaves a mark where it is opened carelessly."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


def test_weights_that_need_code_are_refused_and_the_code_does_not_run(tmp_path: Path) -> None:
    library("timm")
    library("torch").save({"weights": Trap(tmp_path / "ran")}, tmp_path / "weights.pth")
    (tmp_path / "plain.pth").write_bytes(pickle.dumps(Trap(tmp_path / "ran")))
    for name in ("weights.pth", "plain.pth"):
        with pytest.raises(UserError, match="without running code from it"):
            load_model(f"safetensors:{networks.ARCHITECTURE}:{tmp_path / name}")
    assert not (tmp_path / "ran").exists()


def test_a_truncated_file_says_so(built: Callable[[Build], str]) -> None:
    address = built(networks.safetensors_file)
    file = Path(address.rpartition(":")[2])
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(UserError, match="expected a whole safetensors file"):
        load_model(address, options=CPU)


def test_a_pickle_in_a_hub_folder_does_not_run(built: Callable[[Build], str], tmp_path: Path) -> None:
    address = built(networks.huggingface_folder)
    (tmp_path / "network" / "model.safetensors").unlink()
    library("torch").save({"weights": Trap(tmp_path / "ran")}, tmp_path / "network" / "pytorch_model.bin")
    with pytest.raises(UserError, match="cannot be loaded"):
        load_model(address, options=CPU)
    assert not (tmp_path / "ran").exists()


def test_torch_files_of_tensors_alone_are_read(tmp_path: Path) -> None:
    timm, torch = library("timm"), library("torch")
    module = seeded(torch, timm.create_model(networks.ARCHITECTURE, num_classes=5))
    weights = {f"module.{name}": tensor for name, tensor in module.state_dict().items()}
    torch.save({"state_dict": weights, "epoch": 3}, tmp_path / "weights.pth")
    write_json(tmp_path / "weights.json", labels=networks.ANIMALS)
    model = load_model(f"safetensors:{networks.ARCHITECTURE}:{tmp_path / 'weights.pth'}", options=CPU)
    assert list(model.labels) == networks.ANIMALS


def test_code_out_of_a_repository_never_runs(built: Callable[[Build], str], tmp_path: Path) -> None:
    address = built(networks.huggingface_folder)
    config = tmp_path / "network" / "config.json"
    told = {**json.loads(config.read_text()), "model_type": "mine", "auto_map": {"AutoConfig": "mine.Config"}}
    config.write_text(json.dumps(told))
    (tmp_path / "network" / "mine.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'ran')!r})\n")
    with pytest.raises(UserError, match="cannot be loaded"):
        load_model(address, options=CPU)
    assert not (tmp_path / "ran").exists()


def test_torchscript_that_writes_files_is_refused(tmp_path: Path) -> None:
    module = library("torch").jit.ScriptModule()
    module.define("def forward(self, x):\n  torch.save(x, '/nowhere/taken')\n  return x.mean([2, 3])\n")
    library("torch").jit.save(module, str(tmp_path / "net.pt"))
    write_json(tmp_path / "net.json", labels=["a", "b", "c"], size=[64, 64], resize=72)
    with pytest.raises(UserError, match="only computes"):
        load_model(f"torchscript:{tmp_path / 'net.pt'}")


@pytest.mark.parametrize("kind", ["safetensors:test_resnet:", "torchscript:", "onnx:"])
def test_a_web_page_in_place_of_weights_is_recognised(kind: str, tmp_path: Path) -> None:
    library("timm")
    page = tmp_path / "weights.onnx"
    page.write_text("\n<!DOCTYPE html><html><title>Sign in</title></html>")
    write_json(tmp_path / "weights.json", labels=["a", "b"])
    with pytest.raises(UserError, match="it is a web page"):
        load_model(f"{kind}{page}")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("timm:resnet50", "'timm:resnet50.a1_in1k'"),
        ("timm:resnet50.a1_in1kk", "'timm:resnet50.a1_in1k'"),
        ("timm:./weights.pth", "'safetensors:ARCH:./weights.pth'"),
        ("torchvision:resnet50", "got 'torchvision:resnet50'; use 'torchvision:resnet50@IMAGENET1K_V1' or"),
        ("torchvision:resnet50@V2", "'torchvision:resnet50@IMAGENET1K_V2'"),
        ("torchvision:resnet51@IMAGENET1K_V1", "'torchvision:resnet5"),
        ("hf:resnet", "expected hf:org/name@revision or a folder"),
        ("hf:/nowhere/model", "a folder that is there"),
        ("hf:model.safetensors", "'safetensors:ARCH:FILE'"),
        ("open_clip:ViT-B-32/opennai", "'open_clip:ViT-B-32/openai'"),
        ("open_clip:ViT-B32/openai", "'open_clip:ViT-B-32"),
        ("safetensors:weights.safetensors", "expected safetensors:ARCH:FILE"),
        ("safetensors:resnet51:weights.safetensors", "'safetensors:resnet5"),
        ("torchscript:missing.pt", "there is no such file"),
    ],
)
def test_a_wrong_name_is_told_the_exact_string(address: str, said: str) -> None:
    for package in ("timm", "torchvision", "transformers", "open_clip"):
        library(package)
    with pytest.raises(UserError) as error:
        load_model(address)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_weights_that_do_not_fit_the_architecture_are_refused(built: Callable[[Build], str]) -> None:
    address = built(networks.safetensors_file)
    with pytest.raises(UserError, match="cannot be loaded"):
        load_model(address.replace(networks.ARCHITECTURE, "test_vit"), options=CPU)


def test_class_names_that_nobody_gave_are_asked_for(built: Callable[[Build], str], tmp_path: Path) -> None:
    address = built(networks.huggingface_folder)
    config = tmp_path / "network" / "config.json"
    told = {key: value for key, value in json.loads(config.read_text()).items() if key not in ("id2label", "label2id")}
    config.write_text(json.dumps({**told, "num_labels": 5}))
    with pytest.raises(UserError, match="write id2label"):
        load_model(address, options=CPU)


def test_a_device_that_is_not_there_is_named(built: Callable[[Build], str]) -> None:
    address = built(networks.safetensors_file)
    with pytest.raises(UserError, match="expected a device as auto, cpu, cuda or cuda:NUMBER, got 'cuda:9'"):
        load_model(address, options=ModelOptions(device="cuda:9"))
