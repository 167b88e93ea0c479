"""Compiled kernels in Quadrants' cache on disk, found by their fingerprints: the front end need not run again.

The cache knows kernels by what its front end makes of them, which takes as long as all the rest. So the name that it
has for a kernel is stored beside it, in a file named by the kernel's fingerprint.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from . import runtime

FOLDER = "simphys"

verifying = False
"""True to compile each kernel as if it were not stored, and to raise if its name in the cache is not the stored one."""


class WrongFingerprint(AssertionError):
    """Two kernels have the same fingerprint."""


def circumstances(config: Any) -> dict[str, Any]:
    """Return the compiler's options, but for paths."""
    names = [name for name in dir(config) if not name.startswith("_") and "path" not in name]
    named = {name: getattr(config, name) for name in names}
    plain = {name: value for name, value in named.items() if isinstance(value, bool | int | float | str)}
    return plain | {name: str(value) for name, value in named.items() if name not in plain}


def load(mark: str | None, program: Any, name: str) -> Any:
    """Return the compiled kernel of a fingerprint; None if there is none, or if the cache has dropped it."""
    if mark is None or verifying or runtime.compiler != "quadrants":
        return None
    key = _read(_place(program.config(), mark))
    return None if key is None else program.load_fast_cache(key, name, program.config(), program.get_device_caps())


def store(mark: str | None, program: Any, key: str) -> None:
    """Store the name that the cache has for a kernel. Errors: WrongFingerprint, where this is verified."""
    if mark is None or runtime.compiler != "quadrants" or not program.config().offline_cache:
        return
    place = _place(program.config(), mark)
    known = _read(place)
    if verifying and known not in (None, key):
        raise WrongFingerprint(f"the kernel of fingerprint {mark} is {known} in the cache, and now {key}")
    if known != key:
        _write(place, key)


def _place(config: Any, mark: str) -> Path:
    return Path(config.offline_cache_file_path) / FOLDER / mark


def _read(place: Path) -> str | None:
    try:
        return place.read_text() or None
    except OSError:
        return None


def _write(place: Path, text: str) -> None:
    """Write a file at once, so that nobody reads half of it; do nothing where the folder cannot be written."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place.parent)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(temporary, place)
    except OSError:
        return
