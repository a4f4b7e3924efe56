"""Optional packages, entry points and user code named module:factory, imported on first use.

Entry points of the groups `counterfoil.models`, `counterfoil.sources` and `counterfoil.painters` are loaders, each
under the scheme of its addresses: `scheme:rest`. Errors in users' code are reported in one line.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from counterfoil.errors import UserError, how_to_install


def import_extra(module: str, extra: str) -> Any:
    """The module; raises `UserError` with the extra to install where it is missing."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise UserError(
            f"expected the package '{error.name}', which is not installed; run: {how_to_install(extra)}"
        ) from error
    except (ImportError, OSError, RuntimeError) as error:
        line = " ".join(str(error).split())[:160]
        raise UserError(
            f"expected the package '{module}' to load, but it does not: {line}; torch and what is built for it must be"
            f" of matching versions: {how_to_install(extra, '--upgrade ')}"
        ) from error


def load_factory(address: str, place: str) -> tuple[Any, ModuleType]:
    """The result of the factory at `place`, and its module."""
    module_name, _, name = place.partition(":")
    if not module_name or not name:
        raise UserError(f"expected python:module:factory, got '{address}'")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does
    with reporting_errors(f"expected '{address}' to name a factory, but it fails"):
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
def reporting_errors(what: str, kept: str = "", allowed: type[Exception] = UserError) -> Iterator[None]:
    """Turn any error of users' code into a `UserError` that says where."""
    try:
        yield
    except (UserError, allowed):
        raise
    except (Exception, SystemExit) as error:  # users' code may raise anything, and may call sys.exit
        place = traceback.extract_tb(error.__traceback__)[-1]
        message = " ".join(f"{type(error).__name__}: {error}".split())[:240]
        raise UserError(f"{what}: {message} ({Path(place.filename).name}, line {place.lineno}){kept}") from error


@dataclass(frozen=True)
class Plugin:
    """A loader of another package, registered under a scheme."""

    load: Callable[..., Any]
    module: ModuleType

    @property
    def about(self) -> str:
        """The first line of its documentation."""
        return (self.load.__doc__ or f"from {self.module.__name__}").strip().split("\n")[0]


def _list_entries(group: str) -> tuple[EntryPoint, ...]:
    """What installed packages register; looked up again where a folder of packages changed."""
    return _read_entries(group, tuple((place, _time_of(place)) for place in sys.path))


@lru_cache(maxsize=16)
def _read_entries(group: str, places: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    """Every distribution's list is read: a twentieth of a second where 250 packages are installed."""
    return tuple(entry_points(group=group))


def _time_of(place: str) -> int:
    """When something was added to a folder, or removed; 0 where there is none."""
    try:
        return os.stat(place or ".").st_mtime_ns
    except OSError:
        return 0


def list_schemes(group: str) -> set[str]:
    """The schemes that installed packages registered; none of the packages is imported."""
    return {entry.name for entry in _list_entries(group)}


def find_plugin(group: str, scheme: str) -> Plugin | None:
    """The loader that an installed package registered under this scheme; None where there is none."""
    registered = [entry for entry in _list_entries(group) if entry.name == scheme]
    if len(registered) > 1:
        values = " and ".join(sorted(entry.value for entry in registered))
        raise UserError(f"two packages register '{scheme}:' in {group}, {values}: uninstall or rename one")
    return _plugin(registered[0]) if registered else None


def list_plugins(group: str) -> dict[str, Plugin]:
    """Every loader that installed packages registered, by scheme."""
    return {
        scheme: plugin for scheme in sorted(list_schemes(group)) if (plugin := find_plugin(group, scheme)) is not None
    }


def _plugin(entry: EntryPoint) -> Plugin:
    with reporting_errors(f"expected the entry point {entry.name} = {entry.value} to load, but it fails"):
        loader = entry.load()
    if not callable(loader):
        raise UserError(f"entry point {entry.name} = {entry.value}: expected a function, got {loader!r}")
    return Plugin(loader, sys.modules[entry.module])


def read_optional(thing: object, name: str, default: Any) -> Any:
    """An attribute of a user's object, or the default where it is missing."""
    return getattr(thing, name, default)


def source_digest(module: ModuleType) -> str:
    """The hash of a module's file, for an object without a digest; it does not cover weights."""
    file = Path(vars(module).get("__file__") or "")
    return hashlib.sha256(file.read_bytes() if file.is_file() else module.__name__.encode()).hexdigest()


_WEB_PACKAGES = ("fastapi", "uvicorn", "sqlalchemy", "alembic", "itsdangerous")


def check_web_extra() -> None:
    """Raises `UserError` where a package of the web page or its database is missing."""
    for module in _WEB_PACKAGES:
        import_extra(module, "web")
