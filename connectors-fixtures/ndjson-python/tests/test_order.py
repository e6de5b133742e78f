"""Calls in their order, and out of it."""

import unittest

from failure import Failure
from order import Order, acknowledge_call

RECOVER = acknowledge_call({"recovery": True})


def run(*calls: str) -> None:
    order = Order()
    for call in calls:
        with order.turn(call):
            pass


class Orders(unittest.TestCase):
    def test_calls_in_order_are_made(self) -> None:
        run("validate", "apply", "apply", "open")
        run("open", RECOVER, "load", "flush", "flush", "store", "store", "start-commit", "acknowledge")
        run("open", "load", RECOVER, "load", "flush", "start-commit", "load", "acknowledge", "load")
        run("open", "store", "start-commit", "acknowledge", "start-commit", "acknowledge")

    def test_every_other_order_is_refused_at_its_last_call(self) -> None:
        cases: list[tuple[list[str], str]] = [
            ([], "flush"),
            ([], "store"),
            ([], "acknowledge"),
            (["open"], "open"),
            (["open"], "validate"),
            (["open"], "acknowledge"),
            (["open", RECOVER], RECOVER),
            (["open", "flush"], "load"),
            (["open", "store"], "load"),
            (["open", "store"], "flush"),
            (["open", "store"], "acknowledge"),
            (["open", "start-commit"], "store"),
            (["open", "start-commit"], "flush"),
            (["open", "start-commit"], "start-commit"),
            (["open", "start-commit"], RECOVER),
            (["open", "start-commit", "acknowledge"], "acknowledge"),
        ]
        for before, wrong in cases:
            run(*before)
            with self.assertRaisesRegex(Failure, f"^{wrong} was ", msg=before) as caught:
                run(*before, wrong)
            self.assertEqual(caught.exception.kind, "internal")

    def test_a_violation_names_both_calls_and_why(self) -> None:
        with self.assertRaisesRegex(Failure, "^store was the first call: no session is open$"):
            run("store")
        with self.assertRaisesRegex(Failure, "store was called after start-commit: the transaction"):
            run("open", "start-commit", "store")
        with self.assertRaisesRegex(Failure, "load was called after flush: the protocol has them"):
            run("open", "flush", "load")

    def test_a_call_that_failed_ends_the_session_and_before_a_session_nothing(self) -> None:
        order = Order()
        for call in ("apply", "open", "store"):
            with self.subTest(call):
                if call == "open":
                    with order.turn(call):
                        continue
                with self.assertRaises(ValueError), order.turn(call):
                    raise ValueError
        with self.assertRaisesRegex(Failure, "start-commit was called after store: that call failed"):
            with order.turn("start-commit"):
                pass


if __name__ == "__main__":
    unittest.main()
