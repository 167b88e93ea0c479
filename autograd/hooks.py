"""Hooks: functions of the user's that see, and may replace, what flows through a node in reverse."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .errors import GraphError, InputError

if TYPE_CHECKING:
    from .function import Context
    from .tensor import Tensor

TensorHook = Callable[["Tensor"], "Tensor | None"]
Adjoints = tuple["Tensor | None", ...]
PreHook = Callable[[Adjoints], "Adjoints | None"]
PostHook = Callable[[Adjoints, Adjoints], "Adjoints | None"]

_numbers = itertools.count()


class RemovableHandle:
    """What registering a hook returns: `remove()` takes the hook away; also as a context manager."""

    def __init__(self, table: dict[int, Any], hook: Any) -> None:
        self._table = table
        self._number = next(_numbers)
        table[self._number] = hook

    def remove(self) -> None:
        """Take the hook away; again does nothing."""
        self._table.pop(self._number, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


class Hooks:
    """The hooks of one node, each kind in the order of registration."""

    def __init__(self) -> None:
        self.tensor: dict[int, dict[int, TensorHook]] = {}  # by output index
        self.retained: dict[int, weakref.ref[Tensor]] = {}  # weak: the Tensor holds the node
        self.pre: dict[int, PreHook] = {}
        self.post: dict[int, PostHook] = {}

    def on_tensor(self, index: int, hook: TensorHook) -> RemovableHandle:
        """Register a hook on the adjoint of one output."""
        return RemovableHandle(self.tensor.setdefault(index, {}), _callable(hook))

    def before(self, node: Context, hook: PreHook) -> RemovableHandle:
        """Register a hook on all adjoints that `node` receives."""
        return RemovableHandle(self.pre, _callable(hook))

    def after(self, node: Context, hook: PostHook) -> RemovableHandle:
        """Register a hook on the adjoints that `node` gives."""
        return RemovableHandle(self.post, _callable(hook))

    def run_tensor(self, node: Context, index: int, adjoint: Tensor) -> Tensor:
        """The adjoint of output `index` after the hooks on that Tensor."""
        for hook in tuple(self.tensor.get(index, {}).values()):
            adjoint = _checked(node, hook(adjoint), adjoint)
        return adjoint

    def run_pre(self, node: Context, adjoints: Adjoints) -> Adjoints:
        """The adjoints of all outputs after the node's prehooks."""
        for hook in tuple(self.pre.values()):
            adjoints = _all_checked(node, hook(adjoints), adjoints)
        return adjoints

    def run_post(self, node: Context, results: Adjoints, adjoints: Adjoints) -> Adjoints:
        """The adjoints of all inputs after the node's hooks."""
        for hook in tuple(self.post.values()):
            results = _all_checked(node, hook(results, adjoints), results)
        return results


def _callable(hook: Any) -> Any:
    if not callable(hook):
        raise InputError("register_hook", "a hook is a function", repr(hook), "Pass a function of the adjoint.")
    return hook


def _all_checked(node: Context, replaced: Adjoints | None, adjoints: Adjoints) -> Adjoints:
    if replaced is None:
        return adjoints
    if len(replaced) != len(adjoints):
        raise GraphError(f"a hook on {node.name()} returned {len(replaced)} adjoints for {len(adjoints)}.")
    return tuple(
        [None if new is None else _checked(node, new, old) for new, old in zip(replaced, adjoints, strict=True)]
    )


def _checked(node: Context, replaced: Any, adjoint: Any) -> Any:
    """What a hook returned in place of an adjoint; None in place of one Tensor keeps it."""
    from .tensor import Tensor

    if replaced is None:
        return adjoint
    if not isinstance(replaced, Tensor):
        raise GraphError(f"a hook on {node.name()} returned {replaced!r}. Return a Tensor, or None to change nothing.")
    if adjoint is not None and (replaced.shape != adjoint.shape or replaced.dtype != adjoint.dtype):
        raise GraphError(
            f"a hook on {node.name()} returned {replaced.dtype} of shape {replaced.shape} for an adjoint of "
            f"{adjoint.dtype} of shape {adjoint.shape}. Keep shape and dtype."
        )
    return replaced
