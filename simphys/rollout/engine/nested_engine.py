"""The engine of a step that contains hand-written Functions: it runs the nested step, one batch member at a time.

States of a segment are stored. `pull` computes each step again, with its graph, and pulls the adjoint back through it.
So memory holds the graph of one step, and any Function will do. `push` needs their tangents (jvp).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np

from simphys.autograd import Tensor, enable_grad, grad, is_grad_enabled, linearize, no_grad, tensor
from simphys.autograd.errors import InputError
from simphys.simulator import Array, Arrays, Model
from simphys.simulator.array_engine import ArrayEngine
from simphys.simulator.returned import require_state

GRAPH_STATES = 16
"""Memory of the graph of one step in sizes of the state and the parameters, approximately."""


class Step(NamedTuple):
    """A step of a segment."""

    row: int
    """Row of the segment with its state."""
    number: int
    """Number of the step from the beginning of the horizon."""


class NestedEngine(ArrayEngine):
    """Engine of one rollout that runs a nested step."""

    def __init__(
        self, model: Model, step: Callable[..., Any], params: Arrays, control: Array | None, **options: Any
    ) -> None:
        super().__init__(model, params, control, **options)
        self._step = step
        self._proven = False  # that all gradients of a step go to its own inputs

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        shapes = [*self.model.state_shapes().values(), *self.model.param_shapes().values()]
        numbers = GRAPH_STATES * sum([int(np.prod(shape, dtype=int)) for shape in shapes])
        return super().segment_bytes(steps, dense=dense) + numbers * 8

    def advance(self, segment: Arrays, *, first: int, start: int, steps: int) -> None:
        with no_grad():
            for member in range(self.batch):
                params = self._make_params(member, ())
                for row in range(start, start + steps):
                    result, _ = self._run(segment, member, Step(row, first + row), params, ())
                    for name, values in result.arrays().items():
                        segment[name][member, row + 1] = values

    def pull(self, segment: Arrays, *, first: int, steps: int, adjoint: Arrays) -> None:
        dense = next(iter(adjoint.values())).shape[1] > 1
        for member in range(self.batch):
            params = self._make_params(member, self.needs)
            running = {name: values[member, -1].copy() for name, values in adjoint.items()}
            for row in reversed(range(steps)):
                with enable_grad():
                    result, leaves = self._run(segment, member, Step(row, first + row), params, self.needs)
                running = self._pull_step(result, leaves, running, member, first + row)
                if dense:
                    running = {name: values[member, row] + running[name] for name, values in adjoint.items()}
                for name, values in adjoint.items():
                    if dense or row == 0:
                        values[member, row] = running[name]

    def _pull_step(self, result: Any, leaves: dict[str, Tensor], adjoint: Arrays, member: int, step: int) -> Arrays:
        """Pull the adjoint of a step's result back, and add to the adjoint sums; returns the adjoint of its state."""
        moving = [name for name in result.names() if getattr(result, name).requires_grad]
        outputs = [getattr(result, name) for name in moving]
        seeds = [tensor(adjoint[name]) for name in moving]
        wanted = {name: leaf for name, leaf in leaves.items() if leaf.requires_grad}
        if not self._proven:
            _require_known_leaves(outputs, leaves.values())
            self._proven = True
        found = dict(zip(wanted, grad(outputs, list(wanted.values()), seeds, allow_unused=True), strict=True))
        state = {name: np.zeros_like(values) for name, values in adjoint.items()}
        for name, gradient in found.items():
            if gradient is None:
                continue
            kind, _, field = name.partition(".")
            if kind == "state":
                state[field] += gradient.data
            elif kind == "control":
                self.sums["control"][member, step] += gradient.data
            else:
                self.sums[field][member] += gradient.data
        return state

    def push(self, segment: Arrays, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        moved = {}
        for name, values in tangent.items():
            moved[name] = np.zeros((self.batch, steps + 1, *values.shape[1:]), values.dtype)
            moved[name][:, 0] = values
        moving = self._given_tangents.keys()
        for member in range(self.batch):
            params = self._make_params(member, moving)
            for row in range(steps):
                with enable_grad():
                    result, leaves = self._run(segment, member, Step(row, first + row), params, moving)
                sources = {name: leaf for name, leaf in leaves.items() if leaf.requires_grad}
                tangents = [self._tangent(name, moved, member, first, row) for name in sources]
                fields = result.names()
                found = linearize([getattr(result, n) for n in fields], list(sources.values()))(*tangents)
                for name, values in zip(fields, found, strict=True):
                    moved[name][member, row + 1] = values
        return moved

    def _tangent(self, name: str, moved: Arrays, member: int, first: int, row: int) -> Array:
        """Return the tangent of a leaf of a step."""
        kind, _, field = name.partition(".")
        if kind == "state":
            return moved[field][member, row]
        return self.tangents["control"][member, first + row] if kind == "control" else self.tangents[field][member]

    def _run(
        self, segment: Arrays, member: int, step: Step, params: dict[str, Tensor], moving: Collection[str]
    ) -> tuple[Any, dict[str, Tensor]]:
        """Run a step from its row of the segment. Returns its result, and its leaves by kind and field."""
        row, differentiable = step.row, is_grad_enabled()
        state = {name: tensor(values[member, row], requires_grad=differentiable) for name, values in segment.items()}
        leaves = {f"param.{n}": x for n, x in params.items()} | {f"state.{n}": x for n, x in state.items()}
        control = None
        if self.control is not None:
            moves = differentiable and "control" in moving
            control = leaves["control"] = tensor(self.control[member, step.number], requires_grad=moves)
        model = self.model
        result = self._step(model, model.Params(**params), model.State(**state), control)
        return require_state(model, result), leaves

    def _make_params(self, member: int, moving: Collection[str]) -> dict[str, Tensor]:
        """Make the parameters of a member; gradients flow to those that are `moving`."""
        return {n: tensor(values[member], requires_grad=n in moving) for n, values in self.params.items()}


def _require_known_leaves(outputs: list[Tensor], leaves: Collection[Tensor]) -> None:
    """Raise InputError if a gradient of a step's results would go to a Tensor from outside the step."""
    known = {id(leaf) for leaf in leaves}
    seen: set[int] = set()
    open_nodes = [output.grad_fn for output in outputs]
    while open_nodes:
        node = open_nodes.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        variable = getattr(node, "variable", None)
        if variable is not None and id(variable) not in known:
            constraint = "a Tensor that the step takes from outside requires no gradient"
            raise InputError("step", constraint, repr(variable), "Make it a field of Params, or use x.detach().")
        open_nodes += [following for following, _ in node.next_functions]
