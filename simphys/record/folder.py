"""The folder of a run: made, tested for permission to write, and locked for one writer."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path

from simphys.autograd.errors import InputError, StorageError
from simphys.record.index import INDEX_NAME, load_index

LOCK = ".lock"


def prepare(folder: Path, segments: Path) -> None:
    """Make the folder of a run and, in it, the folder of its segments. Errors: InputError, StorageError."""
    source, constraint = f"output folder {folder}", "must be a folder that can be written"
    remedy = "Name another one (output.folder=PATH) or give yourself the right to write there."
    try:
        segments.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a null byte
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageError(f"{source} cannot be made: {error.strerror}. Free some space.") from error
        raise InputError(source, constraint, str(error), remedy) from error
    if not os.access(folder, os.W_OK | os.X_OK) or not os.access(segments, os.W_OK | os.X_OK):
        raise InputError(source, constraint, "no permission to write", remedy)


def require_no_fit(folder: Path) -> None:
    """Raise InputError if the folder holds a fit, which a simulation must not replace: it may have taken hours."""
    try:
        recorded = load_index(folder / INDEX_NAME, cut_off=True).attrs.get("", {}).get("kind")
    except (OSError, StorageError):  # no run, or none that can be read
        return
    if recorded == "optimize":
        raise InputError(
            f"output folder {folder}",
            "must not hold a fit, which a simulation does not overwrite",
            f"a fit in {INDEX_NAME} there",
            "Choose another folder: output.folder=PATH (in Python folder=PATH). `simphys optimize SCENE --overwrite` "
            "replaces the fit by another one.",
        )


def take_lock(folder: Path, segments: Path) -> int | None:
    """Lock out a second writer for as long as the returned file descriptor is open or this process lives."""
    if sys.platform == "win32":  # no such lock there
        return None
    import fcntl

    while True:
        try:
            lock = os.open(segments / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # a run that was just completed has removed its segments
            prepare(folder, segments)
            continue
        except OSError as error:
            message = f"output folder {folder} cannot be written: {error.strerror}. Free some space."
            raise StorageError(message) from error
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
            return lock  # a file system without locks
        if _is_same_file(lock, segments / LOCK):
            return lock
        os.close(lock)  # of a run that has completed meanwhile, and removed it


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def remove_segments(segments: Path) -> None:
    """Remove the folder of segments unless it holds some; only the owner of the lock may do so."""
    if any(path.name != LOCK for path in segments.iterdir()):
        return
    (segments / LOCK).unlink(missing_ok=True)
    with suppress(OSError):  # another writer has put its lock there meanwhile
        segments.rmdir()
