"""The small systems of rigid bodies that keep the contract of a simulator."""

from __future__ import annotations

import functools
from collections.abc import Callable

from simphys.simulators.rigid import Box, Plane, RigidBodies

from ...helpers.contract import Case, Contract
from ...helpers.contract import System as Inputs
from .systems import System, chain, controls, system, tumbling_in_plane, tumbling_in_space

STEPS = 12
LONG = 100
"""Steps of a horizon that budgets of memory cut."""
TOLERANCE = 1e-11


def tumbling_alone() -> System:
    """Build a box that tumbles in space, above a floor."""
    model = RigidBodies(3, 0.01, ((Box((0.2, 0.15, 0.1)),),), planes=(Plane((0.0, 0.0, 1.0)),), sweeps=8)
    turning = {"angular_velocity": [[1.0, -2.0, 0.5]], "orientation": [[0.95, 0.15, -0.1, 0.2]]}
    return system(model, state={"position": [[0.0, 0.02, 0.2]], "velocity": [[0.5, 0.2, -1.0]], **turning})


SYSTEMS: dict[str, Callable[[], System]] = {
    "chain": chain,
    "compliant": functools.partial(tumbling_in_plane, "compliant"),
    "boxes and a sphere": functools.partial(tumbling_in_plane, off_centre=True),
    "boxes in space": functools.partial(tumbling_in_space, off_centre=True),
    "network": functools.partial(chain, controlled=True),
}


def build(made: Callable[[], System], steps: int) -> Inputs:
    """Build a system with its control, if it takes one."""
    model, params, state = made()
    return Inputs(model, params, state, controls(model, steps))


def cases(steps: int = STEPS, **options: object) -> tuple[Case, ...]:
    """Make a case of each system."""
    return tuple(
        [
            Case(name, functools.partial(build, made, steps), steps, TOLERANCE, silent=None, **options)  # type: ignore[arg-type]
            for name, made in SYSTEMS.items()
        ]
    )


CONTRACT = Contract(
    modes=(
        *cases(losses=("states", "final")),
        Case(
            "a box in space",
            functools.partial(build, tumbling_alone, STEPS),
            STEPS,
            TOLERANCE,
            silent=None,
            losses=("final",),
        ),
    ),
    batches=(),
    devices=(  # its kernels have more arrays than some devices bind
        Case("chain", functools.partial(build, chain, STEPS // 2), STEPS // 2, TOLERANCE, silent=None, f32=1e-3),
    ),
    budgets=cases(LONG, keep=("final",)),
    derivatives=cases(losses=("final",)),
    quick=(),  # each takes seconds to compile
    certificates=(Case("chain", functools.partial(build, chain, STEPS), STEPS, TOLERANCE, alone=("velocity", "mass")),),
)
