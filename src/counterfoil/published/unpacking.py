"""One file's bytes out of a zip, never more of them than a picture can have."""

from __future__ import annotations

import zipfile
import zlib

from counterfoil.errors import Unusable

_STREAMED = 0x8  # flag of a zip that was written in one go: the sum stands behind the data
_DESCRIPTOR = b"PK\x07\x08"  # may begin what stands there
MOST_BYTES = 1 << 28  # of one file: past this it is a decompression bomb, not a picture


def refuse_bomb(size: int) -> None:
    """A file that is said to be larger than any picture is not read."""
    if size > MOST_BYTES:
        raise Unusable(f"{size:,} bytes are more than {MOST_BYTES:,} allowed")


def unpacked(data: bytes, packing: int, size: int) -> bytes:
    """The file's bytes: `size` is what the zip says, and what goes on past it is damaged or a bomb."""
    if packing == zipfile.ZIP_STORED:
        return data
    if packing != zipfile.ZIP_DEFLATED:
        raise Unusable("the zip packs this file in a way other than deflate; unpack it and give the folder")
    try:
        found = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, size + 1)
    except zlib.error as error:
        raise Unusable(f"the archive is damaged: {error}") from error
    if len(found) != size:
        raise Unusable(f"the archive is damaged: a file has not the {size:,} bytes that the zip says")
    return found


def check_sum(found: bytes, header: bytes, behind: bytes) -> None:
    """A file whose bytes were changed is refused: a JPEG with a wrong bit still shows a picture."""
    told = behind.removeprefix(_DESCRIPTOR)[:4] if header[6] & _STREAMED else header[14:18]
    if zlib.crc32(found) != int.from_bytes(told, "little"):
        raise Unusable("the archive is damaged: a file has not the check sum that the zip says")
