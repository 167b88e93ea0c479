"""Every term of the rules of molecular dynamics is needed: of the element functions of each sub-step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from simphys.autograd import Tensor, jvp, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.molecular import averages, bonded, coulomb, histogram, motion, potential

from ..simulators.molecular.systems import system
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep

EACH = 3
"""Number of mutants per rule in a sample: each compiles kernels."""


def drawn(*shapes: tuple[int, ...]) -> list[Tensor]:
    random = np.random.default_rng(5)
    return [tensor(random.uniform(0.4, 1.4, shape), requires_grad=True) for shape in shapes]


def check(found: Callable[..., Any], inputs: list[Tensor], original: Callable[..., Any]) -> None:
    """Check the derivatives of a function, and its values by those of the original."""
    pairs = zip(*[y if isinstance(y, tuple) else (y,) for y in (found(*inputs), original(*inputs))], strict=True)
    for value, expected in pairs:
        np.testing.assert_allclose(value.data, expected.data, rtol=1e-12)
    gradcheck(found, tuple(inputs), mode="projected", repeats=1)
    dot_product_test(found, tuple(inputs), tolerance=1e-11)


def check_of(original: Any, name: str, *constants: float, shapes: tuple[tuple[int, ...], ...]) -> Callable[[Any], None]:
    """Check of a sub-step of a module on random numbers."""

    def run(module: Any) -> None:
        model = system(2).model
        apply, known = getattr(module, name).apply, getattr(original, name).apply
        check(lambda *x: apply(model, *x, *constants), drawn(*shapes), lambda *x: known(model, *x, *constants))

    return run


def pairs_of(name: str) -> Callable[[Any], None]:
    """Check of a sub-step over pairs, with either potential."""

    def run(module: Any) -> None:
        model, params, state, _ = system(2, linked=True)
        inputs = [state.position, params.epsilon, params.sigma, params.steepness]
        for morse in (0.0, 1.0):
            constants = model.molecule, morse, model.switch_on**2, model.cutoff**2

            def apply(source: Any, *x: Tensor, constants: Any = constants) -> Any:
                return getattr(source, name).apply(model, *x, *constants)

            check(partial(apply, module), inputs, partial(apply, potential))

    return run


def distances(module: Any) -> None:
    model, _, state, _ = system(2)
    known = histogram.PairHistogram.apply
    check(
        lambda x: module.PairHistogram.apply(model, x, *model.histogram),
        [state.position],
        lambda x: known(model, x, *model.histogram),
    )


def bath(module: Any) -> None:
    model = system(2).model
    inputs = drawn((9, 2), (9,), (), (), ())
    constants = model.numbers, 0.1, 3
    check(
        lambda *x: module.Warm.apply(model, *x, *constants), inputs, lambda *x: motion.Warm.apply(model, *x, *constants)
    )


def links_of(name: str) -> Callable[[Any], None]:
    """Check of bonds or angles."""

    def run(module: Any) -> None:
        model, params, state, _ = system(2, linked=True)
        bond = name == "Bond"
        own = [params.bond_stiffness, params.rest_length] if bond else [params.angle_stiffness, params.rest_angle]
        apply, known = getattr(module, name).apply, getattr(bonded, name).apply
        check(lambda *x: apply(model, *x), [state.position, *own], lambda *x: known(model, *x))

    return run


def charges_of(name: str) -> Callable[[Any], None]:
    """Check of a sub-step over pairs of charges."""

    def run(module: Any) -> None:
        model, params, state, _ = system(2, linked=True)
        shift = coulomb.find_shift(model.damping, model.cutoff)
        constants = model.molecule, model.coulomb, model.damping, *(shift if name == "ChargeSums" else shift[:1])
        apply, known = getattr(module, name).apply, getattr(coulomb, name).apply
        check(
            lambda *x: apply(model, *x, *constants),
            [state.position, params.charge],
            lambda *x: known(model, *x, *constants),
        )

    return run


def travelling(module: Any) -> None:
    """Check before and after the beginning."""
    model = system(2).model
    for time in (-0.4, 0.0):
        inputs = [*drawn((9, 2), (9, 2), (9, 2)), tensor(time)]
        apply, known = module.Travel.apply, averages.Travel.apply
        check(lambda *x, f=apply: f(model, *x, 0.2), inputs, lambda *x, f=known: f(model, *x, 0.2))


def ticking(module: Any) -> None:
    """Check also the kink, where averages begin: the weight has slope 0 there."""
    check_of(averages, "Tick", 0.2, shapes=((),))(module)
    model, begin = system(2).model, tensor(0.0, requires_grad=True)

    def weight(t: Tensor) -> Tensor:
        found: Tensor = module.Tick.apply(model, t, 0.2)[0]
        return found

    weight(begin).backward()
    assert begin.grad is not None and begin.grad.item() == 0
    _, (slope,) = jvp(weight, (begin,), (1.0,))
    assert slope == 0


SECOND = "each atom sums its own adjoint; the rule names both"
TIE = "no step begins at just half a step before the averages"
SWEEPS = [
    Sweep(bonded, ("bond", "adj_bond"), links_of("Bond")),
    Sweep(bonded, ("angle", "adj_angle"), links_of("Angle")),
    Sweep(potential, ("pair_force", "adj_pair_force"), pairs_of("PairForce")),
    Sweep(potential, ("pair_sums", "adj_pair_sums"), pairs_of("PairSums")),
    Sweep(
        coulomb,
        ("charge_force", "adj_charge_force"),
        charges_of("ChargeForce"),
        equivalent={"adj_charge_force: q_i [*] r*": SECOND},
    ),
    Sweep(
        coulomb,
        ("charge_sums", "adj_charge_sums"),
        charges_of("ChargeSums"),
        equivalent={"adj_charge_sums: q_i [*] e -> *": SECOND},
    ),
    Sweep(coulomb, ("self_sums", "adj_self_sums"), check_of(coulomb, "SelfSums", -1.3, shapes=((9,),))),
    Sweep(histogram, ("pair_histogram", "adj_pair_histogram"), distances),
    Sweep(histogram, ("give", "adj_give"), check_of(histogram, "SumAtoms", shapes=((9, 4),))),
    Sweep(motion, ("warm", "adj_warm", "jvp_warm"), bath),
    Sweep(
        averages,
        ("measure", "adj_measure"),
        check_of(averages, "Measure", 9, 0.3, shapes=((9, 2), (9,), (9, 2))),
    ),
    Sweep(
        averages,
        ("travel", "adj_travel"),
        travelling,
        equivalent={"*travel: t > -0.5 [*] h -> t >= -0.5 [*] h": TIE},
    ),
    Sweep(averages, ("spread", "adj_spread"), check_of(averages, "Spread", 9, shapes=((9, 2),))),
    Sweep(averages, ("tick", "adj_tick"), ticking),
    Sweep(averages, ("follow", "adj_follow"), check_of(averages, "Follow", shapes=((3,), (3,), ()))),
]
