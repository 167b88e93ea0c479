"""Maps on the engines of sweeps: what a fit or a check computes many times, by several workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from simphys.optimize.mapping import Map

from .sweep.engines import Engine, is_lost, open_engine
from .sweep.spec import EngineSection

ATTEMPTS = 3
"""Number of times that a task is begun whose worker dies."""


def map_on(engine: Engine, in_flight: int) -> Map:
    """Make a map of an engine, which is given so many tasks at once.

    Values come in the order of the arguments, which are taken only as workers become free. Errors of the function are
    raised where its value is due; those of a worker that died after the last of ATTEMPTS.
    """

    def compute(function: Callable[[Any], Any], arguments: Iterable[Any]) -> Iterator[Any]:
        running: deque[tuple[Any, Any]] = deque()
        for argument in arguments:
            running.append((argument, engine.submit(function, argument)))
            if len(running) >= in_flight:
                yield _value(engine, function, *running.popleft())
        while running:
            yield _value(engine, function, *running.popleft())

    return compute


@contextmanager
def open_map(workers: int | None) -> Iterator[Map]:
    """Start a map on so many processes of this machine for a `with` block; None or 1: this process, without engine."""
    if workers in (None, 1):
        yield map
        return
    chosen = EngineSection(kind="processes", workers=workers)
    with open_engine(chosen, Path()) as engine:
        yield map_on(engine, 2 * chosen.workers)


def _value(engine: Engine, function: Callable[[Any], Any], argument: Any, future: Any) -> Any:
    for _ in range(ATTEMPTS - 1):
        try:
            return future.result()
        except Exception as error:
            if not is_lost(error):
                raise
            future = engine.submit(function, argument)
    return future.result()
