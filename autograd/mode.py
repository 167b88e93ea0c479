"""The state of the process: recording on or off, observers, kernel settings, and the number of writes to memory."""

from __future__ import annotations

from contextlib import ContextDecorator
from types import TracebackType
from typing import Any


class _Switch:
    """The state of the process (kernels launch from one thread)."""

    enabled = True
    """True if operations are recorded."""
    observers: tuple[Any, ...] = ()
    """Each a `function.Observer`."""
    session: Any = None
    """Settings that kernels are compiled for, a `kernels.runtime.Session`; None before the first."""
    writes = 0
    """Number of writes to Tensors. Where it has not changed, no version has."""


switch = _Switch()


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


class no_grad(_SetRecording):
    """Context manager and decorator: operations inside are not recorded."""

    _value = False


class enable_grad(_SetRecording):
    """Context manager and decorator: operations inside are recorded, also within a `Function.forward`."""

    _value = True


def is_grad_enabled() -> bool:
    """True if an operation performed now would be recorded."""
    return switch.enabled
