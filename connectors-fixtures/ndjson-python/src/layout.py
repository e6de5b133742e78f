"""Where things lie in the directory.

    orders/0000000001-0000000003-000001-00000000.ndjson   in place
    orders/.tidegate                                      whose folder it is
    .tidegate/acmeCo%2Fshop/00000000-ffffffff.fence       who may write
    .tidegate/acmeCo%2Fshop/0000000001-...staged          not in place yet

Names of files begin with the session's fence and the transaction, so that their
order is the order of commits, and no session writes over another's.
"""

import json
import re
from typing import Any, NoReturn

from directory import Directory
from failure import Failure

OWN = ".tidegate"
# Its name is a part of file names, which have at most 255 bytes.
FOLDER = re.compile(r"[^\s/\\.\x00-\x1f][^\s/\\\x00-\x1f]{0,49}")
DATA = re.compile(r"\d{10,}-\d{10,}-\d{6,}-[0-9a-f]{8}\.ndjson")
FENCE = re.compile(r"([0-9a-f]{8})-([0-9a-f]{8})\.fence")
STAGED = re.compile(r"(?P<epoch>\d+)-(?P<session>\d+)-\d+-(?P<begin>[0-9a-f]{8})\..*\.staged")
LEFT_FENCE = re.compile(
    r"(?P<begin>[0-9a-f]{8})-[0-9a-f]{8}\.fence\.(?P<epoch>\d+)\.(?P<session>\d+)"
)

Json = dict[str, Any]


def read_path(config: Json) -> str:
    """Reads an endpoint configuration."""
    path = config.get("path")
    if not isinstance(path, str) or not path:
        raise Failure("config", "the config names no directory: write `path: out`", field="path")
    return path


def read_folder(resource: Json) -> str:
    """Reads a binding's resource."""
    folder = resource.get("folder")
    if not isinstance(folder, str) or not FOLDER.fullmatch(folder):
        raise Failure(
            "config",
            f"the resource's folder is {json.dumps(folder)}: "
            "name one folder, with at most 50 characters, no white space, and no dot in front",
            field="folder",
        )
    return folder


def task_folder(task: str) -> str:
    """Returns the folder of a task's staged files and fences."""
    return f"{OWN}/{task.replace('/', '%2F')}"


def fence_file(task: str, key_range: Json) -> str:
    return f"{task_folder(task)}/{key_range['begin']:08x}-{key_range['end']:08x}.fence"


def file_name(fence: Json, transaction: int, key_range: Json) -> str:
    """Names the files of a transaction."""
    begin = key_range["begin"]
    return f"{fence['epoch']:010}-{fence['session']:010}-{transaction:06}-{begin:08x}"


def read_range(name: str) -> Json | None:
    """Reads the key range that a file in a task's folder is the fence of."""
    match = FENCE.fullmatch(name)
    return match and {"begin": int(match[1], 16), "end": int(match[2], 16)}


def read_staged(name: str) -> tuple[Json, int] | None:
    """Reads what a staged file's name says of its session: fence, and begin of range. A
    fence counts as one if its session ended before it was put into place."""
    match = STAGED.fullmatch(name) or LEFT_FENCE.fullmatch(name)
    if match is None:
        return None
    fence = {"epoch": int(match["epoch"]), "session": int(match["session"])}
    return fence, int(match["begin"], 16)


def data_files(directory: Directory, folder: str) -> list[str]:
    """Returns the names of the files that are in place in a folder."""
    return [name for name in directory.list(folder) if DATA.fullmatch(name)]


def _read_claim(directory: Directory, folder: str) -> Json | None:
    text = directory.read(f"{folder}/{OWN}")
    return None if text is None else json.loads(text)


def apply_binding(directory: Directory, task: str, binding: Json, dry_run: bool) -> list[str]:
    """Brings a binding's folder to its spec; returns what was, or would be, done."""
    folder = read_folder(binding["resource"])
    backfill = binding.get("backfill", 0)
    claim = _read_claim(directory, folder)
    files = data_files(directory, folder)

    def refuse(reason: str) -> NoReturn:
        raise Failure("schema", f"the folder {directory.full(folder)} {reason}")

    actions = []
    if claim is None:
        if files:
            refuse("holds files that this connector does not know: name another one")
        actions.append(f"make the folder {folder}")
    elif claim["task"] != task:
        refuse(f"belongs to task {claim['task']}: name another one")
    elif claim["backfill"] > backfill:
        refuse(
            f"was made for backfill counter {claim['backfill']}, "
            f"and the spec says {backfill}: it is only ever raised"
        )
    elif claim["backfill"] < backfill:
        actions.append(f"remove {len(files)} files from the folder {folder}")
    if dry_run or not actions:
        return actions
    for path in ("", OWN, task_folder(task), folder):
        directory.make_folder(path)
    for name in files:
        directory.remove(f"{folder}/{name}")
    # Last: a crash before this does all of it again.
    claim = json.dumps({"task": task, "backfill": backfill})
    directory.replace(f"{folder}/{OWN}", claim, "new")
    return actions


def check_applied(directory: Directory, request: Json) -> None:
    """Refuses a directory that is not the one that was applied to and committed to."""
    task = request["spec"]["task"]
    for index, binding in enumerate(request["spec"]["bindings"]):
        folder = read_folder(binding["resource"])

        def refuse(reason: str) -> NoReturn:
            message = f"the folder {directory.full(folder)} {reason}"
            raise Failure("schema", message, binding=index)

        if _read_claim(directory, folder) != {"task": task, "backfill": binding.get("backfill", 0)}:
            refuse(
                "is not as it was made: it was never applied, or replaced; "
                "raise the binding's backfill counter"
            )
        # Everything would be written again, beside what is there.
        if request.get("checkpoint") is None and data_files(directory, folder):
            refuse(
                "holds documents, and the host knows of none: "
                "use its last data directory, or raise the backfill counter"
            )
