"""Packed batches: `[klen][vlen][dlen][flags]`, key tuple, values tuple, document."""

import struct
from typing import NamedTuple

from failure import Failure

HEADER = struct.Struct("<4I")

# The key exists, delete it: there are no more flags.
FLAGS = 1 | 2


class Store(NamedTuple):
    key: bytes
    values: bytes
    document: bytes


def stores(batch: bytes) -> list[Store]:
    """Returns the documents of a store batch."""
    found = []
    at = 0
    while at < len(batch):
        start = at + HEADER.size
        if start > len(batch):
            raise _malformed(batch, at, CUT_OFF)
        key, values, document, flags = HEADER.unpack_from(batch, at)
        values += start + key
        document += values
        if document > len(batch):
            raise _malformed(batch, at, CUT_OFF)
        if flags & ~FLAGS:
            raise _malformed(batch, at, f"its flags are {flags}, and only 1 and 2 are known")
        key += start
        found.append(Store(batch[start:key], batch[key:values], batch[values:document]))
        at = document
    return found


CUT_OFF = "it is cut off"


def _malformed(batch: bytes, at: int, reason: str) -> Failure:
    message = f"the store batch is malformed at byte {at} of {len(batch)}: {reason}"
    return Failure("internal", message)
