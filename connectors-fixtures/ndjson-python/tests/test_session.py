"""Sessions on a real file system, without the sandbox around them."""

import json
import os
import struct
import tempfile
import unittest
from typing import Any

from directory import Directory
from failure import Failure
from layout import apply_binding
from session import Session

FULL = {"begin": 0, "end": 0xFFFFFFFF}
LOW = {"begin": 0, "end": 0x7FFFFFFF}
HIGH = {"begin": 0x80000000, "end": 0xFFFFFFFF}


class Sessions(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.path = os.path.join(temporary.name, "out")
        self.directory = Directory(self.path)
        self.binding = {
            "resource": {"folder": "orders"},
            "key": [{"field": "id"}],
            "values": [],
            "document": "flow_document",
        }
        self.said: list[str] = []
        self.apply()

    def apply(self, task: str = "a/b", dry_run: bool = False) -> list[str]:
        return apply_binding(self.directory, task, self.binding, dry_run)

    def open(self, session: int, key_range: Any = FULL, state: Any = None, **more: Any) -> Session:
        request = {
            "spec": {"task": "a/b", "bindings": [self.binding]},
            "range": key_range,
            "fence": {"epoch": 1, "session": session},
            "checkpoint": "{}",
            "state": state,
        }
        opened = Session(self.directory, request | more, self.said.append)
        self.addCleanup(lambda: [file.close() for file, _ in opened.files.values()])
        return opened

    def names(self, folder: str) -> list[str]:
        names = os.listdir(os.path.join(self.path, folder))
        return sorted(it for it in names if it.endswith((".ndjson", ".staged")))

    def lines(self) -> list[str]:
        found = []
        for name in self.names("orders"):
            with open(os.path.join(self.path, "orders", name)) as file:
                found += file.read().splitlines()
        return found

    def test_what_is_acknowledged_is_in_place_once(self) -> None:
        session = self.open(1)
        for number in (1, 2):
            session.store(0, batch(number, number + 10))
            session.store(0, batch(number + 20))
            patch = session.start_commit()
            self.assertEqual(len(self.lines()), 3 * (number - 1))
            self.assertEqual(session.acknowledge({"patches": [patch]}), {"patch": {"staged": None}})
        self.assertEqual(self.lines(), list(map(document, (1, 11, 21, 2, 12, 22))))
        self.assertIsNone(session.start_commit())
        self.assertEqual(session.acknowledge({}), {})
        self.assertEqual(self.names(".tidegate/a%2Fb"), [])

    def test_a_recovery_renames_and_then_leaves_alone(self) -> None:
        session = self.open(1)
        session.store(0, batch(1))
        patch = session.start_commit()
        for number in (2, 3):
            recovered = self.open(number, state=patch)
            recovered.acknowledge({"patches": [patch], "recovery": True})
            self.assertEqual(self.lines(), [document(1)])
        os.unlink(os.path.join(self.path, patch["staged"][0]["to"]))
        with self.assertRaisesRegex(Failure, "committed and lost"):
            self.open(4, state=patch).acknowledge({"patches": [patch], "recovery": True})

    def test_staged_work_without_a_commit_is_removed_but_not_a_later_session_s(self) -> None:
        self.open(1).store(0, batch(1))
        later = self.open(3)
        self.assertEqual(self.said, ["removed 1 staged files that no commit names"])
        later.store(0, batch(2))
        with self.assertRaisesRegex(Failure, "1.2 is refused: .* by session 1.3"):
            self.open(2)
        later.acknowledge({"patches": [later.start_commit()]})
        self.assertEqual(self.lines(), [document(2)])

    def test_a_fence_that_was_not_put_into_place_is_removed(self) -> None:
        self.open(1)
        folder = os.path.join(self.path, ".tidegate/a%2Fb")
        left = [os.path.join(folder, f"00000000-ffffffff.fence.1.{n}") for n in (2, 9)]
        for path in left:
            with open(path, "w", encoding="utf-8") as file:
                file.write("{}")
        self.open(3)
        self.assertEqual([os.path.exists(path) for path in left], [False, True])

    def test_an_older_session_is_fenced_off(self) -> None:
        older = self.open(1)
        older.store(0, batch(1))
        self.open(2)
        for call in (older.start_commit, lambda: older.acknowledge({})):
            with self.assertRaisesRegex(Failure, "1.1 is fenced off") as caught:
                call()
            self.assertEqual(caught.exception.kind, "transient")
        with self.assertRaisesRegex(Failure, "1.2 is refused"):
            self.open(2)

    def test_another_layout_of_shards_fences_the_last_one(self) -> None:
        whole = self.open(1)
        low, high = self.open(2, LOW), self.open(2, HIGH)
        for session in (low, high):
            session.store(0, batch(1))
            session.acknowledge({"patches": [session.start_commit()]})
        self.assertEqual(len(self.names("orders")), 2)
        with self.assertRaisesRegex(Failure, "1.1 is fenced off"):
            whole.start_commit()
        with self.assertRaisesRegex(Failure, "1.1 is refused"):
            self.open(1)
        self.open(3)
        with self.assertRaisesRegex(Failure, "1.2 is fenced off"):
            high.start_commit()

    def test_a_folder_is_one_task_s_and_is_made_anew_when_the_counter_is_raised(self) -> None:
        self.assertEqual(self.apply(), [])
        session = self.open(1)
        session.store(0, batch(1))
        session.acknowledge({"patches": [session.start_commit()]})
        with self.assertRaisesRegex(Failure, "the host knows of none"):
            self.open(2, checkpoint=None)
        with self.assertRaisesRegex(Failure, "belongs to task a/b"):
            self.apply("a/c")
        self.binding["backfill"] = 1
        with self.assertRaisesRegex(Failure, "never applied"):
            self.open(2)
        for dry_run in (True, False):
            want = ["remove 1 files from the folder orders"]
            self.assertEqual(self.apply(dry_run=dry_run), want)
        self.assertEqual(self.lines(), [])
        self.open(2, checkpoint=None)
        self.binding["backfill"] = 0
        with self.assertRaisesRegex(Failure, "only ever raised"):
            self.apply()

    def test_files_of_somebody_else_are_not_taken_over(self) -> None:
        os.unlink(os.path.join(self.path, "orders/.tidegate"))
        name = "0000000001-0000000001-000001-00000000.ndjson"
        with open(os.path.join(self.path, "orders", name), "w"):
            pass
        with self.assertRaisesRegex(Failure, "does not know"):
            self.apply()


def document(number: int) -> str:
    return json.dumps({"id": number})


def batch(*numbers: int) -> bytes:
    texts = [document(number).encode() for number in numbers]
    return b"".join(struct.pack("<4I", 0, 0, len(text), 0) + text for text in texts)


if __name__ == "__main__":
    unittest.main()
