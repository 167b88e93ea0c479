"""Every term of the adjoints and tangents of shallow water is needed: in sub-steps, fused steps and the engine."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

from simphys.autograd import Tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.autograd.proof.mutation import ERRORS, Mutant
from simphys.rollout import rollout
from simphys.simulators.wave.shallow import advance, engine, fluxes, friction, fused
from simphys.simulators.wave.shallow.model import ShallowWater

from ..simulators.wave.shallow.basins import basin, leaves, random_leaf, unpacked
from .sweep import Sweep, stale, use_engine

EACH = 1
"""Number of mutants per rule in a sample: most compile a kernel."""

EQUIVALENT = {
    "Friction.backward: (None, adj_velocity, adj_elevation, adj_depth, * -> (None, adj_velocity, adj_depth, *": (
        "friction depends on their sum alone, so that their adjoints are equal"
    ),
}

Check = Callable[[Any], None]
check = functools.partial(gradcheck, mode="projected", repeats=1)


def adj_fluxes(module: Any) -> None:
    model, params, state = basin()
    check(lambda *x: module.Fluxes.apply(model, *x), (*state.tensors(), params.depth, params.gravity))


def adj_stage(module: Any) -> None:
    model, _, state = basin()
    made = random_leaf(model.dim, *model.cells), random_leaf(*model.cells, seed=1), random_leaf(*model.cells, seed=2)
    check(lambda *x: module.Advance.apply(model, 0.5, *x), (*state.tensors(), *made))


def of_friction(module: Any) -> None:
    model, params, state = basin(dt=1.0)
    inputs = state.velocity, state.elevation, params.depth, params.friction
    check(lambda *x: module.Friction.apply(model, *x), inputs)


def moved(batched: tuple[str, ...], *, along: bool) -> None:
    """Check the derivative of the final states, or of all, of a rollout; and of two members with shared inputs."""
    model, params, state = basin(batch=2 if batched else None, batched=batched)

    def run(*inputs: Tensor) -> tuple[Tensor, ...]:
        result = rollout(model, *unpacked(*inputs), steps=3, keep="all" if along else "final")
        return (result.states if along else result.final).tensors()

    check(run, leaves(params, state))


def with_engine(module: Any) -> None:
    """Check rollouts by the engine of `module`."""
    with use_engine(ShallowWater, module.ShallowEngine):
        moved(("elevation", "depth", "gravity"), along=True)
        moved(("velocity", "friction"), along=False)


def with_fused(module: Any) -> None:
    """Check rollouts by the steps of `module`."""
    with patch.multiple(engine, Forward=module.Forward, Adjoint=module.Adjoint, Tangent=module.Tangent):
        with_engine(engine)


def and_fused(checked: Check, name: str) -> Check:
    """Wrap `checked`, and add rollouts whose fused steps launch the module's kernels, with adjoint sums."""

    def check_of(module: Any) -> None:
        checked(module)
        with patch.object(fused, name, module):
            moved((), along=False)

    return check_of


def anew(original: ModuleType, checked: Check, *kernels: str) -> Check:
    """Wrap `checked` such that only the named kernels of a module are recompiled."""
    compiled = vars(original)["kernels_of"]
    own: dict[str, Any] = {}

    def reused(*arguments: Any) -> SimpleNamespace:
        mine = own["kernels_of"](*arguments)
        return SimpleNamespace(**{**vars(compiled(*arguments)), **{name: getattr(mine, name) for name in kernels}})

    def check_of(module: Any) -> None:
        own["kernels_of"] = module.kernels_of
        with patch.object(module, "kernels_of", reused):
            checked(module)

    return check_of


sweep_of = functools.partial(Sweep, equivalent=EQUIVALENT, errors=(*ERRORS, TypeError, AttributeError))


def sub_step(module: ModuleType, function: str, checked: Check) -> list[Sweep]:
    """Make the sweeps of a sub-step: over its adjoint kernel, its tangent kernel, and the Python around them."""
    by_both = and_fused(checked, module.__name__.rsplit(".", 1)[-1])
    return [
        sweep_of(module, ("functions.adj_*",), anew(module, checked, "adjoint")),
        sweep_of(module, ("kernels.adjoint",), anew(module, by_both, "adjoint")),
        sweep_of(module, ("functions.jvp_*", "kernels.tangent"), anew(module, checked, "tangent")),
        sweep_of(module, (f"{function}.backward", f"{function}.jvp"), anew(module, checked)),
    ]


SWEEPS = [
    *sub_step(fluxes, "Fluxes", adj_fluxes),
    *sub_step(advance, "Advance", adj_stage),
    *sub_step(friction, "Friction", of_friction),
    sweep_of(fused, ("Adjoint.*", "Tangent.*", "Pair.add", "Pair.store"), with_fused),
    sweep_of(engine, ("ShallowEngine.pull", "ShallowEngine.gradients", "ShallowEngine.push"), with_engine),
]


def test_what_is_listed_as_equivalent_exists() -> None:
    assert not stale(SWEEPS)


def test_the_rules_as_they_are_pass(sweep: Sweep) -> None:
    sweep.passes_the_original()


def test_a_changed_rule_is_noticed(sweep: Sweep, mutant: Mutant) -> None:
    assert sweep.notices(mutant) != sweep.is_equivalent(mutant)
