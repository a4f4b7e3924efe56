"""What a model given as code is known by: its parameters and the files it names, else its answers on fixed pictures.

A digest of the file that defines a model does not cover its weights, and a Python object may have no file at all. So
all state that the object shows is hashed. Where it shows no weights, or holds parts that nobody can look into (a
library's own objects in C), its answers to a few pictures are hashed too.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.models.preprocessing import make_trial_pictures
from counterfoil.plugins import read_optional, source_digest
from counterfoil.store.files import hash_file

_DECIMALS = 4  # of scores that are compared: the last bits differ between machines
_DEPTH = 12  # of objects within objects
_MOST_VALUES = 200_000
_LONGEST_PATH = 4096
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # in the text of an object: another in every process
Answer = Callable[[Sequence[NDArray[np.uint8]]], Any]


def hash_answers(answers: Any) -> str:
    """Hash of scores, (n, columns), rounded, or of labels."""
    values = np.asarray(answers)
    if values.dtype.kind == "f":
        values = np.round(values.astype(np.float64), _DECIMALS) + 0.0  # no negative zero
    return hashlib.sha256(f"{values.shape} {values.tolist()!r}".encode()).hexdigest()


def ask_trial_pictures(answer: Answer) -> Any:
    """What a model answers to the fixed pictures."""
    return answer(list(make_trial_pictures()))


def hash_model_object(model: Any, module: types.ModuleType, answer: Answer) -> str:
    """Hash of a model's code, of its state and the files it names, and of its answers where the state shows too little.

    `answer` is asked only then.
    """
    state = ObjectState()
    state.add(model)
    modules = [module, *_list_own_imports(module)]
    for own in modules:
        state.add_module(own)
    about = [*map(source_digest, modules), state.digest]
    if state.is_opaque or not state.weights:
        about.append(hash_answers(ask_trial_pictures(answer)))
    return hashlib.sha256(" ".join(about).encode()).hexdigest()


def hash_given_object(model: Any, answers: Any) -> str:
    """Hash of an object's answers to the fixed pictures, and of its state where that shows weights."""
    state = ObjectState()
    state.add(model)
    about = [hash_answers(answers), *([state.digest] if state.weights else [])]
    return hashlib.sha256(" ".join(about).encode()).hexdigest()


def _list_own_imports(module: types.ModuleType) -> list[types.ModuleType]:
    """The modules in the same folder that a module takes names from."""
    folder = Path(read_optional(module, "__file__", None) or "/").parent
    names = {
        read_optional(value, "__name__" if isinstance(value, types.ModuleType) else "__module__", None)
        for value in vars(module).values()
    }
    known = [sys.modules[name] for name in names if isinstance(name, str) and name in sys.modules]
    own = [other for other in known if other is not module and Path(vars(other).get("__file__") or "").parent == folder]
    return sorted(own, key=lambda other: other.__name__)


