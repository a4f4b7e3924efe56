"""Diffusers pipeline loaded and set up.

Photo prepared for inpainting and brought back; diffusers model in a folder or hub commit.
"""

from __future__ import annotations

import difflib
import hashlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from safetensors import SafetensorError

from counterfoil.errors import UserError
from counterfoil.painters.painter_protocol import PaintOptions, PaintRequest, Paints
from counterfoil.plugins import import_extra

_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_PIPELINE, _NETWORK = "model_index.json", "config.json"
# What libraries raise for a model that they cannot load; some pass on what safetensors says of a damaged file.
_FAULTS = (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError, SafetensorError)


@dataclass(frozen=True)
class DiffusersRepository:
    """A model's files, at one state."""

    place: str  # folder, or org/name
    commit: str | None  # of the hub; None for a folder and where the hub could not be asked
    files: tuple[str, ...]

    @property
    def options(self) -> dict[str, Any]:
        """What every from_pretrained is told."""
        return {"use_safetensors": True, **({"revision": self.commit} if self.commit else {})}

    @property
    def revision(self) -> str:
        """What stands in the manifest: the commit, or the hash of a folder's weights."""
        return self.commit or repository_digest(Path(self.place))

    @property
    def is_pipeline(self) -> bool:
        """Whether it holds a whole pipeline; else it is a single network."""
        return _PIPELINE in self.files

    @property
    def reads_words(self) -> bool:
        """Whether it has a tokenizer; a model without one is unconditional."""
        return any(file.startswith("tokenizer") for file in self.files)


def diffusers_repository(address: str, place: str) -> DiffusersRepository:
    """The model that an address means, looked at before anything large is fetched."""
    whole = Path(place).expanduser().is_dir()  # a folder's own name may hold an @
    name, _, revision = (place, "", "") if whole else place.partition("@")
    folder = Path(name).expanduser()
    found = _folder(folder) if folder.is_dir() else _on_hub(address, name, revision or "main")
    if not found.is_pipeline and _NETWORK not in found.files:
        raise UserError(f"expected a diffusers model with {_PIPELINE} at '{address}', found none")
    _refuse_pickles(address, found.files)
    return found


def repository_digest(folder: Path) -> str:
    """Hash over the weights and configurations of a folder."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in (".safetensors", ".json")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        with path.open("rb") as file:
            while block := file.read(1 << 22):
                digest.update(block)
    return digest.hexdigest()


@contextmanager
def loading(address: str) -> Iterator[None]:
    """Turn a library's failure to load a model into one line."""
    try:
        yield
    except _FAULTS as error:
        line = " ".join(str(error).split())[:240]
        raise UserError(f"expected a diffusers model at '{address}', but it cannot be loaded: {line}") from error


def _folder(folder: Path) -> DiffusersRepository:
    files = (path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file())
    return DiffusersRepository(str(folder), None, tuple(files))


