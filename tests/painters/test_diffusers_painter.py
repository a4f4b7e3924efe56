"""Painters of diffusers, with whole pipelines of random weights: batches, seeds, memory, models that are refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.generation.generator import GenerationConfig, generate_pictures
from counterfoil.generation.prompt_plan import Selection
from counterfoil.painters.diffusers_repository import hash_repository
from counterfoil.painters.painter_loaders import load_painter
from counterfoil.painters.painter_protocol import PaintOptions, PaintRefused, PaintRequest, Paints
from counterfoil.store.workspace import Workspace
from counterfoil.types import Picture
from planted import write_photos
from tiny_pipelines import SIDE, flux, pixel_model, stable_diffusion, stable_diffusion_xl, with_safety_checker
from torch_setup import library

pytestmark = pytest.mark.torch
WISHES = [PaintRequest(f"a cat on {place} mats", "", seed) for place, seed in enumerate((3, 2**63 + 5, 7, 11))]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Networks this small only lose by threads, the more so on a busy machine."""
    torch = library("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every kind of pipeline, saved side by side."""
    library("diffusers")
    folder = tmp_path_factory.mktemp("models")
    stable_diffusion(folder / "sd")
    stable_diffusion(folder / "lcm", scheduler="LCMScheduler")
    stable_diffusion(folder / "inpaint", inpainting=True)
    stable_diffusion_xl(folder / "xl")
    flux(folder / "flux")
    pixel_model(folder / "pixels")
    return folder


def painter(place: Path, paints: Paints = "pictures", **options: Any) -> Any:
    return load_painter(f"diffusers:{place}", paints, PaintOptions(**{"steps": 3, "device": "cpu", **options}))


def pictures(found: list[Any]) -> list[NDArray[np.uint8]]:
    assert not any(isinstance(one, PaintRefused) for one in found)
    return found


def same(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> bool:
    """Equal up to what a sum in another order changes: a level here and there."""
    apart = np.abs(first.astype(int) - second)
    return bool(apart.max() <= 1 and (apart > 0).mean() < 0.01)


@pytest.mark.parametrize("kind", ["sd", "xl", "lcm", "flux"])
def test_a_picture_does_not_depend_on_its_batch(models: Path, kind: str) -> None:
    alone, by_two, together = (
        pictures(painter(models / kind, batch_size=size, size=SIDE).paint(WISHES)) for size in (1, 2, 4)
    )
    assert [one.shape for one in alone] == [(SIDE, SIDE, 3)] * 4
    for first, second, third in zip(alone, by_two, together, strict=True):
        assert same(first, second)
        assert same(first, third)
    backwards = pictures(painter(models / kind, batch_size=4, size=SIDE).paint(WISHES[::-1]))[::-1]
    assert all(same(first, second) for first, second in zip(alone, backwards, strict=True))
    assert not any(same(alone[0], other) for other in alone[1:])


def test_seed_prompt_and_negative_prompt_all_matter(models: Path) -> None:
    one = painter(models / "sd")
    asked = [
        PaintRequest("a cat", "", 1),
        PaintRequest("a cat", "", 2),
        PaintRequest("a dog", "", 1),
        PaintRequest("a cat", "blur", 1),
    ]
    first, *others = pictures(one.paint(asked))
    assert same(first, pictures(one.paint(asked[:1]))[0])
    assert all(not np.array_equal(first, other) for other in others)


def test_the_settings_say_all_that_changes_a_picture(models: Path) -> None:
    found = painter(models / "sd", scheduler="EulerDiscreteScheduler", guidance=2.0, size=64)
    assert found.settings == {
        "painter": f"diffusers:{models / 'sd'}", "revision": found.settings["revision"], "size": 64,
        "pipeline": "StableDiffusionPipeline", "scheduler": "EulerDiscreteScheduler", "steps": 3, "guidance": 2.0,
        "precision": "f32",
    }  # fmt: skip
    assert len(str(found.settings["revision"])) == 64
    assert set(found.environment) == {"device", "torch", "diffusers", "transformers"}
    assert pictures(found.paint(WISHES[:1]))[0].shape == (64, 64, 3)
    default = painter(models / "sd", steps=None).settings
    assert (default["steps"], default["guidance"], default["scheduler"]) == (50, 7.5, "DDIMScheduler")


def test_a_batch_that_does_not_fit_is_halved_until_it_does(models: Path) -> None:
    torch = library("torch")
    found = painter(models / "sd", batch_size=4)
    sizes: list[int] = []

    def small_memory(_: Any, arguments: Any) -> None:
        sizes.append(len(arguments[0]) // 2)  # with and without the prompt
        if sizes[-1] > 1:
            raise torch.OutOfMemoryError("no room")

    hook = found.pipeline.unet.register_forward_pre_hook(small_memory)
    halved = pictures(found.paint(WISHES))
    hook.remove()
    assert sizes[:3] == [4, 2, 1]
    assert set(sizes[2:]) == {1}
    whole = pictures(painter(models / "sd", batch_size=4).paint(WISHES))
    assert all(same(first, second) for first, second in zip(halved, whole, strict=True))


def test_no_room_for_one_picture_is_said(models: Path) -> None:
    torch = library("torch")
    found = painter(models / "sd")

    def no_memory(*_: Any) -> None:
        raise torch.OutOfMemoryError("no room")

    found.pipeline.unet.register_forward_pre_hook(no_memory)
    with pytest.raises(UserError, match="has no room for a single picture on cpu: give a smaller --size"):
        found.paint(WISHES)


def test_numbers_that_are_not_finite_are_refused(models: Path) -> None:
    found = painter(models / "sd")
    with library("torch").no_grad():
        found.pipeline.vae.decoder.conv_out.weight.fill_(float("nan"))
    (refused,) = found.paint(WISHES[:1])
    assert isinstance(refused, PaintRefused)
    assert "not finite" in refused.reason


def test_what_a_safety_checker_holds_back_is_refused(models: Path) -> None:
    found = painter(models / "sd")
    with_safety_checker(found.pipeline)
    assert found.paint(WISHES[:2]) == [PaintRefused("held back by the model's safety checker")] * 2


def test_settings_that_a_pipeline_refuses_are_said(models: Path) -> None:
    around = scene(0)
    with pytest.raises(UserError, match=r"StableDiffusionInpaintPipeline of .* refuses: "):
        painter(models / "sd", "backgrounds", steps=2, strength=0.1).paint([PaintRequest("a beach", "", 0, around)])


@pytest.mark.parametrize("kind", ["inpaint", "sd"])
def test_a_background_is_painted_at_the_size_of_the_photo(models: Path, kind: str) -> None:
    rng = np.random.default_rng(0)
    around = [Picture(rng.integers(0, 256, (*shape, 3), np.uint8), np.zeros(shape, np.uint8)) for shape in
              ((40, 60), (60, 40), (40, 60))]  # fmt: skip
    for picture in around:
        picture.alpha[10:30, 10:30] = 255
    asked = [PaintRequest("a beach", "", seed, picture) for seed, picture in enumerate(around)]
    found = pictures(painter(models / kind, "backgrounds", batch_size=3).paint(asked))
    assert [one.shape[:2] for one in found] == [(40, 60), (60, 40), (40, 60)]
    alone = [pictures(painter(models / kind, "backgrounds").paint([request]))[0] for request in asked]
    assert all(same(first, second) for first, second in zip(found, alone, strict=True))


def scene(seed: int, shape: tuple[int, int] = (64, 64)) -> Picture:
    """Noise of middling frequencies with an object in the middle."""
    rng = np.random.default_rng(seed)
    coarse = rng.normal(128, 40, (shape[0] // 2, shape[1] // 2, 3)).clip(0, 255).astype(np.uint8)
    alpha = np.zeros(shape, np.uint8)
    alpha[20:40, 20:40] = 255
    return Picture(np.asarray(np.kron(coarse, np.ones((2, 2, 1))), np.uint8), alpha)


def complexity(image: NDArray[np.uint8]) -> float:
    """c(x): the mean amplitude of the spectrum."""
    return float(np.abs(np.fft.fft2(image / 255.0, axes=(0, 1))).mean())


def test_an_unconditional_model_makes_backgrounds_more_complex_with_lambda(models: Path) -> None:
    found = painter(models / "pixels", "backgrounds", steps=20, size=64, batch_size=5)
    for seed in range(3):
        around = scene(seed)
        asked = [PaintRequest(f"lambda {value}", "", 9, around) for value in (-60, -20, 0, 20, 60)]
        painted = pictures(found.paint(asked))
        assert [one.shape for one in painted] == [(64, 64, 3)] * 5
        grown = [complexity(one) for one in painted]
        assert grown == sorted(grown)
        inside = around.alpha == 255
        assert all(np.abs(one[inside].astype(int) - around.image[inside]).max() <= 1 for one in painted)


def test_a_background_of_an_unconditional_model_does_not_depend_on_its_batch(models: Path) -> None:
    asked = [
        PaintRequest("lambda 20", "", seed, scene(seed, shape)) for seed, shape in enumerate(((64, 64), (48, 64)) * 2)
    ]
    alone = pictures(painter(models / "pixels", "backgrounds", steps=8, batch_size=1).paint(asked))
    together = pictures(painter(models / "pixels", "backgrounds", steps=8, batch_size=4).paint(asked))
    assert all(same(first, second) for first, second in zip(alone, together, strict=True))
    assert not same(alone[0], alone[2])


@pytest.mark.parametrize("prompt", ["lambda inf", "lambda nan", "lambda 1e9", "lambda", "a beach"])
def test_an_endless_lambda_and_words_are_refused_by_a_model_without_words(models: Path, prompt: str) -> None:
    with pytest.raises(UserError, match="expected 'lambda NUMBER' with a number of -1000 to 1000"):
        painter(models / "pixels", "backgrounds").paint([PaintRequest(prompt, "", 0, scene(0))])


def test_a_recipe_of_lambdas_is_refused_by_a_model_that_reads_words(models: Path, tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 4)
    classes = tmp_path / "classes.json"
    classes.write_text(json.dumps(["crimson", "emerald", "azure", "violet"]))
    recipe = tmp_path / "lambdas.yaml"
    recipe.write_text(
        f"paints: backgrounds\nclasses: {classes}\nattributes:\n"
        "  - {attribute: background, values: ['-20', '20'], templates: {pixel-complexity: 'lambda {value}'}}\n"
    )
    address = f"diffusers:{models / 'inpaint'}"
    job = GenerationConfig(
        recipe=str(recipe), painter=address, options=PaintOptions(device="cpu"), images=images, masks=masks
    )
    with pytest.raises(UserError, match="expected a model without words for 'lambda -20'"):
        generate_pictures(job, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_pixel_model_that_does_not_say_its_size_is_told_it(tmp_path: Path) -> None:
    place = pixel_model(tmp_path / "pixels", {"sample_size": None})
    with pytest.raises(UserError, match="expected --size"):
        painter(place, "backgrounds")
    (found,) = pictures(painter(place, "backgrounds", size=32).paint([PaintRequest("lambda 20", "", 0, scene(0))]))
    assert found.shape == (64, 64, 3)


@pytest.mark.parametrize("given", [{"guidance": 2.0}, {"scheduler": "DDIMScheduler"}])
def test_what_a_pixel_model_does_not_take_is_refused(models: Path, given: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="a model over pixels is guided by lambda alone"):
        painter(models / "pixels", "backgrounds", **given)


def test_the_name_of_a_folder_may_hold_an_at_sign(tmp_path: Path) -> None:
    place = pixel_model(tmp_path / "pixels@home")
    assert painter(place, "backgrounds").settings["revision"] == hash_repository(place)


def test_paint_fills_a_workspace_that_says_how_each_picture_was_made(models: Path, tmp_path: Path) -> None:
    chosen = Selection(categories=("backpack",), values=("beach", "wood"))
    job = GenerationConfig(
        recipe="imagenet-d",
        painter=f"diffusers:{models / 'sd'}",
        selection=chosen,
        options=PaintOptions(device="cpu", steps=2),
        negative="text",
    )
    assert generate_pictures(job, tmp_path).pictures == 3
    for stored in Workspace(tmp_path).pictures:
        about = json.loads(stored.variant.settings)
        assert about["negative"] == "text"
        assert about["scheduler"] == "DDIMScheduler"
        assert about["torch"] == library("torch").__version__
        assert "backpack" in about["prompt"]
    again = generate_pictures(job, tmp_path)
    assert again.pictures == 3


def test_without_a_gpu_a_long_painting_is_refused_with_an_estimate(models: Path, tmp_path: Path) -> None:
    if library("torch").cuda.is_available():
        pytest.skip("this machine has a GPU")
    job = GenerationConfig(
        recipe="imagenet-d", painter=f"diffusers:{models / 'sd'}", options=PaintOptions(device="auto", steps=1000)
    )
    with pytest.raises(
        UserError, match=r"no GPU here: .* seconds a picture .* hours for 61,924; use a machine"
    ) as error:
        generate_pictures(job, tmp_path / "out")
    assert "--device cpu" in str(error.value)
    with pytest.raises(UserError, match="torch sees none; use --device cpu"):
        painter(models / "sd", device="cuda")


def test_weights_that_are_a_pickle_are_refused(models: Path, tmp_path: Path) -> None:
    place = stable_diffusion(tmp_path / "sd")
    weights = place / "unet" / "diffusion_pytorch_model.safetensors"
    weights.rename(weights.with_suffix(".bin"))
    with pytest.raises(UserError, match="got only a pickle in 'unet', which may run code"):
        painter(place)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("nowhere", "expected diffusers:org/name@revision or a folder that is there"),
        ("{models}", "expected a diffusers model with model_index.json"),
        ("{models}/pixels", "expected a model that paints from words"),
    ],
)
def test_a_place_without_a_model_is_said(models: Path, place: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        painter(Path(place.format(models=models)))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_scheduler_is_offered_its_neighbours(models: Path) -> None:
    with pytest.raises(UserError, match="did you mean EulerDiscreteScheduler"):
        painter(models / "sd", scheduler="EulerDiscreteSheduler")


def test_a_damaged_file_of_weights_is_said(tmp_path: Path) -> None:
    place = stable_diffusion(tmp_path / "sd")
    (place / "unet" / "diffusion_pytorch_model.safetensors").write_bytes(b"nothing")
    with pytest.raises(UserError, match="but it cannot be loaded"):
        painter(place)


def test_a_damaged_text_encoder_is_said(tmp_path: Path) -> None:
    place = stable_diffusion(tmp_path / "sd")
    (place / "text_encoder" / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(UserError, match="but it cannot be loaded"):
        painter(place)


def test_the_time_of_a_partly_painted_background_is_known_before(models: Path) -> None:
    painter(models / "inpaint", "backgrounds", device="auto", steps=10, strength=0.2).check_time(
        PaintRequest("a beach", "", 0, scene(0)), 2
    )


@pytest.mark.parametrize(
    ("network", "scheduler", "said"),
    [
        ({}, {"prediction_type": "v_prediction"}, "one that predicts v_prediction"),
        ({"num_class_embeds": 5}, {}, "one that must be told a class"),
        ({"in_channels": 1, "out_channels": 1}, {}, "one of 1 colours"),
    ],
)
def test_a_pixel_model_of_another_kind_is_refused(
    tmp_path: Path, network: dict[str, Any], scheduler: dict[str, Any], said: str
) -> None:
    place = pixel_model(tmp_path / "pixels", network, scheduler)
    with pytest.raises(UserError, match=said):
        painter(place, "backgrounds")


def test_a_scheduler_of_another_kind_of_model_is_said(models: Path) -> None:
    found = painter(models / "sd", scheduler="FlowMatchEulerDiscreteScheduler")
    with pytest.raises(UserError, match="expected a scheduler that works with StableDiffusionPipeline"):
        found.paint(WISHES[:1])


@pytest.mark.parametrize("device", ["banana", "meta"])
def test_a_device_that_torch_cannot_use_is_said(models: Path, device: str) -> None:
    with pytest.raises(UserError, match=f"got '{device}', which torch cannot use here"):
        painter(models / "pixels", "backgrounds", device=device)


@contextmanager
def hub(replies: dict[str, tuple[int, dict[str, str], object]]) -> Iterator[str]:
    """A hub that knows only these models."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = "/".join(self.path.split("/")[3:5])
            status, headers, body = replies.get(name, (404, {"X-Error-Code": "RepoNotFound"}, {}))
            data = json.dumps(body).encode()
            self.send_response(status)
            for key, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("org/nothing", "there is none of that name, or it is private"),
        ("org/gated", "is gated: accept its licence on its page"),
        ("org/old@v9", "expected a revision of 'org/old', got 'v9'"),
        ("org/pickled", "got only a pickle in 'unet'"),
        ("org/other", "expected a diffusers model with model_index.json"),
    ],
)
def test_what_the_hub_refuses_is_one_line(name: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    library("diffusers")
    hugging_face = library("huggingface_hub")
    files = [
        {"rfilename": name} for name in ("model_index.json", "unet/config.json", "unet/diffusion_pytorch_model.bin")
    ]
    replies: dict[str, tuple[int, dict[str, str], object]] = {
        "org/gated": (403, {"X-Error-Code": "GatedRepo"}, {}),
        "org/old": (404, {"X-Error-Code": "RevisionNotFound"}, {}),
        "org/pickled": (200, {}, {"id": "org/pickled", "sha": "0" * 40, "siblings": files}),
        "org/other": (200, {}, {"id": "org/other", "sha": "0" * 40, "siblings": [{"rfilename": "README.md"}]}),
    }
    with hub(replies) as address:
        monkeypatch.setattr(hugging_face.constants, "ENDPOINT", address)
        monkeypatch.setattr(hugging_face.constants, "HF_HUB_OFFLINE", False)  # another test may have imported it so
        with pytest.raises(UserError) as error:
            painter(Path(name))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_without_the_hub_a_model_that_was_never_fetched_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library("diffusers")
    hugging_face = library("huggingface_hub")
    monkeypatch.setattr(hugging_face.constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(hugging_face.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(UserError, match="the hub cannot be reached"):
        painter(Path("org/name"))
