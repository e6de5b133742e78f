"""The granted directory. Paths are relative to it; WASI's libc finds the grant."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from failure import Failure

# What somebody has to set right; everything else may pass.
CONFIG = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    # What WASI says where Unix says EPERM.
    getattr(errno, "ENOTCAPABLE", errno.EPERM),
}


class Directory:
    def __init__(self, path: str) -> None:
        self.name = path.rstrip("/") or "/"

    def full(self, path: str) -> str:
        return os.path.join(self.name, path) if path else self.name

    @contextmanager
    def _attempt(self, what: str, path: str) -> Iterator[str]:
        try:
            yield self.full(path)
        except OSError as error:
            kind = "config" if error.errno in CONFIG else "transient"
            raise Failure(kind, f"cannot {what} {self.full(path)}: {error.strerror}") from None

    def exists(self, path: str) -> bool:
        with self._attempt("look at", path) as full:
            try:
                os.stat(full)
            except (FileNotFoundError, NotADirectoryError):
                return False
            return True

    def make_folder(self, path: str) -> None:
        """Makes a folder unless it is there, and sees to it that its name is durable."""
        with self._attempt("make the folder", path) as full:
            try:
                os.mkdir(full)
            except FileExistsError:
                pass
        if path:
            self.sync_folder(os.path.dirname(path))

    def list(self, path: str) -> list[str]:
        """Returns the names in a folder, in order; of one that is not there, none."""
        with self._attempt("list", path) as full:
            try:
                return sorted(os.listdir(full))
            except FileNotFoundError:
                return []

    def read(self, path: str) -> str | None:
        """Returns a file's text, or None if there is none."""
        with self._attempt("read", path) as full:
            try:
                with open(full, encoding="utf-8") as file:
                    return file.read()
            except FileNotFoundError:
                return None

    def replace(self, path: str, text: str, unique: str) -> None:
        """Writes a file in place of an older one: readers see the one or the other."""
        draft = self.create(f"{path}.{unique}")
        draft.append(text.encode())
        draft.finish()
        self.rename(f"{path}.{unique}", path)

    def create(self, path: str) -> "NewFile":
        """Opens a new file for appending."""
        with self._attempt("create", path) as full:
            return NewFile(self, path, open(full, "wb", buffering=0))

    def rename(self, source: str, target: str) -> None:
        """Gives a file its place, durably."""
        with self._attempt("rename to", target) as full:
            os.rename(self.full(source), full)
        self.sync_folder(os.path.dirname(target))

    def remove(self, path: str) -> None:
        with self._attempt("remove", path) as full:
            try:
                os.unlink(full)
            except FileNotFoundError:
                pass

    def sync_folder(self, path: str) -> None:
        """Makes names in a folder durable."""
        with self._attempt("sync", path) as full:
            folder = os.open(full, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


class NewFile:
    """A file that is being written."""

    def __init__(self, directory: Directory, path: str, file: BinaryIO) -> None:
        self.directory = directory
        self.path = path
        self._file = file

    def append(self, data: bytes) -> None:
        # The system may take less than it is given.
        rest = memoryview(data)
        while rest:
            with self.directory._attempt("write", self.path):
                written = self._file.write(rest)
            if not written:
                raise Failure("transient", f"cannot write {self.path}: nothing is taken")
            rest = rest[written:]

    def finish(self) -> None:
        """Makes what was written durable, and closes the file."""
        with self.directory._attempt("sync", self.path):
            os.fsync(self._file.fileno())
            self.close()

    def close(self) -> None:
        self._file.close()
