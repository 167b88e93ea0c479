"""Members that are computed on a disk of the worker's own, and then copied to the folder of the sweep."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from .member import RESULT, Job


@contextmanager
def in_scratch(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    """The same jobs with folders on the worker's disk, if they have one.

    What an interrupted member has left is copied there before, and all that it has made is copied back at the end, also
    after an error: run.h5 as the last, as it refers to the other files.
    """
    with ExitStack() as stack:
        yield [job if job.scratch is None else stack.enter_context(_moved(job, job.scratch)) for job in jobs]


@contextmanager
def _moved(job: Job, scratch: str) -> Iterator[Job]:
    home = Path(job.folder)
    with tempfile.TemporaryDirectory(prefix="simphys-", dir=scratch) as made:
        local = Path(made)
        for path in _files(home):
            (local / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(home / path, local / path)
        try:
            yield replace(job, folder=made)
        finally:
            files = _files(local)
            for path in sorted(files, key=lambda path: path.name == "run.h5"):
                (home / path).parent.mkdir(parents=True, exist_ok=True)
                temporary = (home / path).with_name(f".{path.name}.{os.getpid()}")
                shutil.copyfile(local / path, temporary)
                temporary.replace(home / path)
            for path in set(_files(home)) - set(files):
                (home / path).unlink()


def _files(folder: Path) -> list[Path]:
    """The files of a run, relative to its folder, without those of the sweep."""
    found = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    return [path for path in found if path.name not in (RESULT, ".member")]
