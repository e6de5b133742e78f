"""Fences: how an older session is kept from committing.

    open     read the fences that overlap -> raise -> write ours, remove older ones of other ranges
    commit   ours is still there

Files cannot be compared and swapped. They need not be: what counts is what the
host's log says, and a session that lost there is never told to acknowledge.
"""

import json
from typing import Any

from directory import Directory
from failure import Failure
from layout import fence_file, read_range, task_folder

Json = dict[str, Any]


def order(fence: Json) -> tuple[int, int]:
    """Returns what fences are compared by: the epoch first."""
    return fence["epoch"], fence["session"]


def _name(fence: Json) -> str:
    return f"{fence['epoch']}.{fence['session']}"


def raise_fence(directory: Directory, task: str, key_range: Json, own: Json) -> None:
    folder = task_folder(task)
    path = fence_file(task, key_range)
    overlapping = []
    for name in directory.list(folder):
        other = read_range(name)
        if other and other["begin"] <= key_range["end"] and key_range["begin"] <= other["end"]:
            overlapping.append(f"{folder}/{name}")
    for other in overlapping:
        held = _read(directory, other)
        # Shards of one new layout open with one fence each in turn.
        later = held and order(held) > order(own)
        if later or (other == path and held == own):
            raise Failure(
                "transient",
                f"session {_name(own)} is refused: "
                f"the destination has been opened by session {_name(held)}",
            )
    directory.replace(path, json.dumps(own), _name(own))
    for other in overlapping:
        if other != path:
            directory.remove(other)


def check_fence(directory: Directory, task: str, key_range: Json, own: Json) -> None:
    held = _read(directory, fence_file(task, key_range))
    if held == own:
        return
    if held is None:
        why = "the destination's record of it is gone"
    else:
        why = f"the destination has been opened by session {_name(held)}"
    raise Failure("transient", f"session {_name(own)} is fenced off: {why}")


def _read(directory: Directory, path: str) -> Json | None:
    text = directory.read(path)
    return None if text is None else json.loads(text)
