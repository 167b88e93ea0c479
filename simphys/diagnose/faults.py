"""Motions and gradients that are not finite: the first NaN or inf, the sub-step that produced it, and the error for it.

A fused rollout reports the time step alone. That step is run again nested, one node per sub-step, in anomaly mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from simphys.autograd import AnomalyError, Tensor, detect_anomaly, enable_grad, grad, no_grad
from simphys.autograd.errors import InputError
from simphys.rollout import BlowUp, Trajectory, rollout
from simphys.simulator import Array, Arrays, Model
from simphys.simulator.arrays import element_name

NOT_SHOWN = "The nested step from the state before has no NaN or inf: only the fused rollout has one."


@dataclass(frozen=True)
class Fault:
    """First value that is not finite."""

    direction: Literal["forward", "loss", "backward"]
    """Part that produced it: the motion, the loss or its derivative, or backward through the motion."""
    step: int | None
    """Time step that produced it, from state step - 1 to state step; 0: in the initial state; None: in the loss."""
    where: str
    """Element, such as "velocity[0, 1]"; in backward, the adjoint of that element."""
    value: float
    function: str | None
    """Function of the sub-step that produced it; None if the nested step does not reproduce it."""
    message: str
    """Message of anomaly mode."""


@contextmanager
def blow_ups_as_input_errors(source: str, hint: str = "") -> Iterator[None]:
    """Turn a BlowUp raised inside into an InputError of `source`; `hint` follows the simulator's own advice."""
    try:
        yield
    except BlowUp as error:
        raise InputError(source, error.constraint, error.found, f"{error.remedy} {hint}".strip()) from error


def forward_fault(
    model: Model, params: Any, state: Any, control: Tensor | None, found: BlowUp, *, limit: float
) -> Fault:
    """Find the fault behind a blow-up of a rollout with this limit."""
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
    """Find the fault in a loss with this `value`, or in its derivative with respect to the (finite) states."""
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
    """Find the fault in a backward pass with these adjoints [steps + 1, *shape] and `gradients`; None if there is none.

    The loss and its derivatives are finite. If only the gradient of a parameter is not, the nested steps are searched
    one by one from the end.
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


def _reversed(
    model: Model, params: Any, trajectory: Trajectory, adjoint: Arrays, control: Tensor | None, step: int
) -> tuple[str | None, str]:
    """Search for the fault in backward through the nested step to state `step`, from its whole adjoint."""
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
    """Return (Function, message) of the first NaN or inf in `run`."""
    try:
        with detect_anomaly(), np.errstate(all="ignore"):
            run()
    except AnomalyError as error:
        ours = "    called from "  # these lines show the stack of this search, not the user's
        return error.function, "\n".join([line for line in str(error).splitlines() if not line.startswith(ours)])
    return None, NOT_SHOWN


def _leaves(record: Any, row: int | None = None) -> Any:
    """Copy the values, or one row of each, as leaves that require a gradient."""
    chosen = {name: getattr(record, name).detach() for name in record.names()}
    if row is not None:
        chosen = {name: value[row].detach() for name, value in chosen.items()}
    return record.replace(**{name: value.requires_grad_() for name, value in chosen.items()})


def _first_bad(name: str, values: Array) -> tuple[str, float]:
    index = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
    return element_name(name, index), float(values[index])
