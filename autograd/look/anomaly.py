"""Anomaly mode: the first NaN or inf, forward or backward, raises an error with the line of user code that made it."""

from __future__ import annotations

import hashlib
import linecache
import sys
from collections.abc import Sequence
from contextlib import ContextDecorator
from functools import cache
from types import FrameType, TracebackType
from typing import Any, Literal, NamedTuple

import numpy as np

from ..context import Context
from ..errors import GraphError, Portable
from ..function import Observer
from ..mode import switch
from ..node import Node
from ..tensor import Tensor

Phase = Literal["forward", "incoming", "backward", "saved"]

_ON_DERIVATIVE = (
    "The incoming adjoints are finite: the derivative has no value there (as that of sqrt at 0) or overflows, or "
    "backward (or a hook) is wrong. Keep the inputs where it is finite, or correct backward."
)
_ON_SEED = "No node gave it: it is the seed of backward, or a hook made it. Pass a finite seed, or correct the hook."
_ON_SUM = "Each node gave a finite part: the sum overflows, or a hook made it. Scale the loss, or correct the hook."

_FRAMES = 5
_NOT_USER_CODE = ("simphys.autograd", "numpy", "contextlib")  # the last two call ours: array dispatch, decorators


class detect_anomaly(ContextDecorator):
    """Context manager and decorator: the first NaN or inf in a floating-point result raises `AnomalyError`.

    Forward, it checks every output of every Function, recorded or not. Backward, it checks the adjoints that arrive at
    a node, and the adjoint of each input that requires a gradient. Functions that run inside another (in a combined
    node, or in its replay) are checked as well, so the innermost is reported. A sum of finite gradients that overflows
    in a leaf is not found. Errors name a place in user code only for nodes made inside the mode.

    No version guards saved Tensors that share memory with other libraries. Their checksums are taken after forward and
    compared before backward; a difference raises, too. All of this costs time: use it to find a fault.
    """

    def __init__(self) -> None:
        self._entered: list[_Checker | None] = []  # one object may be entered again inside itself

    def __enter__(self) -> None:
        active = any([isinstance(observer, _Checker) for observer in switch.observers])
        checker = None if active else _Checker()
        if checker is not None:
            switch.observers = (*switch.observers, checker)
        self._entered.append(checker)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        checker = self._entered.pop()
        switch.observers = tuple([observer for observer in switch.observers if observer is not checker])


