"""A session, from `open` to the end of the instance.

    open          fence raised, staged files that the state does not name removed
    store         lines -> a staged file a binding
    start_commit  staged files durable -> patch: where they are, and where they belong
    acknowledge   renamed into place, unless they are there already -> patch: nothing is staged
"""

from collections.abc import Callable
from typing import Any

from batch import stores
from directory import Directory, NewFile
from failure import Failure
from fence import check_fence, order, raise_fence
from layout import check_applied, file_name, read_folder, read_staged, task_folder
from lines import lines

Json = dict[str, Any]


class Session:
    def __init__(self, directory: Directory, request: Json, log: Callable[[str], None]) -> None:
        self.directory = directory
        self.task = request["spec"]["task"]
        self.bindings = request["spec"]["bindings"]
        self.range = request["range"]
        self.fence = request["fence"]
        self.transaction = 1
        self.files: dict[int, tuple[NewFile, str]] = {}
        self.staged: list[Json] = (request.get("state") or {}).get("staged", [])

        check_applied(directory, request)
        raise_fence(directory, self.task, self.range, self.fence)
        removed = self._remove_forgotten()
        if removed:
            log(f"removed {removed} staged files that no commit names")

    def _remove_forgotten(self) -> int:
        """Removes what earlier sessions staged and did not commit. Of later ones,
        which there may be by now, it removes nothing."""
        folder = task_folder(self.task)
        named = {it["from"] for it in self.staged}
        removed = 0
        for name in self.directory.list(folder):
            path = f"{folder}/{name}"
            staged = read_staged(name)
            if staged is None or path in named:
                continue
            fence, begin = staged
            ours = self.range["begin"] <= begin <= self.range["end"]
            if ours and order(fence) < order(self.fence):
                self.directory.remove(path)
                removed += 1
        return removed

    def store(self, index: int, batch: bytes) -> None:
        if index >= len(self.bindings):
            count = len(self.bindings)
            raise Failure("internal", f"there is no binding {index}: the spec has {count}")
        binding = self.bindings[index]
        if index not in self.files:
            self.files[index] = self._stage(binding)
        file, _ = self.files[index]
        file.append(lines(binding, stores(batch)))

    def _stage(self, binding: Json) -> tuple[NewFile, str]:
        """Makes the file of a binding in this transaction, which has a place already."""
        name = file_name(self.fence, self.transaction, self.range)
        folder = read_folder(binding["resource"])
        file = self.directory.create(f"{task_folder(self.task)}/{name}.{folder}.staged")
        return file, f"{folder}/{name}.ndjson"

    def start_commit(self) -> Json | None:
        check_fence(self.directory, self.task, self.range, self.fence)
        self.transaction += 1
        if not self.files:
            return None
        self.staged = []
        for file, place in self.files.values():
            file.finish()
            self.staged.append({"from": file.path, "to": place})
        self.files.clear()
        self.directory.sync_folder(task_folder(self.task))
        return {"staged": self.staged}

    def acknowledge(self, request: Json) -> Json:
        check_fence(self.directory, self.task, self.range, self.fence)
        for patch in request.get("patches", []):
            if isinstance(patch, dict) and "staged" in patch:
                self.staged = patch["staged"] or []
        if not self.staged:
            return {}
        for it in self.staged:
            self._put_into_place(it["from"], it["to"])
        self.staged = []
        return {"patch": {"staged": None}}

    def _put_into_place(self, source: str, target: str) -> None:
        if self.directory.exists(source):
            self.directory.rename(source, target)
        elif not self.directory.exists(target):
            raise Failure(
                "internal",
                f"{self.directory.full(source)} is gone, and {target} is not there: "
                "its documents are committed and lost; "
                "put the file back, or raise the binding's backfill counter",
            )
