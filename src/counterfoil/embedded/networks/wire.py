"""Protobuf's wire format, both ways: the little that Paddle programs and ONNX models need."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator

from counterfoil.errors import UserError

VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5
MAX_VARINT_BYTES = 10  # 64 bits, seven at a time


class Message:
    """A decoded message: the values of each field number, in the order in which they came."""

    def __init__(self, data: bytes) -> None:
        self._values: defaultdict[int, list[int | bytes]] = defaultdict(list)
        for number, value in _fields(data):
            self._values[number].append(value)

    def integers(self, number: int) -> list[int]:
        """The field's integers; negative numbers arrive as 64-bit two's complement."""
        values: list[int] = []
        for value in self._values.get(number, []):
            values.extend([value] if isinstance(value, int) else _packed(value))
        return [value - (1 << 64) if value >> 63 else value for value in values]

    def floats(self, number: int) -> list[float]:
        """The field's 32-bit floating point numbers."""
        data = b"".join(self._bytes(number))
        if len(data) % 4:
            raise UserError(f"expected 32-bit numbers in protobuf field {number}, got {len(data)} bytes")
        return list(struct.unpack(f"<{len(data) // 4}f", data))

    def texts(self, number: int) -> list[str]:
        """The field's strings."""
        try:
            return [value.decode() for value in self._bytes(number)]
        except UnicodeDecodeError as error:
            raise UserError(f"expected text in protobuf field {number}, got other bytes") from error

    def messages(self, number: int) -> list[Message]:
        """The field's messages, decoded one level down."""
        return [Message(value) for value in self._bytes(number)]

    def _bytes(self, number: int) -> list[bytes]:
        values = self._values.get(number, [])
        if any(isinstance(value, int) for value in values):
            raise UserError(f"expected bytes in protobuf field {number}, got an integer")
        return [value for value in values if isinstance(value, bytes)]


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, position = _varint(data, position)
            yield number, value
            continue
        size, position = _size(data, position, kind)
        if position + size > len(data):
            raise UserError("expected a whole protobuf message, got one that ends within a field")
        yield number, data[position : position + size]
        position += size


def _size(data: bytes, position: int, kind: int) -> tuple[int, int]:
    if kind == DELIMITED:
        return _varint(data, position)
    if kind == FIXED32:
        return 4, position
    if kind == FIXED64:
        return 8, position
    raise UserError(f"expected a protobuf message, got bytes with the unknown wire type {kind}")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift, byte in enumerate(data[position : position + MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position + shift + 1
    raise UserError("expected a whole protobuf message, got one that ends within a number")


def _packed(data: bytes) -> Iterator[int]:
    position = 0
    while position < len(data):
        value, position = _varint(data, position)
        yield value


def integer_field(number: int, value: int) -> bytes:
    """One integer of a message."""
    return _encoded_varint(number << 3 | VARINT) + _encoded_varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def float_field(number: int, value: float) -> bytes:
    """One 32-bit floating point number of a message."""
    return _encoded_varint(number << 3 | FIXED32) + struct.pack("<f", value)


def bytes_field(number: int, value: bytes) -> bytes:
    """One byte string, or one encoded message, of a message."""
    return _encoded_varint(number << 3 | DELIMITED) + _encoded_varint(len(value)) + value


def text_field(number: int, value: str) -> bytes:
    """One string of a message."""
    return bytes_field(number, value.encode())


def _encoded_varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
