"""Writing a run to disk."""

from __future__ import annotations

import json
import os
import re
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import numpy as np

from simphys._version import __version__
from simphys.autograd.errors import InputError, StorageError
from simphys.record import folder as run_folder
from simphys.record.contents import require_rows, require_whole
from simphys.record.index import INDEX_NAME, SEGMENT_FOLDER, Index, Source, load_index
from simphys.record.merging import merge
from simphys.record.recording import Recording
from simphys.record.storage import build_segment, link_file, open_file, replace_file, to_storable
from simphys.record.table import Table, collect_rows

FLUSH_SECONDS = 2.0
SEGMENT_BYTES = 32 << 20  # buffered rows are flushed at this size; smaller segments are merged up to it


class Recorder:
    """Recorder of a run in `folder`; a kill at any moment leaves all flushed data readable.

    A table grows by `append`, one row at a time; rows are buffered and flushed by themselves once they are 2 s old
    (seen at the next append) or 32 MiB large, and by `flush`. Static datasets go to disk at once by `write`.
    A `with` block that ends without an error completes the run, see `close`; otherwise it can be resumed.

    kind: "run" or "optimize"; provenance: seed, arch, versions and the like (numbers, text, or a dict, kept as JSON);
    scene: the resolved scene. resume=True continues the tables of the run in `folder`, if there is one;
    overwrite=True replaces it; otherwise an existing run is an InputError, like a folder that cannot be written.
    StorageError: the disk is full; rows not yet written are kept and tried again at the next flush.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        kind: str,
        provenance: Mapping[str, object],
        scene: Mapping[str, object],
        resume: bool = False,
        overwrite: bool = False,
    ) -> None:
        self.folder = Path(folder)
        self._segments = self.folder / SEGMENT_FOLDER
        self._tables: dict[str, Table] = {}
        self._pending_bytes = 0
        self._flushed_at = time.monotonic()
        run_folder.prepare(self.folder, self._segments)
        self._lock = run_folder.take_lock(self.folder, self._segments)
        try:
            self._index = Index() if overwrite else self._load_earlier(kind, resume)
            self._begin(kind, provenance, scene)
        except BaseException:
            run_folder.remove_segments(self._segments)
            self._unlock()
            raise

    def _begin(self, kind: str, provenance: Mapping[str, object], scene: Mapping[str, object]) -> None:
        present = {path.name for path in self._segments.iterdir() if is_segment(path)}
        self._number = max((_number(name) for name in present | self._index.segments()), default=0)
        text = {n: json.dumps(v) if isinstance(v, Mapping) else v for n, v in provenance.items()}
        # An array of one element: only arrays may have any size under a checksum.
        self._write("", {"kind": kind, **text}, {"scene": [json.dumps(scene)]}, {}, also=_h5md_groups())

    def append(self, group: str, /, *, units: Mapping[str, str] | None = None, **row: object) -> None:
        """Add one row to the table `group`: one array (or number) a column, [shape of the column].

        Columns, shapes and types are those of the table's first row (a later one may be of a type that converts
        without loss); units[column], given with the first row, becomes the attribute "unit".
        """
        rows = {name: np.asarray(value)[None] for name, value in row.items()}
        self.extend({group: rows}, units={group: units or {}})

    def extend(
        self, tables: Mapping[str, Mapping[str, object]], *, units: Mapping[str, Mapping[str, str]] | None = None
    ) -> None:
        """Append several rows at once, [rows, *shape of the column] each, to one or more tables, by their groups.

        An interrupt leaves the rows in all of the tables or in none.
        """
        for table, part in collect_rows(tables, units or {}, self._find_table):
            table.parts.append(part)
            self._tables[table.group] = table
            self._pending_bytes += sum(array.nbytes for array in part.values())
        if self._pending_bytes >= SEGMENT_BYTES or time.monotonic() - self._flushed_at >= FLUSH_SECONDS:
            self.flush()

    def _find_table(self, group: str) -> Table | None:
        """Find the table of a group, if it has rows already."""
        known = self._index.table(group)
        return self._tables.get(group) or (Table(group, known) if known else None)

    def discard(self, group: str, /) -> None:
        """Delete everything recorded in `group` and below, by this run or by the one that it resumes."""
        below = group.strip("/") + "/"
        self._tables = {name: table for name, table in self._tables.items() if not f"{name}/".startswith(below)}
        columns = {path: c for path, c in self._index.columns.items() if not path.startswith(below)}
        statics = {path: s for path, s in self._index.statics.items() if not path.startswith(below)}
        attrs = {name: a for name, a in self._index.attrs.items() if not f"{name}/".startswith(below)}
        index = Index(columns, statics, attrs)
        if index != self._index:
            self._replace(self.folder / INDEX_NAME, index.to_bytes(), f"the end of {group}")
            self._index = index
            self._remove_unused(index)

    def write(
        self,
        group: str,
        /,
        *,
        attrs: Mapping[str, object] | None = None,
        units: Mapping[str, str] | None = None,
        **arrays: object,
    ) -> None:
        """Store static datasets (numbers, booleans, text) and attributes of a group, at once and durably.

        Replaces what an earlier write put in this group. units[name] becomes the dataset's attribute "unit".
        """
        self._write(group.strip("/"), attrs or {}, arrays, units or {}, also={})

    def flush(self) -> None:
        """Make every row appended so far durable."""
        if self._tables:
            try:
                index = self._add_rows(list(self._tables.values()))
            except FileNotFoundError as error:
                raise self._vanished(error) from error
            # One statement: an interrupt in between would drop or double the rows.
            self._index, self._tables = index, {}
            self._pending_bytes = 0
            self._remove_unused(self._index)
        self._flushed_at = time.monotonic()

    @property
    def recording(self) -> Recording:
        """The flushed part of the run."""
        return Recording(self.folder)

    def close(self) -> None:
        """End a complete run: flush, merge everything into one file, and release the folder.

        Where there is no room for that file a warning says so: the run is recorded all the same, in segments.
        """
        try:
            self.flush()
            self._merge()
        finally:
            self._unlock()

    def suspend(self) -> None:
        """End a run that is not complete: flush, and release the folder. The segments stay."""
        try:
            self.flush()
        finally:
            self._unlock()

    def _merge(self) -> None:
        try:
            index = merge(self.folder, self._index)
        except OSError as error:
            warnings.warn(
                f"{self.folder / INDEX_NAME} cannot be merged into one file: {error.strerror or error}. "
                f"The run is recorded completely, in {self._segments}: copy or move the whole folder.",
                stacklevel=3,
            )
            return
        self._index = index
        self._remove_unused(index)
        run_folder.remove_segments(self._segments)

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.suspend()

    def _load_earlier(self, kind: str, resume: bool) -> Index:
        if not resume or not (self.folder / INDEX_NAME).exists():
            require_no_run(self.folder)
            return Index()
        index = load_index(self.folder / INDEX_NAME)
        recorded = index.attrs.get("", {}).get("kind")
        if recorded != kind:
            found = "no kind" if recorded is None else f"kind {recorded!r}"
            source, constraint = f"output folder {self.folder}", f"must hold a run of kind {kind!r} to resume"
            raise InputError(source, constraint, found, "Choose another output.folder.")
        self._require_segments(index)
        self._remove_unused(index)  # first, as these files may be what fills a full disk
        return index if index.segments() else self._split(index)

    def _require_segments(self, index: Index) -> None:
        """Raise StorageError if a segment is missing: what is added now could not be read, nor told from it later."""
        missing = sorted(name for name in index.segments() if not (self._segments / name).is_file())
        if missing:
            raise StorageError(
                f"{self._segments / missing[0]} is missing, though {self.folder / INDEX_NAME} refers to it, so the run "
                "cannot be resumed. Restore it from a copy, or begin anew with --overwrite (in Python overwrite=True)."
            )

    def _split(self, index: Index) -> Index:
        """Turn the one file of a complete run into a segment, so that rows can be added; return the new index."""
        name, path = "000001.h5", self.folder / INDEX_NAME
        index = index.within(name)
        try:
            link_file(path, self._segments / name)
            replace_file(path, index.to_bytes())
        except OSError as error:
            message = f"{path} cannot be resumed: {error.strerror or error}. It is unchanged. Free some space there."
            raise StorageError(message) from error
        return index

    def _write(
        self,
        group: str,
        attrs: Mapping[str, object],
        arrays: Mapping[str, object],
        units: Mapping[str, str],
        *,
        also: Mapping[str, Mapping[str, object]],
    ) -> None:
        """Write like `write`, with attributes of further groups in the same change of the index."""
        prefix = f"{group}/".lstrip("/")
        datasets = {f"{prefix}{name}": to_storable(value) for name, value in arrays.items()}
        statics = {p: s for p, s in self._index.statics.items() if p.rpartition("/")[0] != group}
        what = f"{', '.join(arrays)} of {group or 'the run'}" if arrays else f"attributes of {group}"
        if datasets:
            dataset_attrs = {f"{prefix}{name}": {"unit": unit} for name, unit in units.items()}
            segment = self._new_segment(build_segment(datasets, dataset_attrs), what)
            statics |= dict.fromkeys(datasets, segment)
        groups = {**self._index.attrs, group: dict(attrs), **{name: dict(a) for name, a in also.items()}}
        index = replace(self._index, statics=statics, attrs=groups)
        self._replace(self.folder / INDEX_NAME, index.to_bytes(), what)
        self._index = index
        self._remove_unused(self._index)

    def _add_rows(self, tables: list[Table]) -> Index:
        """Write the rows, and the index that refers to them; returns that index.

        The last segments are merged with the new rows while they are not larger than these. So the number of segments
        grows with the logarithm of the rows, and so does the number of times that a row is written.
        """
        what = ", ".join(f"{table.count} rows of {table.group}" for table in tables)
        columns = {f"{table.group}/{name}": column for table in tables for name, column in table.columns.items()}
        datasets = {f"{table.group}/{name}": table.column(name) for table in tables for name in table.columns}
        content = build_segment(datasets)
        absorbed: list[str] = []
        size = len(content)
        for segment, its_size in reversed(self._row_segments()):
            if its_size > 2 * size or size >= SEGMENT_BYTES:
                break
            absorbed.insert(0, segment)
            size += its_size
        index_columns = {path: c.without(set(absorbed)) for path, c in {**columns, **self._index.columns}.items()}
        if absorbed:
            datasets = self._merged(absorbed, datasets)
            content = build_segment(datasets)
        segment = self._new_segment(content, what)
        for path, rows in datasets.items():
            index_columns[path] = index_columns[path].followed_by(Source(segment, len(rows)))
        index = replace(self._index, columns=index_columns)
        self._replace(self.folder / INDEX_NAME, index.to_bytes(), what)
        return index

    def _row_segments(self) -> list[tuple[str, int]]:
        """List names and sizes [bytes] of the segments that hold rows, in the order of their rows."""
        names = {source.segment for column in self._index.columns.values() for source in column.sources}
        return [(name, (self._segments / name).stat().st_size) for name in sorted(names, key=_number)]

    def _merged(self, absorbed: list[str], datasets: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Read the rows of the segments `absorbed`, and append `datasets`. Errors: StorageError for damaged files."""
        parts: dict[str, list[np.ndarray]] = {}
        for segment in absorbed:
            with open_file(self._segments / segment) as file:
                for path, column in self._index.columns.items():
                    if any(source.segment == segment for source in column.sources):
                        require_whole(file[path])
                        require_rows(file[path], column, ())
                        parts.setdefault(path, []).append(file[path][()])
        for path, rows in datasets.items():
            parts.setdefault(path, []).append(rows)
        return {path: np.concatenate(arrays) for path, arrays in parts.items()}

    def _new_segment(self, content: bytes, what: str) -> str:
        self._number += 1
        name = f"{self._number:06d}.h5"
        self._replace(self._segments / name, content, what)
        return name

    def _replace(self, path: Path, content: bytes, what: str) -> None:
        try:
            replace_file(path, content)
        except FileNotFoundError as error:
            raise self._vanished(error) from error
        except OSError as error:
            safe = {path.rpartition("/")[0]: column.rows for path, column in self._index.columns.items()}
            rows = ", ".join(f"{count} rows of {group}" for group, count in safe.items())
            raise StorageError(
                f"{path} cannot be written ({what}): {error.strerror}. "
                f"What was recorded before is safe in {self.folder / INDEX_NAME}: {rows or 'no rows yet'}. "
                "Free some space there or choose another output.folder, then resume."
            ) from error

    def _vanished(self, error: FileNotFoundError) -> StorageError:
        missing = error.filename or error
        return StorageError(
            f"{missing} is missing: somebody has removed or moved files of {self.folder} while the run was recorded "
            "there. Put them back and resume, or begin anew in another output.folder."
        )

    def _remove_unused(self, index: Index) -> None:
        """Delete the segments that the index on disk does not refer to, and half-written files left by a kill."""
        used = index.segments()
        for path in self._segments.iterdir():
            if path.name not in used and is_segment(path.with_name(path.name.removesuffix(".tmp"))):
                path.unlink(missing_ok=True)


