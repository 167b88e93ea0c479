"""Running sum of a rollout: value and derivatives of the user's function of the states along time."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd import Tensor, enable_grad, grad
from ..autograd.errors import InputError
from ..autograd.graph import ancestors
from ..simulator import Array, Arrays
from .inputs import Inputs
from .trajectory import Running


class RunningSum:
    """Sums `running` over the horizon, piece by piece.

    The pieces do not depend on the blocks of a plan, so the sum is the same to the last bit for every plan. The
    derivatives with respect to the states of a row do not depend on other rows, and are computed within a block.
    """

    def __init__(self, inputs: Inputs, running: Running) -> None:
        self.inputs = inputs
        self.running = running

    def evaluate(self, states: Arrays, steps: Array) -> float:
        """Evaluate the function for states [B, rows, *shape]."""
        return self._scalar(self._apply(states, steps)[1]).item()

    def differentiate(self, states: Arrays, steps: Array, seed: float) -> Arrays:
        """Compute seed * d(value)/d(states), [B, rows, *shape], for the fields that the value depends on."""
        value, leaves = self._recorded(states, steps)
        if not value.requires_grad:
            return {}
        found = grad(value, list(leaves.values()), [np.full(value.shape, seed)], allow_unused=True)
        arrays = {name: g.data for name, g in zip(leaves, found, strict=True) if g is not None}
        return arrays if self.inputs.batch is not None else {name: a[None] for name, a in arrays.items()}

    def check(self) -> None:
        """Raise InputError if the function depends on other Tensors that require a gradient: it would be missed."""
        value, leaves = self._recorded({name: a[:, None] for name, a in self.inputs.start.items()}, np.ones(1, int))
        own = {leaf._edge[0] for leaf in leaves.values() if leaf._edge is not None}
        if any(node.is_accumulator and node not in own for node in ancestors([value])):
            remedy = "Detach it, make it a parameter of the model, or take the loss of kept states."
            raise InputError(
                "rollout, running", "it depends on the states alone", "a Tensor that requires a gradient", remedy
            )

    def _recorded(self, states: Arrays, steps: Array) -> tuple[Tensor, dict[str, Tensor]]:
        with enable_grad():
            record, value = self._apply(states, steps, requires_grad=True)
        return self._scalar(value), dict(zip(record.names(), record.tensors(), strict=True))

    def _apply(self, states: Arrays, steps: Array, *, requires_grad: bool = False) -> tuple[Any, Any]:
        """Make the State, without the batch axis if nothing is batched, and the function's value for it."""
        batched = self.inputs.batch is not None
        record = self.inputs.state.replace(
            **{
                name: Tensor(np.array(a if batched else a[0], order="C")).requires_grad_(requires_grad)
                for name, a in states.items()
            }
        )
        return record, self.running(record, steps)

    @staticmethod
    def _scalar(value: Any) -> Tensor:
        if not isinstance(value, Tensor) or value.size != 1:
            found = f"shape {value.shape}" if isinstance(value, Tensor) else repr(value)
            raise InputError("rollout, running", "it returns a scalar Tensor", found, "Sum over rows and members.")
        return value
