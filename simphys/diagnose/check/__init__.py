"""Certificate of a gradient: proof that all modes agree on it, and that it is the derivative of the loss.

`check` takes any simulator that implements the contract, `check_scene` a scene, and `check_file` a scene file, in the
size that the file states for its check. The command is `simphys check`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from simphys.autograd import Tensor, runtime
from simphys.autograd.errors import InputError
from simphys.optimize.mapping import Map
from simphys.rollout.inputs import Keep

from .case import Case, Loss, RandomWeights
from .certificate import Certificate, Cost, Statement
from .derivatives import check_derivatives, check_sub_steps, explain_differences, find_negligible
from .localize import LOCAL, compute_states, localize
from .modes import ModeComparison, OnStatement, ignore_statement

__all__ = ["Certificate", "Cost", "Statement", "check", "compare_modes"]


def check(
    model: Any,
    params: Any,
    state: Any,
    *,
    steps: int,
    control: Tensor | None = None,
    loss: Loss | None = None,
    keep: Keep | None = None,
    seed: int = 0,
    on_statement: OnStatement = ignore_statement,
    each: Map = map,
) -> Certificate:
    """Prove the gradient of a rollout's loss with respect to every parameter, the initial state and the controls.

    `loss(trajectory)` is a scalar of a trajectory without a batch axis, which holds the states given by `keep` (see
    `rollout`; all by default). Without a loss, it is a random combination of states.

    The check compares the nested rollout, the fused one, the one fused step by step, two within memory budgets, and
    batches of two members. It compares adjoints with finite differences and tangents, over the horizon and for each
    sub-step. If nested and fused rollouts disagree, it compares each step by itself, to locate the first disagreement.
    `on_statement` is called with each statement. `each` computes the finite differences of the leaves; for another
    process the loss must be one that can be pickled.
    Errors: InputError in f32, in which finite differences are too coarse, and for a motion that blows up.
    """
    if runtime.settings().precision != "f64":
        remedy = "Start with precision f64; compare_modes works in f32, too."
        raise InputError("check", "finite differences need f64", runtime.settings().precision, remedy)
    case = make_case(model, params, state, steps, control, loss, keep, seed)
    found = ModeComparison(case, seed=seed, on_statement=on_statement)
    findings = _nested(found)
    found.compare_others()
    found.add(*check_derivatives(case, found.fused, seed=seed, each=each))
    at = sorted({steps // 4, steps // 2, 3 * steps // 4})
    found.add(*check_sub_steps(case, compute_states(case), at))
    findings += tuple(explain_differences(case, found.statements))
    hidden = find_negligible(case, found.fused)
    if hidden:
        findings += (f"The effect on the loss is too small for finite differences: {', '.join(hidden)}.",)
    return _certificate(found, findings)


def compare_modes(
    model: Any,
    params: Any,
    state: Any,
    *,
    steps: int,
    control: Tensor | None = None,
    loss: Loss | None = None,
    keep: Keep | None = None,
    seed: int = 0,
    on_statement: OnStatement = ignore_statement,
) -> Certificate:
    """Compare all modes of a rollout: the part of `check` that also works in f32 and on a GPU.

    The arguments are those of `check`. Errors: InputError for a motion that blows up.
    """
    case = make_case(model, params, state, steps, control, loss, keep, seed)
    found = ModeComparison(case, seed=seed, on_statement=on_statement)
    found.add(*found.compare_nested())
    found.compare_others()
    return _certificate(found, ())


def make_case(
    model: Any,
    params: Any,
    state: Any,
    steps: int,
    control: Tensor | None,
    loss: Loss | None,
    keep: Keep | None,
    seed: int,
) -> Case:
    """Make a case with leaves of its own; without a loss, that of a random combination of states."""
    if loss is None:
        loss, keep = RandomWeights(seed), keep or [steps // 2, steps]
    return Case(model, params, state, control, steps, loss, keep or "all").with_own_leaves()


def _nested(found: ModeComparison) -> tuple[str, ...]:
    """Compare the nested rollout with the fused one; if they disagree, compare each step by itself."""
    statements = found.compare_nested()
    if all(statement.passed for statement in statements):
        found.add(*statements)
        return ()
    each = localize(found.case, found.fused)
    for statement in statements:
        if not statement.passed and each.agree:
            error = each.errors[statement.name]
            statement = replace(
                statement, error=error, tolerance=LOCAL, note=f"in each step; {statement.error:.1e} over the horizon"
            )
        found.add(statement)
    return (each.finding,)


def _certificate(found: ModeComparison, findings: tuple[str, ...]) -> Certificate:
    chosen = runtime.settings()
    horizon = f"the full horizon of {found.case.steps} steps in {chosen.precision} on {chosen.arch}"
    return Certificate(tuple(found.statements), tuple(found.costs), found.sizes, findings, horizon)
