"""The order of calls that the protocol allows.

    closed -open-> opened -load-> .. -flush-> flushing -store-> storing -start-commit-> committing
                     |                                                                    |  load
                     +-acknowledge of a recovery-> loading <-----------acknowledge--------+

A transaction may go without a flush, and one that has nothing to store without a
store. A call that failed ends the session.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from failure import Failure

TRANSACTION = {"flush": "flushing", "store": "storing", "start-commit": "committing"}

# Where a call leads, from where the instance is.
NEXT: dict[str, dict[str, str]] = {
    "closed": {"validate": "closed", "apply": "closed", "open": "opened"},
    "opened": {"load": "opened", "acknowledge of a recovery": "loading"} | TRANSACTION,
    "loading": {"load": "loading"} | TRANSACTION,
    "flushing": TRANSACTION,
    "storing": {"store": "storing", "start-commit": "committing"},
    "committing": {"load": "committing", "acknowledge": "loading"},
    "failed": {},
}

REASON = {
    "closed": "no session is open",
    "failed": "that call failed, which ended the session",
    "committing": "the transaction is not acknowledged yet",
}


class Order:
    """Follows the calls of one instance."""

    def __init__(self) -> None:
        self.phase = "closed"
        self.last: str | None = None

    @contextmanager
    def turn(self, call: str) -> Iterator[None]:
        """Lets a call be made inside if it is its turn."""
        try:
            self._enter(call)
            yield
        except BaseException:
            if self.phase != "closed":
                self.phase = "failed"
            raise

    def _enter(self, call: str) -> None:
        last, self.last = self.last, call
        following = NEXT[self.phase].get(call)
        if following is None:
            place = "the first call" if last is None else f"called after {last}"
            reason = REASON.get(self.phase, "the protocol has them in another order")
            raise Failure("internal", f"{call} was {place}: {reason}")
        self.phase = following


def acknowledge_call(request: dict[str, Any]) -> str:
    """Names the call that an acknowledge-request makes."""
    return "acknowledge of a recovery" if request.get("recovery") else "acknowledge"
