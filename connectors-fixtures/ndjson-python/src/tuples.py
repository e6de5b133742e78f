"""Tuples in FoundationDB's encoding, as JSON texts: numbers keep every digit."""

import json
import struct

from failure import Failure


class Code:
    """The byte that an element begins with."""

    NULL = 0x00
    BYTES = 0x01
    TEXT = 0x02
    NEGATIVE = 0x0B
    ZERO = 0x14
    POSITIVE = 0x1D
    DOUBLE = 0x21
    FALSE = 0x26
    TRUE = 0x27


# In a text, a zero byte is followed by this.
ESCAPE = b"\x00\xff"


def elements(data: bytes) -> list[str]:
    """Returns the elements of a tuple, each as JSON text."""
    texts = []
    at = 0
    while at < len(data):
        text, at = _element(data, at)
        texts.append(text)
    return texts


def _element(data: bytes, at: int) -> tuple[str, int]:
    """Returns an element, and where it ends."""
    code = data[at]
    at += 1
    match code:
        case Code.NULL:
            return "null", at
        case Code.FALSE:
            return "false", at
        case Code.TRUE:
            return "true", at
        case Code.BYTES:
            # JSON text already: an array, an object, or a number beyond integers and doubles.
            text, end = _unescape(data, at)
            return text.decode(), end
        case Code.TEXT:
            text, end = _unescape(data, at)
            return json.dumps(text.decode(), ensure_ascii=False), end
        case Code.DOUBLE:
            return _double(_part(data, at, 8)), at + 8
        case Code.NEGATIVE | Code.POSITIVE:
            length = _part(data, at, 1)[0] ^ (0xFF if code == Code.NEGATIVE else 0)
            at += 1
        case _ if Code.NEGATIVE < code < Code.POSITIVE:
            length = abs(code - Code.ZERO)
        case _:
            raise _malformed(data, at - 1, f"there is no element of code {code}")
    return _integer(_part(data, at, length), code < Code.ZERO), at + length


def _integer(part: bytes, negative: bool) -> str:
    # Of a negative one, the bytes are the complement of its magnitude.
    value = int.from_bytes(part)
    return str(value - (1 << 8 * len(part)) + 1 if negative else value)


def _double(part: bytes) -> str:
    # Doubles are ordered as bytes: positive ones have the sign bit set, of negative ones
    # every bit is the other way.
    bits = int.from_bytes(part)
    bits ^= 1 << 63 if bits >> 63 else (1 << 64) - 1
    return repr(struct.unpack(">d", bits.to_bytes(8))[0])


def _unescape(data: bytes, start: int) -> tuple[bytes, int]:
    """Returns the bytes up to the zero byte that ends them, and where that is over."""
    end = data.find(0, start)
    while end != -1 and data[end : end + 2] == ESCAPE:
        end = data.find(0, end + 2)
    if end == -1:
        raise _malformed(data, start, "it has no end")
    return data[start:end].replace(ESCAPE, b"\x00"), end + 1


def _part(data: bytes, start: int, length: int) -> bytes:
    if start + length > len(data):
        raise _malformed(data, start, "it reaches past the end")
    return data[start : start + length]


def _malformed(data: bytes, at: int, reason: str) -> Failure:
    message = f"a tuple of {len(data)} bytes is malformed at byte {at}: {reason}"
    return Failure("internal", message)
