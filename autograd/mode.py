"""What holds for the whole process: whether operations are recorded, and who watches them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ContextDecorator
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .function import Context
    from .tensor import Tensor


class Observer:
    """Told of each application of a Function and of each call of a backward, while it is among `switch.observers`.

    Leaves' AccumulateGrad nodes are not reported. When forward or backward raises, `failed` comes instead of `after_*`.
    """

    def before_forward(self, ctx: Context, inputs: tuple[Any, ...]) -> None:
        """`inputs` is what apply was given; a node that is recorded has its edges and sequence."""

    def after_forward(self, ctx: Context, inputs: tuple[Any, ...], outputs: tuple[Tensor, ...]) -> None:
        """The outputs are linked to the node."""

    def before_backward(self, node: Context, adjoints: Sequence[Any]) -> None:
        """One adjoint for each output, an array or a Tensor, or None."""

    def after_backward(self, node: Context, adjoints: Sequence[Any], results: Sequence[Any]) -> None:
        """One result for each input, an array or a Tensor, or None."""

    def failed(self, node: Context) -> None:
        """Forward or backward of this node raised an error."""


class _Switch:
    """The state of the process (kernels launch from one thread)."""

    enabled = True  # operations are recorded
    observers: tuple[Observer, ...] = ()
    session: Any = None  # settings that kernels are compiled for, a `kernels.runtime.Session`; None before the first
    writes = 0  # how many writes to Tensors there were: a change tells that a look at versions is due


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
