"""Edits written as plain functions: the image, the mask and a random generator in, the edited image out."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, cast, overload

import numpy as np

from counterfoil.edits.edit_protocol import Edit, Supplied
from counterfoil.edits.registry import register_edit
from counterfoil.edits.subject import Subject
from counterfoil.errors import Unusable, UserError, expect_kind
from counterfoil.models.model_identity import ObjectState
from counterfoil.plugins import reporting_errors
from counterfoil.types import Attribute, Picture

_GIVEN = 3  # image, mask, rng; further parameters are settings
_NAME = re.compile(r"[^a-z0-9]+")
_PLAIN = "random"  # the level of an edit without settings


class FunctionEdit(Edit):
    """An edit whose picture a user's function makes; `edit` derives one class for each function."""

    function: ClassVar[Callable[..., Any]]
    name: ClassVar[str]

    if TYPE_CHECKING:  # each derived dataclass has an `__init__` for its own settings

        def __init__(self, *values: Any, **settings: Any) -> None: ...

    @property
    def level(self) -> str:
        """The first setting; "random" where the function has none."""
        return super().level if dataclasses.fields(self) else _PLAIN  # type: ignore[arg-type]

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Call the function with copies, so that it may work in place."""
        settings = dataclasses.asdict(self)  # type: ignore[call-overload]
        mask = subject.mask.values
        with reporting_errors(f"the edit '{self.name}' failed", "; what is finished is kept", allowed=Unusable):
            made = type(self).function(subject.picture.image.copy(), mask.copy(), rng, **settings)
            if not isinstance(made, tuple):
                made = made, mask
            if len(made) != 2:
                raise UserError(f"expected the edit '{self.name}' to return (image, mask), got {len(made)} things")
            image, alpha = (np.asarray(part) for part in made)
        expected = subject.picture.image.shape
        if image.shape != expected or image.dtype != np.uint8 or alpha.shape != expected[:2]:
            raise UserError(
                f"expected the edit '{self.name}' to return an image of shape {expected} and type uint8, or that with"
                f" a mask of shape {expected[:2]}, got {image.shape} and {image.dtype}, mask {alpha.shape}"
            )
        if alpha.dtype.kind not in "bui":
            raise UserError(
                f"expected a mask of levels 0 to 255, or of true and false, from the edit '{self.name}', got"
                f" {alpha.dtype}"
            )
        return Picture(image, alpha.astype(np.uint8) * 255 if alpha.dtype == np.bool_ else alpha.astype(np.uint8))


@overload
def edit(
    function: Callable[..., Any], *, attribute: Attribute = "", name: str = "", words: str = ""
) -> type[FunctionEdit]: ...


@overload
def edit(
    function: None = None, *, attribute: Attribute = "", name: str = "", words: str = ""
) -> Callable[[Callable[..., Any]], type[FunctionEdit]]: ...


def edit(
    function: Callable[..., Any] | None = None, *, attribute: Attribute = "", name: str = "", words: str = ""
) -> type[FunctionEdit] | Callable[[Callable[..., Any]], type[FunctionEdit]]:
    """Make an edit of a function `(image, mask, rng) -> image`.

    The image is an RGB array of type uint8, the mask is 255 on the object, and all randomness comes from `rng`, a
    NumPy generator whose seed is made from the photo. Further parameters with defaults are settings of the edit. The
    function may return `(image, mask)` where it moves the object, and raise `cf.Unusable` for one photo.

    Args:
        function: The function; the decorator is used with or without arguments.
        attribute: What it changes, such as "background"; the function's name if not given.
        name: Its name in tables; the function's if not given.
        words: What is done, as the subject of "costs 12 points"; the function's name if not given.

    Returns:
        An edit class: give it, or an object of it with other settings, to `run`, `build` and `variants`.

    Raises:
        UserError: The function has other parameters, or the name is taken.

    Examples:
        >>> import numpy as np
        >>> @edit(attribute="weather")
        ... def snow(image, mask, rng, amount: float = 0.2):
        ...     image[rng.random(mask.shape) < amount] = 255
        ...     return image
        >>> snow(amount=0.5).level
        '0.5'
    """
    for what, text in (("attribute", attribute), ("name", name), ("words", words)):
        expect_kind(text, str, f"{what}= of an edit as a text")
    if function is None:
        return functools.partial(edit, attribute=attribute, name=name, words=words)
    settings = _read_settings(function)
    given = name or _to_name(function.__name__)
    namespace = {
        "__doc__": function.__doc__ or f"The function {function.__name__}.",
        "__module__": function.__module__,
        "__annotations__": {"attribute": ClassVar[str], **{key: kind for key, (kind, _) in settings.items()}},
        **{key: default for key, (_, default) in settings.items()},
        "attribute": attribute or given,
        "words": words,
        "name": given,
        "version": _hash_code(function),
        "function": staticmethod(function),
    }
    kind = cast(
        "type[FunctionEdit]", dataclasses.dataclass(frozen=True)(type(function.__name__, (FunctionEdit,), namespace))
    )
    register_edit(given, kind)
    return kind


def _to_name(text: str) -> str:
    """A function's name as edits are named: "add-snow" for "add_snow"."""
    name = _NAME.sub("-", text.lower()).strip("-")
    if not name or name == "lambda":
        raise UserError("expected a function with a name as an edit, got a lambda; write it with def")
    return name


def _read_settings(function: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    """Type and default of each parameter after image, mask and rng."""
    words = getattr(function, "__name__", type(function).__name__)
    if not inspect.isfunction(function):
        raise UserError(f"expected a function (image, mask, rng) -> image as an edit, got {words}")
    parameters = list(inspect.signature(function).parameters.values())
    if len(parameters) < _GIVEN or any(each.kind is each.VAR_KEYWORD for each in parameters):
        raise UserError(f"expected the edit '{words}' to take (image, mask, rng), got {inspect.signature(function)}")
    settings = {}
    for parameter in parameters[_GIVEN:]:
        if parameter.default is parameter.empty:
            raise UserError(f"expected a default for the setting '{parameter.name}' of the edit '{words}', got none")
        if not isinstance(parameter.default, bool | int | float | str | tuple | type(None)):
            raise UserError(
                f"expected a number, a text or a tuple as the default of the setting '{parameter.name}' of the edit"
                f" '{words}', got {type(parameter.default).__name__}"
            )
        settings[parameter.name] = type(parameter.default), parameter.default
    return settings


def renew_version(kind: type[FunctionEdit]) -> None:
    """Take the version anew: a variable or a helper that the function uses may have changed since it was written."""
    kind.version = _hash_code(kind.function)


def _hash_code(function: Callable[..., Any]) -> int:
    """A version from the source and the variables that it uses, so that pictures of changed code have other ids."""
    state = ObjectState()
    _add_code(function, state, set())
    return 2 + int(state.digest[:7], 16)


def _add_code(function: Callable[..., Any], state: ObjectState, seen: set[int]) -> None:
    """Add a function, the variables around it, and the functions of its module that it calls."""
    seen.add(id(function))
    try:
        state.add(inspect.getsource(function))
    except (OSError, TypeError):  # typed into a shell
        code = function.__code__
        state.add(repr((code.co_code.hex(), code.co_consts, code.co_names)))
    used = inspect.getclosurevars(function)
    for name, value in sorted({**used.globals, **used.nonlocals}.items()):
        if inspect.isfunction(value) and value.__module__ == function.__module__:
            if id(value) not in seen:
                _add_code(value, state, seen)
        elif not isinstance(value, types.ModuleType | types.FunctionType | type):
            state.add([name, value])