class Place(NamedTuple):
    """A line of user code."""

    file: str
    line: int
    function: str

    @property
    def source(self) -> str:
        """The text of the line, as the file is now; empty without a file."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}" + (f": {self.source}" if self.source else "")


class AnomalyError(Portable, GraphError):
    """A NaN or inf, or shared memory that changed between forward and backward.

    function  name of the Function
    phase     "forward", "backward", "incoming" (an adjoint that arrives at backward, a seed or a sum), "saved"
    position  number of the output (forward, incoming), of the input (backward), or of the saved value
    index     index of the first element that is not finite; None in phase "saved"
    value     value of that element; None in phase "saved"
    where     the line of user code that applied the Function; None if that was before the mode was entered
    stack     that line and its callers, the outermost first: user code only, the innermost few
    """

    def __init__(
        self, message: str, node: Node, phase: Phase, position: int, bad: _Nonfinite | None, stack: tuple[Place, ...]
    ) -> None:
        super().__init__(message)
        self.function = _function(node)
        self.phase = phase
        self.position = position
        self.index = None if bad is None else bad.at
        self.value = None if bad is None else bad.value
        self.stack = stack
        self.where = stack[-1] if stack else None


class _Nonfinite(NamedTuple):
    """The first element of an array that is NaN or inf."""

    at: tuple[int, ...]
    value: float

    def __str__(self) -> str:
        return f"{self.value} at index {self.at}" if self.at else f"{self.value}"


class _Notes:
    """Notes of the mode about a node."""

    def __init__(self, stack: tuple[Place, ...] = (), outer: tuple[str, _Notes] | None = None) -> None:
        self.stack = stack
        self.outer = outer  # the Function that ran when the node was made, its direction, and its notes
        self.checksums: dict[int, tuple[int, bytes]] = {}  # version and checksum of shared memory, by saved position
        self.reached: set[int] = set()  # outputs whose adjoint another node gave


class _Checker(Observer):
    """Observer that checks results, with a stack of the running Functions inside which nodes are made."""

    def __init__(self) -> None:
        self._running: list[tuple[Node, str]] = []

    def before_forward(self, ctx: Context, inputs: tuple[Any, ...]) -> None:
        outer = None
        if self._running:
            node, direction = self._running[-1]
            outer = f"{_function(node)}, {direction}", _notes(node)
        ctx._anomaly_notes = _Notes(_user_stack(), outer)
        self._running.append((ctx, "forward"))

    def after_forward(self, ctx: Context, inputs: tuple[Any, ...], outputs: tuple[Tensor, ...]) -> None:
        self._leave(ctx)
        for position, output in enumerate(outputs):
            bad = _first_nonfinite(output)
            if bad is not None:
                found = f"output {position} (shape {output.shape}) is {bad}"
                raise self._error(ctx, "forward", position, bad, found, _advice_on_inputs(ctx, inputs, outputs))
        notes = _notes(ctx)
        for position, value in enumerate(ctx._saved):
            if isinstance(value, Tensor) and getattr(value, "_shared", False):
                notes.checksums[position] = value.version, _checksum(value)

    def before_backward(self, node: Node, adjoints: Sequence[Any]) -> None:
        notes = _notes(node)
        reached, notes.reached = notes.reached, set()
        for position, (version, checksum) in notes.checksums.items():
            value = node._saved[position]
            if value.version == version and _checksum(value) != checksum:  # for another version the node itself raises
                found = (
                    f"saved value {position} (shape {value.shape}) was changed after forward, through memory that it "
                    "shares with the outside"
                )
                advice = "Leave that memory alone until backward is done, or let the Tensor have a copy of it."
                raise self._error(node, "saved", position, None, found, advice)
        for position, adjoint in enumerate(adjoints):
            bad = _first_nonfinite(adjoint)
            if bad is not None:
                found = f"the incoming adjoint of output {position} (shape {node.outputs[position][0]}) is {bad}"
                advice = _ON_SUM if position in reached else _ON_SEED
                raise self._error(node, "incoming", position, bad, found, advice)
        self._running.append((node, "backward"))

    def after_backward(self, node: Node, adjoints: Sequence[Any], results: Sequence[Any]) -> None:
        self._leave(node)
        for position, (edge, result) in enumerate(zip(node.edges, results, strict=False)):
            if not edge or result is None:
                continue
            upstream, index = edge
            bad = _first_nonfinite(result)
            if bad is not None:
                found = f"the adjoint of input {position} (shape {upstream.outputs[index][0]}) is {bad}"
                raise self._error(node, "backward", position, bad, found, _ON_DERIVATIVE)
            _notes(upstream).reached.add(index)

    def failed(self, node: Node) -> None:
        self._leave(node)

    def _leave(self, node: Node) -> None:
        """Remove the node from the stack, with the nodes inside it, which failed if they are still there."""
        for position, (running, _) in reversed(list(enumerate(self._running))):
            if running is node:
                del self._running[position:]
                return

    def _error(
        self, node: Node, phase: Phase, position: int, bad: _Nonfinite | None, found: str, advice: str
    ) -> AnomalyError:
        notes = _notes(node)
        direction = "forward" if phase == "forward" else "backward"
        lines = [f"{_function(node)}, {direction}: {found}.", *_describe_place(notes.stack)]
        outer = notes.outer
        while outer is not None:
            lines.append(f"  inside {outer[0]}:\n  {_describe_place(outer[1].stack)[0]}")
            outer = outer[1].outer
        return AnomalyError("\n".join([*lines, advice]), node, phase, position, bad, notes.stack)


def _function(node: Node) -> str:
    return node.name().removesuffix("Backward")


def _notes(node: Node) -> _Notes:
    """The notes about a node; without a place if it was made outside the mode."""
    notes: _Notes | None = vars(node).get("_anomaly_notes")
    if notes is None:
        notes = node._anomaly_notes = _Notes()
    return notes


def _first_nonfinite(values: Any) -> _Nonfinite | None:
    """The first NaN or inf of an array, Tensor or float; None for other values."""
    if isinstance(values, Tensor):
        values = values.data
    elif not isinstance(values, np.ndarray | np.generic | float):
        return None
    array = np.asarray(values)
    if array.dtype.kind not in "fc":
        return None
    finite = np.isfinite(array)
    if finite.all():
        return None
    index = tuple([int(i) for i in np.unravel_index(int(np.argmin(finite)), array.shape)])
    return _Nonfinite(index, array[index].item())


def _advice_on_inputs(ctx: Context, inputs: Sequence[Any], outputs: Sequence[Tensor]) -> str:
    """Advice for a bad output: is an input bad already? Inputs that forward wrote to are not checked."""
    written = [isinstance(x, Tensor) and any([x.data is y.data for y in outputs]) for x in inputs]
    for position, value in enumerate(inputs):
        bad = None if written[position] else _first_nonfinite(value)
        if bad is not None:
            return f"Input {position} is {bad} already: correct its source."
    finite = "Its other inputs are finite" if any(written) else "Its inputs are finite"
    return f"{finite}: keep them where {_function(ctx)} is defined and does not overflow, or correct its forward."


def _describe_place(stack: tuple[Place, ...]) -> list[str]:
    if not stack:
        return ["  applied before anomaly mode was entered, so without a place: run forward inside detect_anomaly()"]
    *callers, where = stack
    return [f"  applied at {where}", *[f"    called from {place}" for place in reversed(callers)]]


def _user_stack() -> tuple[Place, ...]:
    """The innermost frames of user code, the outermost first."""
    places: list[Place] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(places) < _FRAMES:
        if not _is_package_code(frame.f_globals.get("__name__", "")):
            places.append(Place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return tuple(reversed(places))


@cache
def _is_package_code(module: str) -> bool:
    return any([module == package or module.startswith(f"{package}.") for package in _NOT_USER_CODE])


def _checksum(value: Tensor) -> bytes:
    flat = np.ascontiguousarray(value.data).reshape(-1)
    return hashlib.blake2b(flat.view(np.uint8).data, digest_size=16).digest()
