"""Packed batches: `[klen][vlen][dlen][flags]`, key tuple, values tuple, document."""

import struct
from typing import NamedTuple

from failure import Failure

HEADER = struct.Struct("<4I")


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
            raise _malformed(batch, at)
        key, values, document, _flags = HEADER.unpack_from(batch, at)
        values += start + key
        document += values
        if document > len(batch):
            raise _malformed(batch, at)
        key += start
        found.append(Store(batch[start:key], batch[key:values], batch[values:document]))
        at = document
    return found


def _malformed(batch: bytes, at: int) -> Failure:
    return Failure("internal", f"the store batch is malformed at byte {at} of {len(batch)}")
