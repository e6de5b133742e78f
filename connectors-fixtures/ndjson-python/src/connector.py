"""What the connector is, and what the host calls.

    spec, validate: what can be held       (nothing is reached)
    apply:          folders                (layout.py)
    open ...:       a session              (session.py), its calls in turn (order.py)

Log authority: `store` and `start_commit` stage, `acknowledge` puts into place.
"""

import json
import traceback
from collections.abc import Callable
from typing import Any

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import runtime, types

from directory import Directory
from failure import Failure, within
from layout import apply_binding, read_folder, read_path
from order import Order, acknowledge_call
from session import Session

SPEC = {
    "configSchema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "NDJSON files",
        "type": "object",
        "required": ["path"],
        "additionalProperties": False,
        "properties": {
            "path": {
                "title": "Path",
                "description": "The directory. It is made if it does not exist; the one it is in must exist.",
                "type": "string",
                "minLength": 1,
            },
        },
    },
    "resourceSchema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Folder",
        "type": "object",
        "required": ["folder"],
        "additionalProperties": False,
        "properties": {
            "folder": {
                "title": "Folder",
                "description": "The folder of the files, inside the directory.",
                "type": "string",
                "minLength": 1,
                "x-collection-name": True,
            },
        },
    },
    "documentationUrl": "https://github.com/ndjson/ndjson-spec",
    "wants": {"directory": ["/path"]},
    # There is no pacing of its own that it would have to stop.
    "defersToSchedule": True,
}


# Each call is made on an object of its own, so that these are kept here.
_order = Order()
_session: Session | None = None


def call[T](run: Callable[[], T]) -> T:
    """Runs a call. What is raised must be an error of the protocol: anything else
    would trap, and end the instance without a word that the host understands."""
    try:
        return run()
    except Failure as failure:
        raise _error(failure) from None
    except Exception:
        raise _error(Failure("internal", traceback.format_exc())) from None


def _error(failure: Failure) -> Err:
    kind = types.ErrorKind[failure.kind.upper()]
    return Err(types.Error(kind, failure.message, failure.binding, None, failure.field))


def turn[T](name: str, run: Callable[[], T]) -> T:
    """Runs a call in its turn."""

    def in_turn() -> T:
        with _order.turn(name):
            return run()

    return call(in_turn)


def ask(name: str, answer: Callable[[Any], Any], request: str) -> str:
    """Makes a call with a JSON request and a JSON response, in its turn."""
    return turn(name, lambda: json.dumps(answer(json.loads(request))))


def validate(request: dict[str, Any]) -> dict[str, Any]:
    read_path(request["config"])
    return {
        "bindings": [
            {
                "resourcePath": [read_folder(binding["resource"])],
                # A file that is in place is never written again.
                "deltaUpdates": True,
                "constraints": {it["field"]: constraint(it) for it in binding["projections"]},
            }
            for binding in request["bindings"]
        ]
    }


def constraint(projection: dict[str, Any]) -> dict[str, str]:
    if projection["pointer"] == "":
        return {"kind": "recommended", "reason": "a line is the whole document"}
    return {
        "kind": "optional",
        "reason": "a line has the selected fields if the document is excluded",
    }


def apply(request: dict[str, Any]) -> dict[str, Any]:
    following = request["next"]
    directory = Directory(read_path(following["config"]))
    actions = []
    for index, binding in enumerate(following["bindings"]):
        with within(binding=index):
            actions += apply_binding(
                directory, following["task"], binding, request.get("dryRun", False)
            )
    return {"actions": actions}


def opened() -> Session:
    assert _session is not None, "the order of calls has an open before"
    return _session


def open_session(request: dict[str, Any]) -> dict[str, Any]:
    global _session
    directory = Directory(read_path(request["spec"]["config"]))
    _session = Session(
        directory, request, lambda message: runtime.log(runtime.Level.INFO, message)
    )
    return {"authority": "log", "guarantee": "exactlyOnce"}


def store(binding: int, batch: bytes) -> None:
    with within(binding=binding):
        opened().store(binding, batch)


def load() -> bytes:
    raise Failure("internal", "`load` was called for a binding of delta updates")


class Connector(exports.Connector):
    """The exported interface."""

    def spec(self) -> str:
        return json.dumps(SPEC)

    def validate(self, request: str) -> str:
        return ask("validate", validate, request)

    def apply(self, request: str) -> str:
        return ask("apply", apply, request)

    def open(self, request: str) -> str:
        return ask("open", open_session, request)

    def load(self, binding: int, keys: bytes) -> bytes:
        return turn("load", load)

    def flush(self, binding: int) -> bytes:
        # Delta updates are never loaded.
        return turn("flush", lambda: b"")

    def store(self, binding: int, batch: bytes) -> None:
        turn("store", lambda: store(binding, batch))

    def start_commit(self, checkpoint: str) -> str | None:
        patch = turn("start-commit", lambda: opened().start_commit())
        return None if patch is None else json.dumps(patch)

    def acknowledge(self, request: str) -> str:
        name = call(lambda: acknowledge_call(json.loads(request)))
        return ask(name, lambda it: opened().acknowledge(it), request)
