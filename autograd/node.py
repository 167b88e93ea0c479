"""`Node`: one application of a Function in the graph, with edges to the nodes of its inputs, and its hooks."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .errors import InputError

Edge = tuple["Node", int]
"""The node that made a Tensor, and the number of that output."""

NO_TENSOR: tuple[()] = ()
"""The entry of `Node.edges` for an input that is no Tensor."""

Outputs = tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]
"""Shape and dtype of each output."""

Adjoints = tuple[Any, ...]
PreHook = Callable[[Adjoints], Adjoints | None]
PostHook = Callable[[Adjoints, Adjoints], Adjoints | None]

FREED = (
    "{}: its saved state was freed by an earlier backward through it. "
    "Pass retain_graph=True to that backward, or run forward again."
)

sequence = itertools.count(1)
_leaf_sequence = itertools.count(-1, -1)
_hook_numbers = itertools.count()


class Node:
    """One application of a Function. `grad_fn` of a result is the node that made it.

    Slots hold what each backward reads; the rest, seldom set, has defaults in the class.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_dirty",
        "_hooks",
        "_saved",
        "_session",
        "_taken",
        "_versions",
        "_writes",
        "edges",
        "freed",
        "function",
        "outputs",
        "sequence",
    )

    function: Any
    """The Function (a class) that was applied; None for the node of a leaf."""
    is_accumulator = False
    sequence: int
    """Order of creation: every node is younger than its inputs, so descending order is topological."""
    edges: Sequence[Edge | tuple[()] | None]
    """One entry for each input: an edge, None for a Tensor without a gradient, NO_TENSOR for anything else."""
    outputs: Outputs
    constants: Sequence[Any] = ()
    """Shape and dtype of each input that is a constant for which jvp gets zeros, else None; () without constants."""
    freed: bool
    _hooks: Hooks | None
    _saved: tuple[Any, ...]
    _versions: Sequence[int]  # of the saved values, if there are any; () where all are 0
    _writes: int  # switch.writes when the values were saved, if there are any
    _taken: Sequence[int]  # positions in _saved of arrays that became Tensors
    _dirty: tuple[Any, ...]  # inputs that forward wrote to
    _materialize_grads = True
    _session: Any  # settings in force at the end of forward, in which backward and jvp run, too

    if TYPE_CHECKING:  # attributes that a Function sets for itself

        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: Any) -> None: ...

    def name(self) -> str:
        """The name as in PyTorch, without its numeric suffix: MulBackward, SumBackward; AccumulateGrad for a leaf."""
        return f"{self.function.__name__}Backward"

    def parents(self) -> list[Edge]:
        """The edges along which gradients flow."""
        return [edge for edge in self.edges if edge]

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The node and output number of each Tensor among the inputs; (None, 0) where no gradient flows."""
        return tuple([edge or (None, 0) for edge in self.edges if edge != NO_TENSOR])

    @property
    def hooks(self) -> Hooks:
        """The hooks of this node, to add to."""
        if self._hooks is None:
            self._hooks = Hooks()
        return self._hooks

    def register_hook(self, hook: PostHook) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after this node's backward; it may return other grad_inputs."""
        return self.hooks.add(self.hooks.post, hook)

    def register_prehook(self, hook: PreHook) -> RemovableHandle:
        """Call `hook(grad_outputs)` before this node's backward; it may return others in their place."""
        return self.hooks.add(self.hooks.pre, hook)

    def free(self) -> None:
        """Drop the saved tensors and the links to earlier nodes."""
        self.edges = self._saved = ()
        self.freed = True

    def __repr__(self) -> str:
        return f"<{self.name()}>"


N = TypeVar("N", bound=Node)


def begin(node: N, function: Any, edges: Sequence[Edge | tuple[()] | None]) -> N:
    """Fill the slots of a new node; the call of an `__init__` would take longer."""
    node.function = function
    node.edges = edges
    node.outputs = node._saved = node._taken = node._dirty = ()
    node._hooks = node._session = None
    node.freed = False
    return node


class AccumulateGrad(Node):
    """The node of a leaf: arriving adjoints are added to the leaf's `.grad`.

    The leaf holds its node, and the node holds the leaf weakly: both are freed with the last reference to the leaf.
    """

    is_accumulator = True

    def __init__(self, leaf: Any) -> None:
        begin(self, None, ())
        self.sequence = next(_leaf_sequence)  # below all others: a leaf is processed last, with its whole gradient
        self.outputs = ((leaf.shape, leaf.dtype),)
        self._variable = weakref.ref(leaf)

    def name(self) -> str:
        return "AccumulateGrad"

    @property
    def variable(self) -> Any:
        """The leaf Tensor; None when it no longer exists."""
        return self._variable()


class Hooks:
    """The hooks of one node, each kind in the order of registration."""

    def __init__(self) -> None:
        self.tensor: dict[int, dict[int, Callable[[Any], Any]]] = {}  # by output index
        self.retained: dict[int, weakref.ref[Any]] = {}  # Tensors that keep their gradient; weak: they hold the node
        self.pre: dict[int, PreHook] = {}
        self.post: dict[int, PostHook] = {}

    def on_tensor(self, index: int, hook: Callable[[Any], Any]) -> RemovableHandle:
        """Register a hook on the adjoint of one output."""
        return self.add(self.tensor.setdefault(index, {}), hook)

    def add(self, table: dict[int, Any], hook: Any) -> RemovableHandle:
        """Register a hook in one of the tables."""
        if not callable(hook):
            raise InputError("register_hook", "a hook is a function", repr(hook), "Pass a function of the adjoint.")
        return RemovableHandle(table, hook)


class RemovableHandle:
    """The handle of a registered hook: `remove()` removes the hook; also a context manager."""

    def __init__(self, table: dict[int, Any], hook: Any) -> None:
        self._table = table
        self._number = next(_hook_numbers)
        table[self._number] = hook

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        self._table.pop(self._number, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()
