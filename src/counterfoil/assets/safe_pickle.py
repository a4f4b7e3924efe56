"""Pickles read as data: no code of the file is executed.

The standard library's unpickler executes what a file asks for, and a restricted one is only as safe as every class
that it allows. Here `pickletools.genops` splits the bytes into opcodes without running them, and the machine
below supports only the opcodes of torch's weights files. A function or class stays a name (`Reference`)
and a call of it a record (`Call`); every other opcode and every unexpected name is refused.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from counterfoil.errors import UserError


@dataclass(frozen=True)
class Reference:
    """The name of a class or function, "module name"; it is never imported."""

    name: str


@dataclass
class Call:
    """The record of a call that is not executed, with the entries meant for its result."""

    function: str
    arguments: tuple[Any, ...]
    items: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Persistent:
    """The id of an object that is stored elsewhere in the file."""

    identity: Any


def read_pickle(stream: io.BytesIO, allowed: Collection[str]) -> Any:
    """Read one pickle from the stream; only the names in `allowed` may occur as references."""
    machine = _PickleMachine(allowed)
    try:
        for opcode, argument, _ in pickletools.genops(stream):
            machine.step(opcode.name, argument)
        return machine.pop(object)
    except (ValueError, IndexError, KeyError) as error:  # a damaged number, an empty stack, a missing memo
        raise UserError(f"expected a whole weights file, got a damaged one (pickle: {error})") from error


class _PickleMachine:
    """The stack, the marks on it and the memo."""

    def __init__(self, allowed: Collection[str]) -> None:
        self._allowed = allowed
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def step(self, name: str, argument: Any) -> None:
        """Execute one opcode."""
        match name:
            case "PROTO" | "STOP":
                pass
            case "MARK":
                self._marks.append(len(self._stack))
            case "BINPUT" | "LONG_BINPUT":
                self._memo[argument] = self._stack[-1]
            case "SETITEM":
                self._fill(self._pop_last(2))
            case "SETITEMS":
                self._fill(self._pop_to_mark())
            case "APPEND":
                self._extend(self._pop_last(1))
            case "APPENDS":
                self._extend(self._pop_to_mark())
            case "BUILD":  # the state of an object; no weight depends on it
                self.pop(object)
            case _:
                self._stack.append(self._value(name, argument))

    def _value(self, name: str, argument: Any) -> Any:
        """The value that an opcode puts on the stack."""
        match name:
            case "BINUNICODE" | "BININT" | "BININT1" | "BININT2" | "LONG1":
                return argument
            case "NONE":
                return None
            case "NEWTRUE" | "NEWFALSE":
                return name == "NEWTRUE"
            case "EMPTY_LIST":
                return []
            case "EMPTY_DICT":
                return {}
            case "EMPTY_TUPLE":
                return ()
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                return tuple(self._pop_last(int(name[-1])))
            case "TUPLE":
                return tuple(self._pop_to_mark())
            case "BINGET" | "LONG_BINGET":
                return self._memo[argument]
            case "GLOBAL":
                return self._reference(argument)
            case "REDUCE":
                arguments = self.pop(tuple)
                return Call(self.pop(Reference).name, arguments)
            case "BINPERSID":
                return Persistent(self.pop(object))
        raise UserError(f"expected a weights file, got a pickle with the opcode {name}, which no weights file needs")

    def pop(self, kind: type) -> Any:
        """Take the top of the stack; raises where it is of another type."""
        return _checked(self._stack.pop(), kind)

    def _pop_last(self, count: int) -> list[Any]:
        return [self._stack.pop() for _ in range(count)][::-1]

    def _pop_to_mark(self) -> list[Any]:
        mark = self._marks.pop()
        items = self._stack[mark:]
        del self._stack[mark:]
        return items

    def _extend(self, items: list[Any]) -> None:
        _checked(self._stack[-1], list).extend(items)

    def _fill(self, flat: list[Any]) -> None:
        """Add alternating keys and values to the mapping on top of the stack."""
        target = self._stack[-1]
        entries = target.items if isinstance(target, Call) else _checked(target, dict)
        for key, value in zip(flat[::2], flat[1::2], strict=True):
            entries[_checked(key, str)] = value  # strings only: hashing nested tuples can take exponential time

    def _reference(self, argument: str) -> Reference:
        if argument not in self._allowed:
            raise UserError(f"expected a weights file, got a pickle that asks for {argument!r}; do not use this file")
        return Reference(argument)


def _checked(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"a {type(value).__name__} where a {kind.__name__} belongs")
    return value
