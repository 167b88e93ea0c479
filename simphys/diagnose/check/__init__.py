"""The certificate of a gradient: that all ways to it agree, and that it is the derivative of the loss.

`check` takes any simulator that keeps the contract; `check_scene` a scene; `check_file` a scene file, in the size that
the file states for its check. The command is `simphys check`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from simphys.autograd import Tensor, runtime
from simphys.autograd.errors import InputError
from simphys.rollout.inputs import Keep

from .case import Case, Loss, random_weights
from .certificate import Certificate, Cost, Line
from .derivatives import derivatives, of_sub_steps, unseen
from .localize import LOCAL, localize, states
from .modes import Comparison, OnLine, nothing

__all__ = ["Certificate", "Cost", "Line", "check", "compare_modes"]


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
    on_line: OnLine = nothing,
) -> Certificate:
    """Prove the gradient of a rollout's loss with respect to every parameter, the initial state and the controls.

    `loss(trajectory)` is a scalar of a trajectory without a batch axis, which holds the states that `keep` names (see
    `rollout`; all by default); without a loss a random combination of states is taken. The nested rollout, the fused
    one, one that is fused step by step, two within memory budgets and batches of two members are compared; adjoints
    are held against finite differences and tangents, over the horizon and for each sub-step. Where nested and fused
    disagree, each step is compared by itself, which tells where it begins. `on_line` hears each statement.
    Errors: InputError in f32, which finite differences are too coarse for, and for a motion that blows up.
    """
    if runtime.settings().precision != "f64":
        remedy = "Start with precision f64; compare_modes holds in f32, too."
        raise InputError("check", "finite differences need f64", runtime.settings().precision, remedy)
    case = _case(model, params, state, steps, control, loss, keep, seed)
    found = Comparison(case, seed=seed, on_line=on_line)
    findings = _nested(found)
    found.others()
    found.add(*derivatives(case, found.fused, seed=seed))
    at = sorted({steps // 4, steps // 2, 3 * steps // 4})
    found.add(*of_sub_steps(case, states(case), at))
    hidden = unseen(case, found.fused)
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
    on_line: OnLine = nothing,
) -> Certificate:
    """The part of `check` that holds in f32 and on a GPU, too: all modes of the rollout agree.

    The arguments are those of `check`. Errors: InputError for a motion that blows up.
    """
    case = _case(model, params, state, steps, control, loss, keep, seed)
    found = Comparison(case, seed=seed, on_line=on_line)
    found.add(*found.nested())
    found.others()
    return _certificate(found, ())


def _case(
    model: Any,
    params: Any,
    state: Any,
    steps: int,
    control: Tensor | None,
    loss: Loss | None,
    keep: Keep | None,
    seed: int,
) -> Case:
    if loss is None:
        loss, keep = random_weights(seed), keep or [steps // 2, steps]
    return Case(model, params, state, control, steps, loss, keep or "all").alone()


def _nested(found: Comparison) -> tuple[str, ...]:
    """The nested rollout against the fused one; where they disagree, each step by itself decides."""
    lines = found.nested()
    if all(line.passed for line in lines):
        found.add(*lines)
        return ()
    each = localize(found.case, found.fused)
    for line in lines:
        if not line.passed and each.agree:
            error = each.errors[line.name]
            line = replace(line, error=error, tolerance=LOCAL, note=f"in each step; {line.error:.1e} over the horizon")
        found.add(line)
    return (each.finding,)


def _certificate(found: Comparison, findings: tuple[str, ...]) -> Certificate:
    chosen = runtime.settings()
    horizon = f"the full horizon of {found.case.steps} steps in {chosen.precision} on {chosen.arch}"
    return Certificate(tuple(found.lines), tuple(found.costs), found.sizes, findings, horizon)
