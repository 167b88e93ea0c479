"""Every term of the adjoints and tangents of sources and receivers is needed, in sub-steps and fused loops."""

from __future__ import annotations

from typing import Any

from simphys.autograd import tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.autograd.proof.mutation import ERRORS, Mutant
from simphys.simulators.wave import receive, source
from simphys.simulators.wave.model import Wave

from ..simulators.wave.between_cells import DX, receivers, receivers_agree, sources, sources_agree
from .sweep import Sweep

EACH = 1
"""Number of mutants per rule in a sample: all compile kernels."""
ALSO = (*ERRORS, TypeError, RuntimeError)
"""Errors of mutants: of the compiler, for swapped vectors and numbers and for an unused variable."""

SIDES = ("zero", "free", "periodic", "periodic")
MODEL = Wave((5, 6), DX, 0.1, boundaries=SIDES, sources=("point", "plane_y"), receivers=2)


def check_sources(module: Any) -> None:
    inputs = tuple([tensor(values, requires_grad=True) for values in sources(MODEL)])
    gradcheck(lambda *x: module.SourceTerm.apply(MODEL, *x), inputs, mode="projected", repeats=1)
    sources_agree(module, MODEL)


def check_receivers(module: Any) -> None:
    inputs = tuple([tensor(values, requires_grad=True) for values in receivers(MODEL)])
    gradcheck(lambda *x: module.Receive.apply(MODEL, *x), inputs, mode="projected", repeats=1)
    receivers_agree(module, MODEL)


LOOPS = ("functions.adj_*", "functions.jvp_*", "kernels.adj_*", "kernels.jvp_*")
SWEEPS = [
    Sweep(
        source,
        (
            "functions.adj_*",
            "functions.jvp_*",
            "kernels.adj_*",
            "kernels.jvp_*",
            "kernels.tangent",
            "SourceTerm.backward",
            "SourceTerm.jvp",
        ),
        check_sources,
        errors=ALSO,
    ),
    Sweep(
        receive,
        (*LOOPS, "Receive.backward", "Receive.jvp"),
        check_receivers,
        errors=ALSO,
    ),
]


def test_the_rules_as_they_are_pass(sweep: Sweep) -> None:
    sweep.passes_the_original()


def test_a_changed_rule_is_noticed(sweep: Sweep, mutant: Mutant) -> None:
    assert sweep.notices(mutant)
