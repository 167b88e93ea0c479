"""The folder of a run: made, proven writable, and kept to one writer."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

from simphys.autograd.errors import InputError, StorageError


def prepare(folder: Path, segments: Path) -> None:
    """Make the folder of a run and, in it, that of its segments."""
    who, constraint = f"output folder {folder}", "must be a folder that can be written"
    remedy = "Name another one (output.folder=PATH) or give yourself the right to write there."
    try:
        segments.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageError(f"{who} cannot be made: {error.strerror}. Free some space.") from error
        raise InputError(who, constraint, str(error), remedy) from error
    if not os.access(folder, os.W_OK | os.X_OK) or not os.access(segments, os.W_OK | os.X_OK):
        raise InputError(who, constraint, "no permission to write", remedy)


def take_lock(folder: Path, segments: Path) -> int | None:
    """Keep a second writer out for as long as the returned file descriptor is open or this process lives."""
    if sys.platform == "win32":  # no such lock there
        return None
    import fcntl

    try:
        lock = os.open(segments / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise StorageError(f"output folder {folder} cannot be written: {error.strerror}. Free some space.") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise InputError(
            f"output folder {folder}",
            "must not be in use by another run",
            "a process that is recording there",
            "Wait for it, stop it, or choose another output.folder.",
        ) from None
    except OSError:
        pass  # a file system that knows no locks
    return lock
