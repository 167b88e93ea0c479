"""Every term of the rules of smoothed particle hydrodynamics is needed: of the element functions of each sub-step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.sph import density, gauges, motion

from ..simulators.sph.systems import system
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep

EACH = 1
"""Number of mutants per rule in a sample: each compiles kernels."""

MODEL, PARAMS, STATE, _ = system()
KERNEL = MODEL.strength, MODEL.smoothing


def drawn(*shapes: tuple[int, ...]) -> list[Tensor]:
    random = np.random.default_rng(5)
    return [tensor(random.uniform(0.4, 1.4, shape), requires_grad=True) for shape in shapes]


def check_of(
    original: Any, name: str, *inputs: Tensor, constants: Callable[[], tuple[Any, ...]]
) -> Callable[[Any], None]:
    """Check of the values of a sub-step of a module by those of the original, and of its derivatives."""

    def run(module: Any) -> None:
        apply, known = getattr(module, name).apply, getattr(original, name).apply
        fixed = constants()
        np.testing.assert_allclose(apply(MODEL, *inputs, *fixed).data, known(MODEL, *inputs, *fixed).data, rtol=1e-12)
        gradcheck(lambda *x: apply(MODEL, *x, *fixed), inputs, mode="projected", repeats=1)
        dot_product_test(lambda *x: apply(MODEL, *x, *fixed), inputs, tolerance=1e-11)

    return run


N = MODEL.particles
PAIR = (PARAMS.rest_density, PARAMS.viscosity, PARAMS.slip_length, PARAMS.gravity)
SWEEPS = [
    Sweep(
        density,
        ("continuity", "adj_continuity"),
        check_of(
            density,
            "Continuity",
            *(STATE.position, *drawn((N, 2)), PARAMS.rest_density),
            constants=lambda: (MODEL.volume, *KERNEL),
        ),
    ),
    Sweep(
        density,
        ("diffusion", "adj_diffusion"),
        check_of(
            density,
            "Diffusion",
            *(STATE.position, STATE.density, PARAMS.rest_density, PARAMS.sound_speed, PARAMS.gravity),
            constants=lambda: (MODEL.walls, MODEL.mixing, *KERNEL),
        ),
    ),
    Sweep(
        density,
        ("advance", "adj_advance"),
        check_of(density, "Advance", *drawn((N,), (N,)), constants=lambda: (MODEL.fluid, 0.3)),
    ),
    Sweep(
        density,
        ("pressure", "adj_pressure"),
        check_of(density, "Pressure", *drawn((N,), (), ()), constants=lambda: (7.0, 0.3)),
    ),
    Sweep(
        motion,
        ("pair_acceleration", "adj_pair_acceleration"),
        check_of(
            motion,
            "PairAcceleration",
            *(STATE.position, *drawn((N, 2), (N,)), *PAIR),
            constants=lambda: (MODEL.walls, MODEL.volume, MODEL.wall_distance, *KERNEL),
        ),
        equivalent={"adj_pair_acceleration: z [*] w_j -> *": "each particle sums its own adjoint; the rule names both"},
    ),
    Sweep(
        motion,
        ("kick", "adj_kick"),
        check_of(motion, "Kick", *drawn((N, 2), (N, 2), (2,)), constants=lambda: (MODEL.fluid, 0.3)),
    ),
    Sweep(
        gauges,
        ("depth", "adj_depth"),
        check_of(gauges, "Depth", STATE.position, constants=lambda: MODEL.gauge_numbers),
        equivalent={
            "depth: x[[]0] - c -> c - x[[]0]": "its absolute value is taken",
            "adj_depth: u - 0.5 -> 0.5 - u": "its absolute value is taken",
            "adj_depth: 0.0 [*] e -> 0.0": "a zero either way",
        },
    ),
]
