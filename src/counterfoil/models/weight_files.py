"""Files of weights read without running code from them, and errors of hub downloads in one line."""

from __future__ import annotations

import difflib
import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from counterfoil.errors import UserError
from counterfoil.plugins import import_extra


@contextmanager
def report_hub_errors(address: str, advice: str) -> Iterator[None]:
    """Turn a library's failure to fetch or load weights into one line with advice."""
    try:
        yield
    except (OSError, RuntimeError, ValueError, KeyError, pickle.UnpicklingError) as error:
        line = " ".join(str(error).split())[:240]
        raise UserError(f"expected weights for '{address}', but they cannot be loaded: {line}; {advice}") from error


def suggest_addresses(name: str, known: Iterable[str], kind: str) -> str:
    """The addresses that were probably meant."""
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.3)
    return " or ".join(f"'{kind}:{match}'" for match in close) or f"one of `counterfoil list models`, {kind}:"


def is_file_path(place: str) -> bool:
    """Whether an address holds a file's path instead of a name."""
    return place.lower().endswith((".pth", ".pt", ".bin", ".ckpt", ".safetensors", ".tar")) or place.startswith(
        ("/", "./", "../", "~")
    )


_WRAPPERS = ("state_dict", "model_state_dict", "state_dict_ema", "model", "model_ema")  # where trainers put the weights


def check_file(path: Path, expected: str) -> None:
    """Refuse a file that holds no weights: a web page, a Git LFS pointer, an empty file."""
    if not path.is_file():
        raise UserError(f"expected {expected}, got '{path}': there is no such file")
    with path.open("rb") as file:
        head = file.read(512).lstrip().lower()
    if head.startswith((b"<!doctype html", b"<html", b"<?xml")):
        raise UserError(
            f"expected {expected}, got {path}: it is a web page, saved in place of the weights;"
            f" download it again (a log-in or an error page often answers with one)"
        )
    if head.startswith(b"version https://git-lfs"):
        raise UserError(
            f"expected {expected}, got {path}: it is a Git LFS pointer; run `git lfs pull` for the file itself"
        )
    if not head:
        raise UserError(f"expected {expected}, got {path}: it is empty")


def read_weights(path: Path) -> dict[str, Any]:
    """Tensors by name, from safetensors or from a torch file that holds nothing but tensors."""
    check_file(path, "a file of weights")
    return _read_safetensors(path) if _is_safetensors(path) else _unwrap_weights(_read_torch_file(path), path)


def _is_safetensors(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(9)
    return len(head) == 9 and head[8:9] == b"{"


def _read_safetensors(path: Path) -> dict[str, Any]:
    import_extra("torch", "torch")
    from safetensors.torch import load_file  # imports torch

    try:
        weights: dict[str, Any] = load_file(path)
    except SafetensorError as error:
        raise UserError(f"expected a whole safetensors file, got {path}: {error}; download it again") from error
    return weights


def _read_torch_file(path: Path) -> Any:
    torch = import_extra("torch", "torch")
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, EOFError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:160]
        raise UserError(
            f"expected weights alone, got {path}, which torch does not read without running code from it ({reason});"
            f" save the state_dict as safetensors"
        ) from error


def _unwrap_weights(content: Any, path: Path) -> dict[str, Any]:
    for wrapper in _WRAPPERS:
        if isinstance(content, dict) and isinstance(content.get(wrapper), dict):
            content = content[wrapper]
    if not isinstance(content, dict) or not all(hasattr(value, "shape") for value in content.values()):
        raise UserError(f"expected tensors by name in {path}, got {type(content).__name__} of something else")
    return {name.removeprefix("module."): value for name, value in content.items()}
