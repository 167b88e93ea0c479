"""The first NaN or inf of a rollout or of its backward, and the sub-step that made it.

A fused rollout only tells the time step. That step is run again nested, one node a sub-step, in anomaly mode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from simphys.autograd import AnomalyError, Tensor, detect_anomaly, enable_grad, grad, no_grad
from simphys.rollout import BlowUp, Trajectory, rollout
from simphys.simulator import Array, Arrays, Model

NOT_SHOWN = "Run again nested, from the state before, nothing is NaN or inf: only the fused rollout shows it."


@dataclass(frozen=True)
class Fault:
    """A number that is not finite."""

    direction: Literal["forward", "loss", "backward"]
    """Whether it arose in the motion, in the loss or its derivative, or in backward through the motion."""
    step: int | None
    """The time step that made it, from state step - 1 to state step; 0: it was in the start. None: in the loss."""
    where: str
    """Which number, such as "velocity[0, 1]"; backward, the adjoint of that."""
    value: float
    function: str | None
    """The sub-step's Function that made it; None where the nested step does not show it."""
    message: str
    """What anomaly mode says of it."""


def forward_fault(
    model: Model, params: Any, state: Any, control: Tensor | None, found: BlowUp, *, limit: float
) -> Fault:
    """The fault behind a blow-up of a rollout with this limit."""
    where = element_name(found.field, found.element)
    if found.step == 0:
        return Fault("forward", 0, where, found.value, None, "The state at the start is not finite.")
    before = state
    if found.step > 1:
        earlier = None if control is None else control[: found.step - 1]
        with no_grad():
            before = rollout(
                model, params, state, steps=found.step - 1, control=earlier, keep="final", limit=limit
            ).final
    force = None if control is None else control[found.step - 1]
    function, message = _blamed(lambda: model.step(params, before, force))
    return Fault("forward", found.step, where, found.value, function, message)


def loss_fault(loss: Callable[[Trajectory], Tensor], trajectory: Trajectory, value: float) -> Fault:
    """The fault of a loss of this `value`, or of its derivative by the states, which are finite."""
    states, final = _leaves(trajectory.states), _leaves(trajectory.final)

    def again() -> None:
        with enable_grad():
            found = loss(replace(trajectory, states=states, final=final))
        grad(found, [*states.tensors(), *final.tensors()], allow_unused=True)

    function, message = _blamed(again)
    return Fault("loss", None, "loss" if not np.isfinite(value) else "its derivative", value, function, message)


def backward_fault(
    model: Model, params: Any, trajectory: Trajectory, adjoint: Arrays, control: Tensor | None, gradients: Arrays
) -> Fault | None:
    """The fault of a backward with these adjoints [steps + 1, *shape] and `gradients`; None if all are finite.

    The loss and its derivatives are finite. A step whose backward spoils nothing but a parameter's gradient is looked
    for from the end, one nested step after the other.
    """
    steps = len(trajectory.steps) - 1
    bad = [np.flatnonzero(~np.isfinite(each.reshape(len(each), -1)).all(axis=1)) for each in adjoint.values()]
    last_bad = max([int(each[-1]) for each in bad if each.size], default=None)
    if last_bad is not None:
        name = next(name for name, each in zip(adjoint, bad, strict=True) if each.size and each[-1] == last_bad)
        where, value = _first_bad(name, adjoint[name][last_bad])
        function, message = _reversed(model, params, trajectory, adjoint, control, last_bad + 1)
        return Fault("backward", last_bad + 1, where, value, function, message)
    spoilt = [name for name, each in gradients.items() if not np.isfinite(each).all()]
    if not spoilt:
        return None
    where, value = _first_bad(spoilt[0], gradients[spoilt[0]])
    for step in range(steps, 0, -1):
        function, message = _reversed(model, params, trajectory, adjoint, control, step)
        if function is not None:
            return Fault("backward", step, where, value, function, message)
    return Fault("backward", None, where, value, None, NOT_SHOWN)


def element_name(name: str, element: tuple[int, ...]) -> str:
    """'velocity[0, 1]'."""
    return f"{name}[{', '.join(map(str, element))}]" if element else name


def _reversed(
    model: Model, params: Any, trajectory: Trajectory, adjoint: Arrays, control: Tensor | None, step: int
) -> tuple[str | None, str]:
    """Backward through the nested step to state `step`, from its whole adjoint."""
    before = _leaves(trajectory.states, step - 1)
    params = _leaves(params)
    force = None if control is None else control.detach()[step - 1].detach().requires_grad_()

    def again() -> None:
        with enable_grad():
            after = model.step(params, before, force)
            pairs = [(getattr(after, name), adjoint[name][step]) for name in adjoint]
            pairs = [(value, seed) for value, seed in pairs if value.requires_grad]
            leaves = [*before.tensors(), *params.tensors(), *([] if force is None else [force])]
            grad([value for value, _ in pairs], leaves, [seed for _, seed in pairs], allow_unused=True)

    return _blamed(again)


def _blamed(run: Callable[[], Any]) -> tuple[str | None, str]:
    """(Function, message) of the first NaN or inf in `run`."""
    try:
        with detect_anomaly(), np.errstate(all="ignore"):
            run()
    except AnomalyError as error:
        ours = "    called from "  # the way here, which is not the user's
        return error.function, "\n".join([line for line in str(error).splitlines() if not line.startswith(ours)])
    return None, NOT_SHOWN


def _leaves(record: Any, row: int | None = None) -> Any:
    """The same values, or one row of each, as leaves that require a gradient."""
    chosen = {name: getattr(record, name).detach() for name in record.names()}
    if row is not None:
        chosen = {name: value[row].detach() for name, value in chosen.items()}
    return record.replace(**{name: value.requires_grad_() for name, value in chosen.items()})


def _first_bad(name: str, values: Array) -> tuple[str, float]:
    index = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
    return element_name(name, index), float(values[index])
