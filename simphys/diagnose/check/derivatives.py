"""Comparison of the adjoint with finite differences and with tangents, for each leaf."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from simphys.autograd import Tensor, runtime
from simphys.autograd.proof.gradcheck import GradcheckError, GradcheckReport, gradcheck
from simphys.optimize.mapping import Carried, Map
from simphys.simulator import Arrays

from .case import Case, Run
from .certificate import DIFFERENCE, DOT, TANGENT, Statement
from .modes import estimate_effects
from .substeps import Step

COARSE = 1e-3
"""Spread of finite differences above which they prove little: the motion is chaotic, or has a kink here."""
NEGLIGIBLE = 1e-8
"""Effect on the loss, relative to the largest, below which rounding hides it, as in a system without stress."""
CANCELLED = ", where terms cancel: known to their rounding alone"
"""Note on a sub-step whose tangent agrees with its adjoint to no more than rounding of terms that cancel."""
SPREAD = ", where finite differences agree to {:.0e}; the tangent decides"
"""Note on a sub-step at a kink, or where its outputs have few digits."""


def check_derivatives(case: Case, fused: Run, *, seed: int, each: Map = map) -> Iterator[Statement]:
    """Make statements about each leaf with a measurable effect on the loss; `each` computes their differences."""
    hidden = find_negligible(case, fused)
    names = [name for name in case.leaves() if name not in hidden]
    compare = partial(_report, Carried(case), runtime.settings(), seed)
    for name, report in zip(names, each(compare, names), strict=True):
        yield from make_statements(name, report)


def make_statements(name: str, report: GradcheckReport) -> Iterator[Statement]:
    """Make the statements about one leaf from its comparison with finite differences."""
    worst = report.worst
    # Finite differences prove nothing beyond their own spread.
    plateau = worst.spread if worst.outcome != "failed" else 0.0
    tolerance, note = report.tolerance, ""
    if plateau > tolerance:
        tolerance, note = plateau, f"finite differences agree to {plateau:.1e} at eps {worst.eps:.0e}"
        note += "; the modes and the sub-steps decide" if plateau > COARSE else ""
    yield Statement(name, DIFFERENCE, worst.error, tolerance, note)
    if report.dot_product_error is not None:
        yield Statement(name, TANGENT, report.dot_product_error, DOT)


def find_negligible(case: Case, fused: Run) -> list[str]:
    """List the leaves whose effect is too small for differences of the loss, by a gradient that the modes agree on."""
    found = estimate_effects(case, fused)
    return [name for name in case.leaves() if found[name] <= NEGLIGIBLE * max(found.values())]


def explain_differences(case: Case, statements: Sequence[Statement]) -> Iterator[str]:
    """Name kinks and the solver's tolerance, where nothing but finite differences over the whole motion disagrees.

    A wrong adjoint disagrees for its sub-step, with its tangent or between the modes, too.
    """
    leaves = case.leaves()
    rough = [s.name for s in statements if s.claim == DIFFERENCE and s.tolerance > COARSE and s.name not in leaves]
    failed = [s for s in statements if not s.passed]
    if not failed or any(s.claim != DIFFERENCE or s.name not in [*leaves, *rough] for s in failed):
        return
    tolerance = getattr(case.model, "tolerance", None)
    if not rough and tolerance is None:
        return
    yield "Only finite differences disagree: all modes and tangents agree, and sub-steps where they are smooth."
    if rough:
        kinks = ", ".join(dict.fromkeys(rough))
        yield f"The motion has kinks ({kinks}), where they tell nothing: take a start without them, by [check]."
    if tolerance is not None:
        yield f"Where a solver iterates to a tolerance ({tolerance:g}), that limits them, too: lower it for the check."


def check_sub_steps(case: Case, states: Arrays, at: Iterable[int]) -> Iterator[Statement]:
    """Make statements about each Function of the simulator, from the states [steps + 1, *shape] at some steps."""
    worst: dict[tuple[str, str], Statement] = {}
    for t in at:
        step = Step(case, {name: values[t] for name, values in states.items()}, t)
        for proof in step.prove_all():
            if not proof.own:
                continue
            note = f"at step {t}, for {proof.by}"
            spread = SPREAD.format(proof.tolerance) if proof.tolerance > COARSE else ""
            statements = [Statement(proof.name, DIFFERENCE, proof.error, proof.tolerance, note + spread)]
            if proof.tangent_error is not None:
                rounded = note + CANCELLED if proof.tangent_tolerance > DOT else note
                statements.append(Statement(proof.name, TANGENT, proof.tangent_error, proof.tangent_tolerance, rounded))
            for statement in statements:
                known = worst.get((statement.name, statement.claim))
                if known is None or statement.error / statement.tolerance > known.error / known.tolerance:
                    worst[statement.name, statement.claim] = statement
    for statement in worst.values():
        is_plain = statement.passed and statement.tolerance <= COARSE and not statement.note.endswith(CANCELLED)
        yield replace(statement, note="") if is_plain else statement


def _report(carried: Carried[Case], settings: runtime.Settings, seed: int, name: str) -> GradcheckReport:
    case = carried.value

    def loss_of(value: Tensor) -> Tensor:
        # The other leaves require gradients, too, so that the kernels are those of the other modes.
        here = case.with_values({name: value})
        return here.loss(here.trajectory())

    with runtime.using(settings):
        return compare_differences(loss_of, case.leaves()[name], seed)


def compare_differences(loss_of: Callable[[Tensor], Tensor], leaf: Tensor, seed: int) -> GradcheckReport:
    """Compare a gradient with finite differences along a random direction."""
    try:
        return gradcheck(loss_of, (leaf,), mode="projected", repeats=1, seed=seed)
    except GradcheckError as error:
        if error.report is None:
            raise
        return error.report
