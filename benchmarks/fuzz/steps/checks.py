"""Check of a random step: all ways to compute it, and its derivatives, agree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import GradcheckError, dot_product_test, gradcheck
from simphys.diagnose.check.case import Case, gradients
from simphys.rollout import BlowUp, rollout
from simphys.rollout.engine import kernels, plan, shared_loops
from simphys.substep import pieces
from simphys.substep.schedule import Group
from simphys.substep.text import launch_lines

from .draws import draw
from .world import Array

Values = dict[str, Array]
DERIVATIVES = 1e-6
"""Tolerance of finite differences."""
GENTLE, STEEP = 1e3, 1e6
"""Gradients of numbers of order one beyond which rounding counts more, and beyond which no difference settles."""


def check(seed: int) -> str:
    """Draw a random step; say what is wrong with it, "" for nothing."""
    return "; ".join([found for found in _faults(seed) if found])


def _faults(seed: int) -> Iterator[str]:
    expected = evaluate(draw(seed), mode="nested")
    case = draw(seed)
    stored = evaluate(case)
    yield compare("in one launch", stored, expected)
    with patch.object(runtime, "parallel", lambda work_us: True):
        if seed % 2:
            yield compare("in a launch each step", evaluate(case, deterministic=False), expected)
        else:
            with reversed_loops():
                found = evaluate(draw(seed), deterministic=False)
            yield compare("in a launch each step, from the last element to the first", found, expected)
    if seed % 4 == 1:
        yield compare("step by step", evaluate(case, mode="step"), expected)
    if stored is not None:
        yield _within_budget(case, stored)
    if seed % 4 == 0:
        with patch.object(plan, "LONG", 0):
            yield compare("in several launches", evaluate(draw(seed)), expected)
    if expected is not None:
        yield check_derivatives(case, steep=_largest_gradient(expected) > STEEP)


@contextmanager
def reversed_loops() -> Iterator[None]:
    """Write loops that may be parallel from the last element to the first."""
    with ExitStack() as patches:
        for module in (kernels, shared_loops, pieces):
            patches.enter_context(patch.object(module, "launch_lines", _write_reversed))
        yield


def _write_reversed(group: Group, *args: Any, **options: Any) -> list[str]:
    """Write a loop that may be parallel from its end: results differ where one element takes what another one makes."""
    config, head, *body = launch_lines(group, *args, **{**options, "parallel": False})
    if group.in_order:
        return [config, head, *body]
    total = head.removeprefix("for y in range(").removesuffix("):")
    return [config, f"for back in range({total}):", f"    y = {total} - 1 - back", *body]


def evaluate(case: Case, **options: Any) -> Values | None:
    """Return the states along time, and the gradients of a random sum of them; None for a motion that blows up."""
    names = [name for name, x in case.leaves().items() if x.requires_grad]
    fresh = {n: tensor(x.data, requires_grad=x.requires_grad) for n, x in case.leaves().items()}
    case = case.with_values(fresh)
    try:
        found = case.trajectory(**options)
    except BlowUp:
        return None
    states = {name: getattr(found.states, name).data for name in found.states.names()}
    leaves = {name: x for name, x in case.leaves().items() if name in names}
    return states | {f"gradient by {n}": g for n, g in gradients(case.loss(found), leaves).items()}


def compare(what: str, found: Values | None, expected: Values | None, relative: float = 1e-11) -> str:
    """Say which values differ by more than a fraction of the largest of their array; "" for none.

    Differences of a gradient below 1e-14 of the largest gradient count for nothing: its terms may cancel. A motion with
    steep gradients amplifies rounding.
    """
    if found is None or expected is None:
        return "" if found is expected else f"{what}: {'it' if found is None else 'the nested step'} blows up"
    largest = _largest_gradient(expected)
    relative *= max(1.0, largest / GENTLE)
    for name, value in expected.items():
        floor = 1e-3 * largest if name.startswith("gradient") else 0.0
        size = max(np.abs(value).max(initial=0), floor)
        error = np.abs(found[name] - value).max(initial=0)
        if found[name].shape != value.shape or not error <= relative * size:
            return f"{what}: {name} differs by {error:.3g} of {size:.3g}"
    return ""


def _largest_gradient(values: Values) -> float:
    return max([np.abs(g).max(initial=0) for name, g in values.items() if name.startswith("gradient")], default=0.0)


def _within_budget(case: Case, stored: Values) -> str:
    """Compare with a rollout within a budget, if so few steps leave something to save: it has the same bits."""
    memory = int(0.95 * case.plan(memory="all").predicted_bytes)
    try:
        case.plan(memory=memory)
    except InputError:
        return ""
    return compare("within a memory budget", evaluate(case, memory=memory), stored, 0.0)


def check_derivatives(case: Case, *, steep: bool = False) -> str:
    """Compare adjoints with tangents, and with finite differences where these settle: events may change their order.

    Those of a `steep` motion settle far from its derivative, if at all. Tangents are those of a sum of all fields: one
    field may nearly come to rest, with a derivative that is a difference of larger numbers.
    """
    names = [name for name, x in case.leaves().items() if x.requires_grad]

    def final(*inputs: Tensor) -> tuple[Tensor, ...]:
        given = case.with_values(dict(zip(names, inputs, strict=True)))
        found = rollout(given.model, given.params, given.state, steps=given.steps, control=given.control)
        return tuple([x for x in found.final.tensors() if x.size])

    def weighted(*inputs: Tensor) -> Tensor:
        random = np.random.default_rng(0)
        return sum([(x * tensor(random.standard_normal(x.shape))).sum() for x in final(*inputs)], tensor(0.0))

    inputs = [case.leaves()[name] for name in names]
    try:
        dot_product_test(weighted, inputs, tolerance=1e-10)
        if not steep:
            gradcheck(final, inputs, mode="projected", tolerance=DERIVATIVES, repeats=1)
    except BlowUp:
        return ""
    except GradcheckError as error:
        report = getattr(error, "report", None)
        settled = report is None or any([each.outcome == "failed" for each in report.comparisons])
        return f"{error} (inputs {', '.join(names)})" if settled else ""
    return ""
