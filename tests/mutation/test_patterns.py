"""Every term of an element function is needed, whatever the pattern that applies it, and in a generated engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.fuzz.steps import bodies
from benchmarks.fuzz.steps.bodies import Call, Params, State
from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.autograd.proof.mutation import ERRORS
from simphys.rollout import rollout
from simphys.simulator import Shape
from simphys.simulators.heat.conduction import Conduction
from simphys.substep import function

from ..helpers import beads
from ..simulators.heat.systems import PLANE, make_system
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep

EACH = 3
"""Number of mutants per rule in a sample: each compiles kernels."""

ENDS = np.array([[0, 1], [1, 2], [0, 2], [2, 3], [1, 3]], np.int32)
MODEL = bodies.RandomModel(ENDS, np.array([1, 0, -1, 1], np.int32), dim=2, calls=(), controls=2)


def drawn(*shapes: Shape) -> list[Tensor]:
    """Draw leaves away from zero."""
    random = np.random.default_rng(3)
    return [tensor(random.uniform(0.4, 1.4, shape), requires_grad=True) for shape in shapes]


def check_of(name: str, *shapes: Shape, constants: tuple[float, ...] = ()) -> Callable[[Any], None]:
    """Check of the derivatives of a sub-step of the module."""

    def check(module: Any) -> None:
        def function(*inputs: Tensor) -> Any:
            return getattr(module, name).apply(MODEL, *inputs, *constants)

        inputs = drawn(*shapes)
        gradcheck(function, inputs, mode="projected")
        dot_product_test(function, inputs, tolerance=1e-12)

    return check


def generated(module: Any) -> None:
    """Check the derivatives of a rollout whose step uses every element function."""
    names = ("turn", "drive", "stretch", "pull", "add", "tilt", "flow")
    calls = tuple([Call(name, (k, k + 1, 2 * k + 1)) for k, name in enumerate(names)])
    model = module.RandomModel(ENDS, MODEL.picks, 2, calls, 2)
    shapes = {**model.param_shapes(), **model.state_shapes(), "control": (3, 2)}
    inputs = drawn(*shapes.values())

    def final(*values: Tensor) -> tuple[Tensor, ...]:
        given = dict(zip(shapes, values, strict=True))
        params = Params(**{name: given[name] for name in Params.names()})
        state = State(**{name: given[name] for name in State.names()})
        return rollout(model, params, state, steps=3, control=given["control"]).final.tensors()

    gradcheck(final, inputs, mode="projected")
    dot_product_test(final, inputs, tolerance=1e-11)


def events(module: Any) -> None:
    """Check a sequence of events."""
    _, params, state = beads.make_beads()

    def fall(*inputs: Tensor) -> Any:
        return module.Fall.apply(beads.Beads(), *inputs, 1.3)

    inputs = *state.tensors(), *params.tensors()
    gradcheck(fall, inputs, mode="projected")
    dot_product_test(fall, inputs, tolerance=1e-11)


def function_of_a_pattern(module: Any) -> None:
    """Check the Function that the module makes of a pattern."""
    made = module.declare(bodies.Turn.pattern)

    def turn(*inputs: Tensor) -> Any:
        return made.apply(MODEL, *inputs, 0.3)

    inputs = drawn(VECTORS, VECTORS, NUMBERS)
    gradcheck(turn, inputs, mode="projected")
    dot_product_test(turn, inputs, tolerance=1e-12)
    conduct, (model, params, state, _) = module.declare(Conduction.pattern), make_system(PLANE)
    cells = state.temperature, params.conductivity  # the conductivity is two parameters: of either cell of a face
    gradcheck(lambda *values: conduct.apply(model, *values, model.spacing), cells, mode="projected")


VECTORS, NUMBERS, EDGES = (4, 2), (4,), (5,)
SWEEPS = [
    Sweep(bodies, ("adj_turn", "jvp_turn"), check_of("Turn", VECTORS, VECTORS, NUMBERS, constants=(0.3,))),
    Sweep(bodies, ("adj_tilt", "jvp_tilt"), check_of("Tilt", VECTORS, (2,), ())),
    Sweep(bodies, ("adj_drive", "jvp_drive"), check_of("Drive", VECTORS, (2,), NUMBERS)),
    Sweep(bodies, ("adj_stretch", "jvp_stretch"), check_of("Stretch", EDGES, ())),
    Sweep(bodies, ("adj_pull", "jvp_pull"), check_of("Pull", VECTORS, VECTORS, EDGES)),
    Sweep(bodies, ("adj_flow", "jvp_flow"), check_of("Flow", NUMBERS, EDGES, ())),
    Sweep(bodies, ("adj_place", "jvp_place"), check_of("Place", VECTORS)),
    Sweep(bodies, ("adj_puff", "jvp_puff"), check_of("Puff", VECTORS, NUMBERS, VECTORS)),
    Sweep(bodies, ("adj_breathe", "jvp_breathe"), check_of("Breathe", VECTORS, (4, 3, 2), ())),
    Sweep(bodies, ("adj_pull", "adj_drive", "jvp_flow"), generated),
    Sweep(beads, ("adj_*", "jvp_*"), events),
    Sweep(function, ("Substep.backward", "Substep.jvp"), function_of_a_pattern, errors=(*ERRORS, KeyError, TypeError)),
]
