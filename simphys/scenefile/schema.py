"""The JSON schema of scene files, by which editors complete and check while one types."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any, Union

from pydantic import TypeAdapter

from simphys.autograd.errors import InputError, StorageError
from simphys.scenefile.section import Problem
from simphys.scenefile.simulators import find_config, known_names


def schema() -> dict[str, Any]:
    """Return the schema of every scene, whichever its simulator; those of installed packages are included."""
    configs = [config for name in known_names() if not isinstance(config := find_config(name), Problem)]
    every_scene: Any = Union[tuple(configs)]  # noqa: UP007 - the types are known at run time only
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **TypeAdapter(every_scene).json_schema()}


def write_schema(path: str | Path) -> None:
    """Write the schema as JSON. Raises InputError where the file cannot be written, StorageError for a full disk."""
    try:
        Path(path).write_text(json.dumps(schema(), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageError(f"{path}: the schema cannot be written: {reason}. Free some space.") from error
        remedy = "Name a file in a folder that exists and can be written."
        raise InputError(f"schema {path}", "must be a file that can be written", reason, remedy) from error
