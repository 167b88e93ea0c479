"""A second thread that tries what the first one does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from simphys.autograd import InputError


class Intruder:
    """A thread that tries something again and again within a `with` block; counts what came of it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.refused, self.other = 0, list[Any]()
        self._work, self._ends = work, threading.Event()
        self._thread = threading.Thread(target=self._run, name="intruder")

    def _run(self) -> None:
        while not self._ends.is_set():
            try:
                self.other.append(self._work())
            except InputError as error:
                self.refused += "Keep to one thread" in str(error)
            except Exception as error:
                self.other.append(error)

    def __enter__(self) -> Intruder:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        self._thread.join()
