"""Members of a sweep, as a worker does them: exactly once, and recorded as a whole or not at all."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from simphys.autograd.errors import InputError, StorageError

RESULT = "member.json"
FINAL = ("done", "failed")
"""States of a member that stay: another attempt would end in the same way."""


@dataclass(frozen=True, slots=True)
class Job:
    """Order for a member."""

    scene: str
    overrides: tuple[str, ...]
    do: str
    folder: str
    time_limit: float | None = None
    ends: float | None = None
    """When the sweep stops, by `time.time()` [s]; None: when it is done."""
    scratch: str | None = None
    """Folder on a disk of the worker's own, where the member is computed."""


@dataclass(frozen=True, slots=True)
class Task:
    """Members that a worker is given at once."""

    jobs: tuple[Job, ...]
    waits: bool = False
    """True to wait for members that somebody else is doing."""


@dataclass(frozen=True, slots=True)
class Row:
    """The result of a member."""

    status: str
    """done, failed, out of time, out of memory, lost (its worker died), error."""
    reason: str = ""
    values: dict[str, float | str] = field(default_factory=dict)
    seconds: float | None = field(default=None, compare=False)
    """Time that it took, of a launch its part. The table, which is always the same, has it not."""

    @property
    def is_final(self) -> bool:
        return self.status in FINAL


def read_row(folder: str | Path) -> Row | None:
    """Read the result of a member; None if there is none yet, or one that a power failure has cut or damaged.

    Errors: InputError where a folder of that name cannot be read.
    """
    try:
        with open(f"{folder}/{RESULT}", "rb") as file:
            found = json.loads(file.read())
        status, reason, values = found["status"], found["reason"], found["values"]
        seconds = found.get("seconds")
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None
    except OSError as error:
        constraint, remedy = "must be a folder that can be read", "Choose another folder."
        raise InputError(f"sweep, folder {folder}", constraint, error.strerror or str(error), remedy) from error
    if not (isinstance(status, str) and isinstance(reason, str) and isinstance(values, dict)):
        return None
    if not all([isinstance(x, float | int | str) for x in (*values.values(), seconds or 0.0)]):
        return None
    return Row(status, reason, _with_shared_names(values), seconds)


def _with_shared_names(values: dict[str, float | str]) -> dict[str, float | str]:
    """The same values, with names that all rows share in memory."""
    return {sys.intern(name): value for name, value in values.items()}


def replace_text(path: Path, text: str) -> None:
    """Put a file in place of another as a whole, beside other processes that may do the same.

    It is not forced to the disk, which would take longer than a small member: a member that a power failure has cut is
    done again.
    """
    temporary = f"{path.parent}/.{path.name}.{os.getpid()}.{threading.get_ident()}"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        reason = error.strerror or error
        raise StorageError(f"{path} cannot be written: {reason}. Free some space, and run the sweep again.") from error


@contextmanager
def locked(folder: str, *, wait: bool) -> Iterator[bool]:
    """Hold the lock of a member; False if somebody else holds it. It ends with its process, however that ends."""
    if sys.platform == "win32":  # no such lock there
        yield True
        return
    import fcntl

    lock = os.open(f"{folder}/.member", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(lock)