def _on_hub(address: str, name: str, revision: str) -> DiffusersRepository:
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise UserError(f"expected diffusers:org/name@revision or a folder that is there, got '{address}'")
    hub, errors = import_extra("huggingface_hub", "diffusion"), import_extra("huggingface_hub.errors", "diffusion")
    try:
        info = hub.HfApi().model_info(name, revision=revision)
    except errors.GatedRepoError as error:
        raise UserError(
            f"'{address}' is gated: accept its licence on its page, then log in with `hf auth login`, and run again"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise UserError(f"expected a revision of '{name}', got '{revision}', which it does not have") from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise UserError(
            f"expected a model of the hub, got '{address}': there is none of that name, or it is private;"
            " check the spelling, or log in with `hf auth login`"
        ) from error
    except (OSError, errors.HfHubHTTPError, errors.HTTPError) as error:
        return _in_cache(address, name, revision, " ".join(str(error).split())[:160])
    return DiffusersRepository(name, info.sha, tuple(file.rfilename for file in info.siblings or ()))


def _in_cache(address: str, name: str, revision: str, fault: str) -> DiffusersRepository:
    """Without the hub, what was fetched before still serves; its folder is named after the commit."""
    hub, errors = import_extra("huggingface_hub", "diffusion"), import_extra("huggingface_hub.errors", "diffusion")
    try:
        folder = Path(hub.snapshot_download(name, revision=revision, local_files_only=True))
    except (OSError, errors.LocalEntryNotFoundError) as error:
        raise UserError(
            f"expected '{address}' on the hub or in its cache; the hub cannot be reached ({fault});"
            " fetch it where there is a network, and give its folder as diffusers:FOLDER"
        ) from error
    return DiffusersRepository(str(folder), folder.name, _folder(folder).files)


def _refuse_pickles(address: str, files: Sequence[str]) -> None:
    """A pickle runs what its author likes: a part that has no safetensors is not loaded."""
    folders: dict[str, set[str]] = {}
    for file in map(PurePosixPath, files):
        folders.setdefault(str(file.parent), set()).add(file.suffix)
    whole = _PIPELINE in files
    for folder, kinds in sorted(folders.items()):
        part = folder != "." if whole else folder == "."
        if part and kinds & set(_PICKLES) and ".safetensors" not in kinds:
            raise UserError(
                f"expected weights as safetensors at '{address}', got only a pickle in '{folder}', which may run code;"
                " choose a revision with safetensors, or convert it where you trust it"
            )


_AUTO = {"pictures": "AutoPipelineForText2Image", "backgrounds": "AutoPipelineForInpainting"}
_DTYPES = {"f32": "float32", "bf16": "bfloat16", "fp16": "float16"}


@dataclass(frozen=True)
class LoadedPipeline:
    """A pipeline on its device, with what it was asked to be."""

    address: str
    paints: Paints
    pipeline: Any
    revision: str
    device: str
    options: PaintOptions

    @property
    def steps(self) -> int:
        """Denoising steps of a picture."""
        return int(self.options.steps or self.default("num_inference_steps"))

    @property
    def settings(self) -> Mapping[str, object]:
        """Everything that changes a picture."""
        return {
            "painter": self.address, "revision": self.revision, "pipeline": type(self.pipeline).__name__,
            "scheduler": type(self.pipeline.scheduler).__name__, "steps": self.steps,
            "guidance": self.options.guidance if self.options.guidance is not None else self.default("guidance_scale"),
            "precision": self.precision, **({"size": self.options.size} if self.options.size else {}),
            **({"strength": self.options.strength or self.default("strength")} if self.takes("strength") else {}),
        }  # fmt: skip

    @property
    def precision(self) -> str:
        """The precision that numbers are held in."""
        return precision_on(self.device, self.options)

    @property
    def environment(self) -> Mapping[str, str]:
        """Device and versions."""
        return environment_on(self.device)

    def default(self, name: str) -> Any:
        """What the pipeline does where nobody says."""
        parameter = self._parameters.get(name)
        return None if parameter is None else parameter.default

    def takes(self, name: str) -> bool:
        """Whether the pipeline knows an argument."""
        return name in self._parameters

    @property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(type(self.pipeline).__call__).parameters


def load_pipeline(address: str, found: DiffusersRepository, paints: Paints, options: PaintOptions) -> LoadedPipeline:
    """The pipeline of a repository that was looked at."""
    diffusers = import_extra("diffusers", "diffusion")
    device = device_for(options)
    with loading(address):
        dtype = dtype_on(device, options)
        pipeline = getattr(diffusers, _AUTO[paints]).from_pretrained(found.place, dtype=dtype, **found.options)
        pipeline = pipeline.to(device) if pipeline.dtype == dtype else pipeline.to(device, dtype)  # older versions
    pipeline.set_progress_bar_config(disable=True)
    if options.scheduler is not None:
        pipeline.scheduler = _scheduler(diffusers, options.scheduler, pipeline.scheduler)
    return LoadedPipeline(address, paints, pipeline, found.revision, device, options)


def device_for(options: PaintOptions) -> str:
    """The device asked for; auto takes a GPU where torch sees one."""
    torch = import_extra("torch", "diffusion")
    if options.device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(f"expected a GPU for --device {options.device}, but torch sees none; use --device cpu")
    try:
        torch.zeros(1, device=options.device).item()
        return str(torch.device(options.device))
    except (RuntimeError, NotImplementedError, AssertionError) as error:
        raise UserError(
            f"expected --device auto, cpu, cuda or cuda:NUMBER, got '{options.device}', which torch cannot use here"
        ) from error


def precision_on(device: str, options: PaintOptions) -> str:
    """bf16 on a GPU and f32 elsewhere, unless told otherwise."""
    if options.precision != "auto":
        return options.precision
    return "bf16" if device.startswith("cuda") else "f32"


def dtype_on(device: str, options: PaintOptions) -> Any:
    """The same, as torch names it."""
    return getattr(import_extra("torch", "diffusion"), _DTYPES[precision_on(device, options)])


def environment_on(device: str) -> dict[str, str]:
    """What pictures are made with."""
    torch = import_extra("torch", "diffusion")
    named = torch.cuda.get_device_name(device) if device.startswith("cuda") else device
    versions = {
        name: str(import_extra(name, "diffusion").__version__) for name in ("torch", "diffusers", "transformers")
    }
    return {"device": named, **versions}


def _scheduler(diffusers: Any, name: str, present: Any) -> Any:
    known = [other for other in dir(diffusers) if other.endswith("Scheduler")]
    if name not in known:
        close = difflib.get_close_matches(name, known, n=2, cutoff=0.3)
        raise UserError(
            f"expected a scheduler of diffusers, got '{name}'; did you mean {' or '.join(close) or known[0]}?"
        )
    with loading(name):
        return getattr(diffusers, name).from_config(present.config)


_STEP = 8  # pixels that one cell of a latent picture stands for


@dataclass(frozen=True)
class InpaintingArea:
    """A wish at the model's size: floats in 0..1, the mask 1 where is to be painted."""

    wish: PaintRequest
    photo: NDArray[np.float32]  # (height, width, 3)
    mask: NDArray[np.float32]  # (height, width)
    back: tuple[int, int]  # (height, width) of the photo

    @property
    def size(self) -> tuple[int, int]:
        """Height and width that the model sees."""
        return self.mask.shape[0], self.mask.shape[1]

    def fitted_back(self, painted: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The painted picture at the photo's size."""
        return _resized(painted, self.back[::-1])


def inpainting_area(wish: PaintRequest, longer: int, multiple: int = _STEP) -> InpaintingArea:
    """The photo with its longer side at the model's, both sides multiples of what it can halve."""
    if wish.around is None:
        raise ValueError("a background is painted around a picture, and this wish has none")
    image, alpha = wish.around
    height, width = alpha.shape
    scale = longer / max(height, width)
    size = (_stepped(width * scale, multiple), _stepped(height * scale, multiple))
    photo = np.divide(_resized(image, size), 255, dtype=np.float32)
    mask = np.asarray(_resized(alpha, size) < 128, np.float32)
    return InpaintingArea(wish, photo, mask, (height, width))


def by_size(canvases: Sequence[InpaintingArea]) -> list[list[int]]:
    """The places of canvases that may be painted together."""
    groups: dict[tuple[int, int], list[int]] = {}
    for place, canvas in enumerate(canvases):
        groups.setdefault(canvas.size, []).append(place)
    return list(groups.values())


def _resized(plane: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """At another (width, height), antialiased where it shrinks."""
    return np.asarray(Image.fromarray(plane).resize(size, Image.Resampling.BICUBIC), np.uint8)


def _stepped(pixels: float, multiple: int) -> int:
    return max(multiple, round(pixels / multiple) * multiple)
