"""The protocol's errors, raised."""

from collections.abc import Iterator
from contextlib import contextmanager


class Failure(Exception):
    """An error that the host gets as a value."""

    def __init__(
        self, kind: str, message: str, *, binding: int | None = None, field: str | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.binding = binding
        self.field = field


@contextmanager
def within(binding: int) -> Iterator[None]:
    """Names the binding that an error inside is about."""
    try:
        yield
    except Failure as failure:
        failure.binding = binding
        raise
