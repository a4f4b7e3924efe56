"""Thrift's compact protocol, the little that Parquet's metadata needs.

A struct is a dict from field number to value. On the way out an `int` is an i32 and a `Long` an i64;
on the way in both are plain ints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12


class Long(int):
    """A number written as i64."""


Value: TypeAlias = "int | Long | bytes | Sequence[Value] | Mapping[int, Value]"
Struct: TypeAlias = Mapping[int, Value]


def varint(number: int) -> bytes:
    """Seven bits a byte, lowest first."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _type_of(value: Value) -> int:
    if isinstance(value, int):
        return _I64 if isinstance(value, Long) else _I32
    if isinstance(value, bytes):
        return _BINARY
    return _STRUCT if isinstance(value, Mapping) else _LIST


def _encode(value: Value) -> bytes:
    if isinstance(value, int):
        return varint(value << 1 if value >= 0 else (-value << 1) - 1)
    if isinstance(value, bytes):
        return varint(len(value)) + value
    if isinstance(value, Mapping):
        return encode_struct(value)
    kind = _type_of(value[0]) if value else _STRUCT
    header = bytes([len(value) << 4 | kind]) if len(value) < 15 else bytes([0xF0 | kind]) + varint(len(value))
    return header + b"".join(_encode(item) for item in value)


def encode_struct(struct: Struct) -> bytes:
    """A struct; field numbers must rise by less than 16 from one to the next."""
    out, last = bytearray(), 0
    for number, value in struct.items():
        out.append((number - last) << 4 | _type_of(value))
        out += _encode(value)
        last = number
    return bytes([*out, 0])


class Reader:
    """Reads structs out of bytes from a place onward."""

    def __init__(self, data: bytes, place: int = 0) -> None:
        self.data, self.place = data, place

    def _byte(self) -> int:
        self.place += 1
        return self.data[self.place - 1]

    def varint(self) -> int:
        """One variable-length number."""
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    def _value(self, kind: int) -> Any:
        if kind in (_I32, _I64):
            number = self.varint()
            return number >> 1 ^ -(number & 1)
        if kind == _BINARY:
            size = self.varint()
            self.place += size
            return self.data[self.place - size : self.place]
        if kind == _LIST:
            header = self._byte()
            size = header >> 4 if header >> 4 < 15 else self.varint()
            return [self._value(header & 0x0F) for _ in range(size)]
        if kind == _STRUCT:
            return self.struct()
        raise ValueError(f"thrift type {kind} is not used by our tables")

    def struct(self) -> dict[int, Any]:
        """One struct."""
        found: dict[int, Any] = {}
        number = 0
        while header := self._byte():
            number += header >> 4
            found[number] = self._value(header & 0x0F)
        return found
