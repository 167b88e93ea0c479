"""The state of the process: recording on or off, observers, kernel settings, and the number of writes to memory."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Generator
from contextlib import ContextDecorator
from types import TracebackType
from typing import Any

from .errors import InputError


class _Switch:
    """The state of the process (kernels launch from one thread)."""

    __slots__ = ("enabled", "observers", "open", "session", "thread", "writes")  # read fast: every node reads them

    def __init__(self) -> None:
        self.enabled = True
        """True if operations are recorded."""
        self.observers: tuple[Any, ...] = ()
        """Each a `function.Observer`."""
        self.session: Any = None
        """Settings that kernels are compiled for, a `kernels.runtime.Session`; None before the first."""
        self.writes = 0
        """Number of writes to Tensors. Where it has not changed, no version has."""
        self.thread = 0
        """Number of the thread that records and launches kernels; 0 before the first."""
        self.open = 0
        """Number of open `writable()` blocks."""


switch = _Switch()


def take_over(source: str) -> None:
    """Make this the thread that records. Errors: InputError while the one before is still alive."""
    other = next((thread for thread in threading.enumerate() if thread.ident == switch.thread), None)
    if other is not None and other is not threading.current_thread():
        found = f"a call in {threading.current_thread().name}, while {other.name} is alive"
        remedy = "Keep to one thread; for work side by side start processes (multiprocessing's spawn)."
        raise InputError(source, "one thread of a process records operations and launches kernels", found, remedy)
    switch.thread = threading.get_ident()


class _SetRecording(ContextDecorator):
    _value: bool

    def __init__(self) -> None:
        self._previous: list[bool] = []  # one object may be entered again inside itself

    def __enter__(self) -> None:
        self._previous.append(switch.enabled)
        switch.enabled = self._value

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        switch.enabled = self._previous.pop()

    def _recreate_cm(self) -> _SetRecording:
        return type(self)()

    def __call__(self, function: Callable[..., Any]) -> Any:
        """Decorate a function, or a generator, in which the mode holds between its yields, too."""
        if not inspect.isgeneratorfunction(function):
            return super().__call__(function)

        @functools.wraps(function)
        def decorated(*arguments: Any, **named: Any) -> Generator[Any, Any, Any]:
            return _run_in(type(self), function(*arguments, **named))

        return decorated


def _run_in(mode: type[_SetRecording], inner: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """The same generator, whose own code runs in a mode, while its caller stays in another."""
    resume, value = inner.send, None
    try:
        while True:
            with mode():
                found = resume(value)
            try:
                resume, value = inner.send, (yield found)
            except GeneratorExit:
                raise
            except BaseException as error:
                resume, value = inner.throw, error
    except StopIteration as end:
        return end.value
    finally:
        with mode():
            inner.close()


class no_grad(_SetRecording):
    """Context manager and decorator: operations inside are not recorded."""

    _value = False


class enable_grad(_SetRecording):
    """Context manager and decorator: operations inside are recorded, also within a `Function.forward`."""

    _value = True


def is_grad_enabled() -> bool:
    """True if an operation performed now would be recorded."""
    return switch.enabled
