"""A rollout with a loss and its gradient, and the budgets that lead to each kind of plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from simphys import rollout as package
from simphys.autograd import Tensor
from simphys.autograd.errors import InputError
from simphys.rollout import Trajectory

from ..helpers.rounding import assert_equal_but_for_rounding
from .pendulums import Params, Pendulums, State, system

Array = np.ndarray


class Case(NamedTuple):
    """Model with leaves, and the options of its rollout."""

    model: Pendulums
    params: Params
    state: State
    control: Tensor | None
    options: dict[str, Any]

    @property
    def leaves(self) -> tuple[Tensor, ...]:
        """Parameters, state fields and control."""
        return (*self.params.tensors(), *self.state.tensors(), *([] if self.control is None else [self.control]))

    def rollout(self, *leaves: Tensor, rollouts: Any = package, **options: Any) -> Trajectory:
        """Run the rollout, from other leaves or by another package if given; `options` override those of the case."""
        at = leaves or self.leaves
        control = None if self.control is None else at[4]
        return rollouts.rollout(
            self.model, Params(*at[:2]), State(*at[2:4]), control=control, **{**self.options, **options}
        )

    def plan(self, *, rollouts: Any = package, **options: Any) -> package.Plan:
        return rollouts.plan(self.model, self.params, self.state, control=self.control, **{**self.options, **options})

    def budgets(self, **options: Any) -> dict[str, int]:
        """The largest budget of each kind of plan."""
        budgets: dict[str, int] = {}
        memory = self.plan(**options).predicted_bytes
        try:
            while len(budgets) < 3:
                found = self.plan(memory=memory, **options)
                budgets.setdefault(found.kind, memory)
                memory = min(memory, found.predicted_bytes) - 8
        except InputError:
            pass
        assert set(budgets) == {"all", "segments", "binomial"}
        return budgets


def case(*, steps: int = 12, keep: Any = "all", running: Any = None, **of_system: Any) -> Case:
    return Case(*system(steps=steps, **of_system), {"steps": steps, "keep": keep, "running": running})


def energy(states: Any, steps: Array) -> Tensor:
    """Running sum that depends on both fields and on the time."""
    weights = np.cos(0.3 * steps)[:, None]
    return (states.rate * states.rate * weights - states.angle * states.rate).sum()


def loss_of(trajectory: Trajectory) -> Tensor:
    """Loss that depends on all results of a trajectory, with a different weight for each number."""
    random = np.random.default_rng(3)
    looked_at = (*trajectory.states.tensors(), *trajectory.final.tensors())
    loss = sum([(x * x * random.uniform(0.5, 1.5, x.shape)).sum() for x in looked_at], Tensor(np.zeros(())))
    return loss if trajectory.running is None else loss + 0.7 * trajectory.running


def gradient(
    case: Case, *, loss: Callable[[Trajectory], Tensor] = loss_of, rollouts: Any = package, **options: Any
) -> list[Array]:
    """Compute the loss, and its gradient with respect to each leaf of the case."""
    leaves = [leaf.detach().requires_grad_() for leaf in case.leaves]
    value = loss(case.rollout(*leaves, rollouts=rollouts, **options))
    value.backward()
    return [value.numpy(), *[np.zeros(x.shape) if x.grad is None else x.grad.numpy() for x in leaves]]


def assert_bitwise(found: list[Array], expected: list[Array]) -> None:
    """Of an engine in NumPy, which calls the same functions on arrays of the same shapes whatever the plan."""
    for one, other in zip(found, expected, strict=True):
        assert one.tobytes() == other.tobytes()


def assert_rounding(found: list[Array], expected: list[Array]) -> None:
    for one, other in zip(found, expected, strict=True):
        size = max(1, np.abs(other).max())
        assert_equal_but_for_rounding(one, other, ulps=1000, size=size)  # through some ten steps and sums of hundreds
