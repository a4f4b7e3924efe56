"""People's own code, named `module:factory`: imported from the working folder too, its faults told in one line."""

from __future__ import annotations

import hashlib
import importlib
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from counterfoil.errors import UserError


def made_by(address: str, place: str) -> tuple[Any, ModuleType]:
    """What the factory at `place` returns, and the module it stands in."""
    module_name, _, name = place.partition(":")
    if not module_name or not name:
        raise UserError(f"expected python:module:factory, got '{address}'")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does
    with told_of(f"expected '{address}' to name a factory, but it fails"):
        module, factory = _factory(address, module_name, name)
        return factory(), module


def _factory(address: str, module_name: str, name: str) -> tuple[ModuleType, Callable[[], Any]]:
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise UserError(f"expected an importable module in '{address}', but it cannot be imported: {error}") from error
    if not callable(factory := getattr(module, name, None)):
        raise UserError(f"expected a function '{name}' in module '{module_name}' for '{address}', found none")
    return module, factory


@contextmanager
def told_of(what: str, kept: str = "") -> Iterator[None]:
    """Turn whatever people's own code raises into a line that says where."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # the code is not ours: what it may raise is not known
        place = traceback.extract_tb(error.__traceback__)[-1]
        told = " ".join(f"{type(error).__name__}: {error}".split())[:240]
        raise UserError(f"{what}: {told} ({Path(place.filename).name}, line {place.lineno}){kept}") from error


def source_digest(module: ModuleType) -> str:
    """Stands for an object that names no digest of its own; its weights are then not covered."""
    file = Path(getattr(module, "__file__", None) or "")
    return hashlib.sha256(file.read_bytes() if file.is_file() else module.__name__.encode()).hexdigest()
