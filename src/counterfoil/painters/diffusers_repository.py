"""A diffusers model in a folder or on the hub, checked before it is fetched, and its device."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from safetensors import SafetensorError

from counterfoil.errors import UserError
from counterfoil.painters.painter_protocol import PaintOptions
from counterfoil.plugins import import_extra

_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_PIPELINE, _NETWORK = "model_index.json", "config.json"
# What libraries raise for a model that they cannot load; some pass on errors of safetensors.
_FAULTS = (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError, SafetensorError)
_DTYPES = {"f32": "float32", "bf16": "bfloat16", "fp16": "float16"}


@dataclass(frozen=True)
class DiffusersRepository:
    """A model's files at one revision."""

    place: str  # folder, or org/name
    commit: str | None  # of the hub; None for a folder and where the hub could not be asked
    files: tuple[str, ...]

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of every from_pretrained."""
        return {"use_safetensors": True, **({"revision": self.commit} if self.commit else {})}

    @property
    def revision(self) -> str:
        """The commit, or the hash of a folder's weights; part of the manifest."""
        return self.commit or hash_repository(Path(self.place))

    @property
    def is_pipeline(self) -> bool:
        """Whether it holds a whole pipeline; else it is a single network."""
        return _PIPELINE in self.files

    @property
    def reads_words(self) -> bool:
        """Whether it has a tokenizer; without one the model is unconditional."""
        return any(file.startswith("tokenizer") for file in self.files)


def find_repository(address: str, place: str) -> DiffusersRepository:
    """The model at an address, checked before large files are fetched; raises `UserError` where there is none."""
    whole = Path(place).expanduser().is_dir()  # a folder's name may contain an @
    name, _, revision = (place, "", "") if whole else place.partition("@")
    folder = Path(name).expanduser()
    repository = _list_folder(folder) if folder.is_dir() else _ask_hub(address, name, revision or "main")
    if not repository.is_pipeline and _NETWORK not in repository.files:
        raise UserError(f"expected a diffusers model with {_PIPELINE} at '{address}', found none")
    _refuse_pickles(address, repository.files)
    return repository


def hash_repository(folder: Path) -> str:
    """Hash over the weights and configurations of a folder."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in (".safetensors", ".json")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        with path.open("rb") as file:
            while block := file.read(1 << 22):
                digest.update(block)
    return digest.hexdigest()


@contextmanager
def report_load_errors(address: str) -> Iterator[None]:
    """Turn a library's failure to load a model into a `UserError` of one line."""
    try:
        yield
    except _FAULTS as error:
        line = " ".join(str(error).split())[:240]
        raise UserError(f"expected a diffusers model at '{address}', but it cannot be loaded: {line}") from error


def _list_folder(folder: Path) -> DiffusersRepository:
    files = (path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file())
    return DiffusersRepository(str(folder), None, tuple(files))


def _ask_hub(address: str, name: str, revision: str) -> DiffusersRepository:
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
        return _find_in_cache(address, name, revision, " ".join(str(error).split())[:160])
    return DiffusersRepository(name, info.sha, tuple(file.rfilename for file in info.siblings or ()))


def _find_in_cache(address: str, name: str, revision: str, fault: str) -> DiffusersRepository:
    """The model in the hub's cache, for use offline; its folder is named after the commit."""
    hub, errors = import_extra("huggingface_hub", "diffusion"), import_extra("huggingface_hub.errors", "diffusion")
    try:
        folder = Path(hub.snapshot_download(name, revision=revision, local_files_only=True))
    except (OSError, errors.LocalEntryNotFoundError) as error:
        raise UserError(
            f"expected '{address}' on the hub or in its cache; the hub cannot be reached ({fault});"
            " fetch it where there is a network, and give its folder as diffusers:FOLDER"
        ) from error
    return DiffusersRepository(str(folder), folder.name, _list_folder(folder).files)


def _refuse_pickles(address: str, files: Sequence[str]) -> None:
    """Raises `UserError` where weights exist only as pickles, which could run code."""
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


def choose_device(options: PaintOptions) -> str:
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


def choose_precision(device: str, options: PaintOptions) -> str:
    """bf16 on a GPU and f32 elsewhere, unless the options name one."""
    if options.precision != "auto":
        return options.precision
    return "bf16" if device.startswith("cuda") else "f32"


def choose_dtype(device: str, options: PaintOptions) -> Any:
    """The precision as torch's type."""
    return getattr(import_extra("torch", "diffusion"), _DTYPES[choose_precision(device, options)])


def describe_environment(device: str) -> dict[str, str]:
    """Device and versions that pictures are made with."""
    torch = import_extra("torch", "diffusion")
    named = torch.cuda.get_device_name(device) if device.startswith("cuda") else device
    versions = {
        name: str(import_extra(name, "diffusion").__version__) for name in ("torch", "diffusers", "transformers")
    }
    return {"device": named, **versions}
