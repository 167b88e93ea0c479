"""A part of a run, such as one of several experiments: recorded below a group of its own, and read like a run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from simphys.record.memory import MemoryRecorder
from simphys.record.recorder import Recorder
from simphys.record.recording import Recording, Store

RunRecorder = Recorder | MemoryRecorder

EXPERIMENTS = "experiments"
"""Group of the experiments of a run."""
SHARED = "unknowns/"
"""Group of what all experiments have in common: the values that were found, from which pictures of each are drawn."""


class PartRecorder:
    """The interface of Recorder for what belongs below a group."""

    folder = None

    def __init__(self, recorder: RunRecorder, group: str) -> None:
        self._recorder, self._group = recorder, group

    @property
    def recording(self) -> Recording:
        return part_of(self._recorder.recording, self._group)

    def append(self, group: str, /, *, units: Mapping[str, str] | None = None, **row: object) -> None:
        self._recorder.append(f"{self._group}/{group}", units=units, **row)

    def extend(
        self, tables: Mapping[str, Mapping[str, object]], *, units: Mapping[str, Mapping[str, str]] | None = None
    ) -> None:
        below = {f"{self._group}/{name}": rows for name, rows in tables.items()}
        self._recorder.extend(below, units={f"{self._group}/{name}": unit for name, unit in (units or {}).items()})

    def discard(self, group: str, /) -> None:
        self._recorder.discard(f"{self._group}/{group}")

    def write(
        self,
        group: str,
        /,
        *,
        attrs: Mapping[str, object] | None = None,
        units: Mapping[str, str] | None = None,
        **arrays: object,
    ) -> None:
        self._recorder.write(f"{self._group}/{group}", attrs=attrs, units=units, **arrays)

    def flush(self) -> None:
        self._recorder.flush()


class PartStore:
    """The contents of a group of a run, and the attributes, the scene and the unknowns of the run itself."""

    def __init__(self, store: Store, group: str) -> None:
        self._store, self._prefix = store, f"{group.strip('/')}/"
        self.part = group.rpartition("/")[2]
        self.name = f"{store.name}, {self.part}"
        self.damage = getattr(store, "damage", "")

    def _path(self, path: str) -> str:
        return path if path in ("", "scene") or path.startswith(SHARED) else f"{self._prefix}{path}"

    def read(self, path: str, every: int = 1) -> np.ndarray:
        return self._store.read(self._path(path), every)

    def row(self, path: str, number: int) -> np.ndarray:
        return self._store.row(self._path(path), number)

    def shape(self, path: str) -> tuple[int, ...]:
        return self._store.shape(self._path(path))

    def paths(self) -> set[str]:
        whole = self._store.paths()
        below = {path.removeprefix(self._prefix) for path in whole if path.startswith(self._prefix)}
        return below | {path for path in whole if path.startswith(SHARED)} | {"scene"}

    def attrs(self, path: str) -> dict[str, object]:
        return self._store.attrs(self._path(path))


def part_of(recording: Recording, group: str) -> Recording:
    """Return the contents of a group of a run as a recording of its own."""
    return Recording(PartStore(recording.store, group))


def list_parts(recording: Recording) -> dict[str, Recording]:
    """Return the experiments of a run by name; none for a run of a single one."""
    return {name: part_of(recording, f"{EXPERIMENTS}/{name}") for name in recording.keys(EXPERIMENTS)}


def name_group(name: str) -> str:
    """Name the group of an experiment."""
    return f"{EXPERIMENTS}/{name}"
