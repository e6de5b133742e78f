"""Lines of NDJSON: the document, or an object of the selected fields."""

import json
from typing import Any

from batch import Store
from failure import Failure
from tuples import elements

# In JSON text, line breaks are white space: within texts they are escaped.
ON_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")


def lines(binding: dict[str, Any], stores: list[Store]) -> bytes:
    """Returns the lines of documents, as one piece."""
    if binding.get("document"):
        parts = [store.document for store in stores]
    else:
        parts = _fields(binding, stores)
    return b"".join(part.translate(ON_ONE_LINE) + b"\n" for part in parts)


def _fields(binding: dict[str, Any], stores: list[Store]) -> list[bytes]:
    fields = binding["key"] + binding["values"]
    names = [json.dumps(it["field"], ensure_ascii=False) for it in fields]
    parts = []
    for store in stores:
        values = elements(store.key) + elements(store.values)
        if len(values) != len(names):
            message = f"{len(values)} values were stored, and {len(names)} fields are selected"
            raise Failure("internal", message)
        pairs = (f"{name}:{value}" for name, value in zip(names, values))
        parts.append(f"{{{','.join(pairs)}}}".encode())
    return parts
