"""Small wave models in which every term matters: all boundaries, orders, sources, layers, moving sources, receivers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.kernels.runtime import real_dtype
from simphys.rollout import Trajectory, rollout
from simphys.simulators.wave.model import Params, State, Wave

Array = np.ndarray[Any, Any]
DX = 0.1
NAMES = (*State.names(), *Params.names())
"""The inputs of a step, in the order of `Case.leaves`."""

LINE = Wave(
    (19,), DX, 0.02, order=8, boundaries=("absorbing", "free"), layer=4, layer_speed=1.5, layer_frequency=2.0,
    sources=("point", "plane_x"), receivers=2,
)  # fmt: skip
"""A 1-D model; the last block of a line has 3 cells."""
PLANE = Wave(
    (12, 19), DX, 0.02, order=4, boundaries=("zero", "absorbing", "absorbing", "free"), layer=4,
    layer_speed=1.5, layer_frequency=2.0, sources=("point", "plane_x"), receivers=3,
)  # fmt: skip
"""A 2-D model with layers that cross in a corner."""
SMALL_PLANE = replace(PLANE, cells=(6, 9), layer=3)
"""A smaller 2-D model with the same loops, for which full Jacobians are quick."""
SPACE = Wave(
    (7, 9, 10), DX, 0.02, order=2, boundaries=("absorbing", "free", "absorbing", "absorbing", "zero", "absorbing"),
    layer=3, layer_speed=1.5, layer_frequency=2.0, sources=("point",), receivers=1,
)  # fmt: skip
TORUS = Wave(
    (10, 17), DX, 0.02, order=8, boundaries=("free", "zero", "periodic", "periodic"), sources=("point",), receivers=1
)
"""A 2-D model without layers."""


class Case(NamedTuple):
    """A model with the leaf tensors of a rollout."""

    model: Wave
    params: Params
    state: State
    control: Tensor | None
    steps: int

    @property
    def leaves(self) -> tuple[Tensor, ...]:
        """The tensors of state, parameters and control that are not empty."""
        control = () if self.control is None else (self.control,)
        return tuple([x for x in (*self.state.tensors(), *self.params.tensors(), *control) if x.size])

    def at(self, *leaves: Tensor) -> Case:
        """Return the same case with other leaves."""
        left = iter(leaves)

        def put(record: Any) -> Any:
            own = zip(record.names(), record.tensors(), strict=True)
            return record.replace(**{name: next(left) if x.size else x for name, x in own})

        state, params = put(self.state), put(self.params)
        return Case(self.model, params, state, next(left, None), self.steps)

    def fresh(self) -> Case:
        """Return the same case with new leaves, whose gradients are empty."""
        return self.at(*[tensor(x.data, requires_grad=x.requires_grad) for x in self.leaves])

    def rollout(self, **options: Any) -> Trajectory:
        model, params, state, control, steps = self
        return rollout(model, params, state, steps=steps, control=control, **options)


def case(model: Wave, steps: int, *, batch: int | None = None, batched: tuple[str, ...] = (), seed: int = 0) -> Case:
    """Build a case with random leaves. Those named in `batched` (a field or control) have a batch axis."""
    random = np.random.default_rng(seed)
    extent = np.array(model.cells) * DX

    def leaf(name: str, low: Any, high: Any, shape: tuple[int, ...]) -> Tensor:
        shape = (batch, *shape) if batch is not None and name in batched else shape
        return tensor(random.uniform(low, high, shape).astype(real_dtype()), requires_grad=True)

    ranges = {"speed": (1.0, 1.3), "source_position": (0.3 * extent, 0.7 * extent)}
    ranges["receiver_position"] = 0.2 * extent, 0.8 * extent
    made = {
        name: leaf(name, *ranges.get(name, (-1.0, 1.0)), shape)
        for name, shape in {**model.state_shapes(), **model.param_shapes()}.items()
    }
    params, state = Params(**{n: made[n] for n in Params.names()}), State(**{n: made[n] for n in State.names()})
    control = leaf("control", -1.0, 1.0, (steps, len(model.sources))) if model.sources else None
    return Case(model, params, state, control, steps)


def still(model: Wave, *, speed: Any = 1.0, **values: Any) -> tuple[Params, State]:
    """Build a wave at rest, except for the given values of state and parameters."""
    shapes = {**model.state_shapes(), **model.param_shapes()}
    made = {name: np.zeros(shape) for name, shape in shapes.items()}
    made["speed"] += speed
    made |= {name: np.broadcast_to(value, shapes[name]) for name, value in values.items()}
    tensors = {name: tensor(value.astype(real_dtype())) for name, value in made.items()}
    return Params(**{n: tensors[n] for n in Params.names()}), State(**{n: tensors[n] for n in State.names()})


def weighted_sum(trajectory: Trajectory, *, all_states: bool = True) -> Tensor:
    """Compute a loss with random weights for each number of the final state, or with `all_states` of all states."""
    random = np.random.default_rng(3)
    states = trajectory.states.tensors() if all_states else ()
    total = tensor(np.zeros((), real_dtype()))
    for x in (*trajectory.final.tensors(), *states):
        if x.size:
            total = total + (x * tensor(random.standard_normal(x.shape).astype(real_dtype()))).sum()
            total = total + (x * x).sum()
    return total


def evaluate(given: Case, *, all_states: bool = True, **options: Any) -> dict[str, Array]:
    """Return the stored and the final states, the loss, and its gradient by each leaf."""
    given = given.fresh()
    trajectory = given.rollout(**options)
    loss = weighted_sum(trajectory, all_states=all_states)
    loss.backward()
    found = {**trajectory.states.arrays(), "loss": loss.data}
    found |= {f"final {name}": values for name, values in trajectory.final.arrays().items()}
    inputs = dict(zip(NAMES, (*given.state.tensors(), *given.params.tensors()), strict=True))
    if given.control is not None:
        inputs["control"] = given.control
    for name, x in inputs.items():
        if x.size:
            found[f"gradient by {name}"] = np.zeros(x.shape) if x.grad is None else x.grad.data
    return found


def assert_same(found: dict[str, Array], expected: dict[str, Array], relative: float) -> None:
    """Compare arrays within a fraction of the largest expected value of each; 0 demands bitwise equality."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if relative == 0:
            assert found[name].tobytes() == value.tobytes(), name
        elif value.size:
            atol = relative * float(np.abs(value).max())
            np.testing.assert_allclose(found[name], value, rtol=0, atol=atol, err_msg=name)


def tolerance(f64: float, f32: float) -> float:
    """Choose the tolerance for the precision of this process."""
    return f64 if runtime.real_dtype() == np.float64 else f32