class ObjectState:
    """A hash over all that an object holds, as far as Python can see it."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._seen: dict[int, Any] = {}  # the objects themselves, so that no id is used twice
        self._values = 0
        self.weights = 0  # arrays, tensors and files that were hashed
        self.is_opaque = False  # whether something could not be looked into

    @property
    def digest(self) -> str:
        """The hash of everything added so far."""
        return self._hash.hexdigest()

    def add(self, value: Any, depth: int = 0) -> None:
        """Add a value and what it holds."""
        self._values += 1
        if depth > _DEPTH or self._values > _MOST_VALUES:
            self.is_opaque = True
        elif value is None or isinstance(value, bool | int | float | complex | bytes | np.generic):
            self._note(repr(value))
        elif isinstance(value, str | os.PathLike):
            self._add_text(value)
        elif id(value) in self._seen:
            self._note("again")
        else:
            self._seen[id(value)] = value
            self._add_object(value, depth + 1)

    def add_module(self, module: types.ModuleType) -> None:
        """Add the globals of a module, what its classes hold for all their objects, and defaults of its functions."""
        for name, value in sorted(vars(module).items()):
            if name.startswith("__") or isinstance(value, types.ModuleType):
                continue
            if not isinstance(value, type | types.FunctionType):
                self.add(value)
            elif value.__module__ == module.__name__:
                self._add_shared(value)

    def _add_shared(self, value: type | types.FunctionType) -> None:
        """What a class or function holds beside its code, which the hash of its file covers."""
        if isinstance(value, types.FunctionType):
            self.add([value.__defaults__, value.__kwdefaults__, *map(_read_cell, value.__closure__ or ())])
            for text in _list_texts(value.__code__):  # one may be the name of a file with weights
                self._add_text(text)
            return
        for name, member in sorted(vars(value).items()):
            if isinstance(member, types.FunctionType):
                self._add_shared(member)
            elif not name.startswith(("__", "_abc_")) and not hasattr(type(member), "__get__"):
                self.add(member)

    def _note(self, text: str) -> None:
        self._hash.update(text.encode("utf-8", "backslashreplace") + b"\n")

    def _add_text(self, value: str | os.PathLike[Any]) -> None:
        """A text, and the file of that name; a folder of that name could hold anything."""
        text = os.fspath(value)
        self._note(repr(text))
        if not text or len(text) > _LONGEST_PATH:
            return
        try:
            path = Path(os.fsdecode(text))
            if path.is_file():
                self._note(hash_file(path))
                self.weights += 1
            elif os.sep in os.fsdecode(text) and path.is_dir():
                self.is_opaque = True
        except (OSError, ValueError):  # no name that a file can have
            return

    def _add_object(self, value: Any, depth: int) -> None:
        kind = type(value)
        self._note(f"{kind.__module__}.{kind.__qualname__}")
        if isinstance(value, np.ndarray) and value.dtype != object:
            self._add_array(value)
        elif callable(read_optional(value, "state_dict", None)) and not isinstance(value, type):
            self._note(_ADDRESS.sub("", repr(value)))  # of a torch module: its architecture
            self.add(dict(value.state_dict()), depth)
        elif hasattr(value, "detach") and hasattr(value, "cpu"):
            self._add_tensor(value)
        elif isinstance(value, Mapping):
            for key in sorted(value, key=repr):
                self.add(key, depth)
                self.add(value[key], depth)
        elif isinstance(value, list | tuple | np.ndarray):
            for item in value:
                self.add(item, depth)
        elif isinstance(value, set | frozenset):
            self.add(sorted(map(repr, value)), depth)
        else:
            self._add_code_or_instance(value, depth)

    def _add_code_or_instance(self, value: Any, depth: int) -> None:
        if isinstance(value, types.FunctionType):
            self._note(value.__code__.co_code.hex())
            self.add(value.__defaults__, depth)
            for cell in value.__closure__ or ():
                self.add(_read_cell(cell), depth)
        elif isinstance(value, types.MethodType):
            self.add(value.__self__, depth)
            self.add(value.__func__, depth)
        elif isinstance(value, functools.partial):
            self.add([value.func, value.args, value.keywords], depth)
        elif isinstance(value, type | types.ModuleType):
            self._note(value.__name__)
        elif isinstance(value, types.GenericAlias) or type(value).__module__ == "typing":
            self._note("a type")  # it passes every attribute on to the type it is made of
        else:
            self._add_instance(value, depth)

    def _add_instance(self, value: Any, depth: int) -> None:
        """The attributes of an object; locks, files and other things of the standard library hold no weights."""
        package = type(value).__module__.partition(".")[0]
        names = {name for kind in type(value).__mro__ for name in _list_slots(kind)}
        attributes = {**{name: getattr(value, name) for name in names if hasattr(value, name)}, **_read_vars(value)}
        if hasattr(value, "__array__"):
            self._add_array(np.asarray(value))
        elif attributes:
            self.add(attributes, depth)
        elif package not in sys.stdlib_module_names and not names and not hasattr(value, "__dict__"):
            self.is_opaque = True  # of a type made outside Python, whose content is hidden

    def _add_array(self, array: NDArray[Any]) -> None:
        self._note(f"{array.dtype} {array.shape}")
        self._hash.update(np.ascontiguousarray(array).tobytes())
        self.weights += 1

    def _add_tensor(self, tensor: Any) -> None:
        """The bytes of a torch tensor, of any type; other libraries' tensors by way of NumPy."""
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(tensor, torch.Tensor):
            return self._add_array(np.asarray(tensor))
        self._note(f"{tensor.dtype} {tuple(tensor.shape)}")
        try:
            flat = tensor.detach().cpu().contiguous().reshape(-1)
            self._hash.update(flat.view(torch.uint8).numpy().tobytes())
            self.weights += 1
        except RuntimeError:  # a sparse or quantised tensor
            self.is_opaque = True
        return None


def _list_texts(code: types.CodeType) -> list[str]:
    """The texts that stand in a function, and in the functions and classes within it."""
    inner = [
        text for constant in code.co_consts if isinstance(constant, types.CodeType) for text in _list_texts(constant)
    ]
    return [*(constant for constant in code.co_consts if isinstance(constant, str)), *inner]


def _read_cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that has no value yet
        return None


def _list_slots(kind: type) -> Sequence[str]:
    slots = vars(kind).get("__slots__", ())
    return [slots] if isinstance(slots, str) else list(slots)


def _read_vars(value: Any) -> dict[str, Any]:
    return dict(vars(value)) if hasattr(value, "__dict__") else {}