def is_segment(path: Path) -> bool:
    """True for a file named like a segment, 000001.h5; others in that folder belong to the user."""
    return re.fullmatch(r"\d{6,}\.h5", path.name) is not None


def _holds_data(segments: Path) -> bool:
    """True if there are segments, but for one with a scene alone: a run was killed before it had a run.h5."""
    found = sorted(filter(is_segment, segments.glob("*.h5")))
    if len(found) != 1:
        return bool(found)
    try:
        with open_file(found[0]) as file:
            return list(file) != ["scene"]
    except StorageError:
        return True


def require_no_run(folder: Path) -> None:
    """Raise InputError if the folder holds a run, or the segments of one."""
    try:
        found = f"{INDEX_NAME} there" if (folder / INDEX_NAME).exists() else ""
    except OSError as error:  # a name that no folder can have
        reason, remedy = error.strerror or str(error), "Name another one (output.folder=PATH)."
        raise InputError(f"output folder {folder}", "must be a folder that can be written", reason, remedy) from error
    if not found and _holds_data(folder / SEGMENT_FOLDER):
        found = f"{SEGMENT_FOLDER}/ of a run there, whose {INDEX_NAME} is missing"
    if found:
        raise InputError(
            f"output folder {folder}",
            "must not hold a run already",
            found,
            "Pass --overwrite (in Python overwrite=True) to replace it (only a fit replaces a fit), --resume "
            "(resume=True) to continue a fit, or choose another folder: output.folder=PATH (folder=PATH).",
        )


def _number(segment: str) -> int:
    return int(Path(segment).stem)


def _h5md_groups() -> dict[str, dict[str, object]]:
    """Return the groups that H5MD 1.1 requires (nongnu.org/h5md): version, author, creator, the module of units."""
    return {
        "h5md": {"version": [1, 1]},
        "h5md/author": {"name": "unknown"},
        "h5md/creator": {"name": "simphys", "version": __version__},
        "h5md/modules/units": {"version": [1, 0]},
    }
