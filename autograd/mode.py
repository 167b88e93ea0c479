"""Whether operations are recorded: the switch that `no_grad` and `enable_grad` turn."""

from __future__ import annotations

from contextlib import ContextDecorator
from types import TracebackType


class _Switch:
    """The state of the one recording switch of the process (kernels launch from one thread)."""

    enabled = True


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
    """Whether an operation performed now would be recorded."""
    return switch.enabled
