"""Comparison of the modes of a rollout: nested, one step at a time, fused, within memory budgets, and in a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.autograd.errors import InputError
from simphys.rollout import Trajectory
from simphys.simulator import Array, Arrays

from .case import Case, Run, run
from .certificate import Cost, Statement

ROUNDING = {"f8": 1e-9, "f4": 1e-4}
"""Largest relative difference between modes over a long horizon, by precision; they sum in different orders."""
PART = 256
"""Largest number of steps of the comparison between mode "step" and mode "fused"."""

OnStatement = Callable[[Statement], None]


def ignore_statement(statement: Statement) -> None:
    """Ignore a statement."""


class ModeComparison:
    """Comparison of the modes of one case; `statements` and `costs` grow as they run."""

    def __init__(self, case: Case, *, seed: int, on_statement: OnStatement) -> None:
        self.case = case
        self.statements: list[Statement] = []
        self.costs: list[Cost] = []
        self._random = np.random.default_rng(seed)
        self._on_statement = on_statement
        run(case, once=True)  # compile kernels before any run is timed
        self.fused = self._run("fused")
        self.sizes = {name: float(np.linalg.norm(g)) for name, g in self.fused.gradients.items()}
        self._scales = find_scales(case, self.fused)
        self.rounding = ROUNDING[self.fused.loss.dtype.str[1:]]

    def compare_others(self) -> None:
        """Compare every mode but the nested one."""
        self.compare_steps()
        self.compare_budgets()
        self.compare_batch()

    def add(self, *statements: Statement) -> None:
        """Add statements."""
        for statement in statements:
            self.statements.append(statement)
            self._on_statement(statement)

    def compare_nested(self) -> list[Statement]:
        """Compare one node per sub-step with fused over the whole horizon; the statements are not added yet."""
        run(part(self.case, 1), mode="nested")  # compiles kernels
        found = differences(self._run("nested", mode="nested", once=True).results(), self.fused.results(), self._scales)
        return [Statement(name, "nested = fused", error, self.rounding) for name, error in found.items()]

    def compare_steps(self) -> None:
        """Compare one fused node per step with fused, over a part of the horizon."""
        steps = min(self.case.steps, PART)
        case = self.case if steps == self.case.steps else part(self.case, steps)
        found, fused = run(case, mode="step"), run(case, once=True)
        self.costs.append(Cost("step", found.seconds, steps * part(case, 1).plan().predicted_bytes, steps))
        scales = find_scales(case, fused)
        for name, error in differences(found.results(), fused.results(), scales).items():
            self.add(Statement(name, "step = fused", error, self.rounding))

    def compare_budgets(self) -> None:
        """Compare segments and the binomial schedule with all states stored; they must agree to the last bit."""
        stored = self._run("deterministic", deterministic=True)
        self._compare("deterministic = fused", stored, self.fused, self.rounding)
        for kind, memory in budgets(self.case):
            found = self._run(kind, deterministic=True, memory=memory)
            assert found.plan is not None and found.plan.kind == kind
            self._compare(f"{kind} = stored", found, stored, 0.0)

    def compare_batch(self) -> None:
        """Compare a batch of two members, one perturbed, with single runs, without and with shared parameters."""
        case = self.case
        values = {name: leaf.data for name, leaf in case.leaves().items()}
        others = {n: v * (1 + 1e-3 * self._random.standard_normal(v.shape)).astype(v.dtype) for n, v in values.items()}
        other = run(case.with_values(_leaves(others)).with_own_leaves(), once=True)
        both, found = _batch(case, values, others, shared=())
        for name, scale in self._scales.items():
            members = zip((both[name][0], both[name][1]), (self.fused, other), strict=True)
            self.add(
                Statement(
                    name,
                    "batch = single",
                    max(difference(m, o.results()[name], scale) for m, o in members),
                    self.rounding,
                )
            )
        self.costs.append(Cost("batch of 2", found.seconds, found.bytes, case.steps))
        shared = tuple([name for name in case.params.names() if name in values])
        moved = {name: values[name] if name in shared else others[name] for name in values}
        third = run(case.with_values(_leaves(moved)).with_own_leaves(), once=True)
        both, _ = _batch(case, values, others, shared=shared, once=True)
        for name, scale in self._scales.items():
            if name in shared:
                expected = self.fused.gradients[name] + third.gradients[name]
                error = difference(both[name], expected, 2 * scale)
            else:
                expected = np.stack([self.fused.results()[name], third.results()[name]])
                error = difference(both[name], expected, scale)
            self.add(Statement(name, "shared = sum", error, self.rounding))

    def _run(self, title: str, **options: Any) -> Run:
        found = run(self.case, **options)
        note = "" if found.plan is None or title == "deterministic" else found.plan.describe()
        self.costs.append(Cost(title, found.seconds, found.bytes, self.case.steps, note))
        return found

    def _compare(self, claim: str, one: Run, other: Run, tolerance: float) -> None:
        for name, error in differences(one.results(), other.results(), self._scales).items():
            self.add(Statement(name, claim, error, tolerance))


def find_scales(case: Case, fused: Run) -> dict[str, float]:
    """Compute the scales that differences are relative to, by name.

    The scale is the norm of the gradient. But the effect of a parameter on the loss is known only to the rounding of
    the whole effect. So the scale is at least 1e-4 of the whole, and errors above 1e-13 of that are still noticed.
    """
    found = estimate_effects(case, fused)
    whole = max(found.values())
    scales = {"loss": max(abs(float(fused.loss)), 1e-4 * whole)}
    for name, leaf in case.leaves().items():
        scales[name] = max(float(np.linalg.norm(fused.gradients[name])), 1e-4 * whole / _size(leaf.data))
    return {name: scale or 1.0 for name, scale in scales.items()}


def estimate_effects(case: Case, fused: Run) -> dict[str, float]:
    """Estimate the change of the loss if each leaf were doubled, to first order; and "loss", the loss itself."""
    changes = {n: _size(x.data) * float(np.linalg.norm(fused.gradients[n])) for n, x in case.leaves().items()}
    return {"loss": abs(float(fused.loss)), **changes}


def _size(values: Array) -> float:
    """Norm of the values; for zeros, the norm of as many ones, as there is no better unit."""
    return float(np.linalg.norm(values)) or float(np.sqrt(values.size))


def differences(one: Arrays, other: Arrays, scales: dict[str, float]) -> dict[str, float]:
    """Compute relative differences by name."""
    return {name: difference(one[name], other[name], scale) for name, scale in scales.items()}


def difference(one: Array, other: Array, scale: float) -> float:
    """Compute |one - other| / scale: 0 only if all bits agree, inf if a number is not finite."""
    if np.array_equal(one, other):
        return 0.0
    with np.errstate(all="ignore"):
        error = float(np.linalg.norm(np.asarray(one, "f8") - other) / scale)
    return max(error, np.finfo("f8").tiny) if np.isfinite(error) else np.inf


def budgets(case: Case) -> Iterator[tuple[str, int]]:
    """Yield (kind, memory [B]) of the segments plan with the least memory, and of a binomial plan with less."""
    everything = case.plan(deterministic=True).predicted_bytes
    segments = _least(case, ("all", "segments"), everything)
    if _kind(case, segments) == "segments":
        yield "segments", segments
    least = _least(case, ("all", "segments", "binomial"), everything)
    between = (least + segments) // 2  # not the least memory, which recomputes each step many times
    if _kind(case, between) == "binomial":
        yield "binomial", between


def _least(case: Case, kinds: tuple[str, ...], enough: int) -> int:
    """Find the least memory [B] whose plan is of one of these kinds."""
    low, high = 0, enough
    while high - low > 1:
        middle = (low + high) // 2
        if _kind(case, middle) in kinds:
            high = middle
        else:
            low = middle
    return high


def _kind(case: Case, memory: int) -> str | None:
    try:
        return case.plan(deterministic=True, memory=memory).kind
    except InputError:  # it does not fit
        return None


def part(case: Case, steps: int) -> Case:
    """Shorten the case to its first steps; the loss is the sum of all values of their last state."""
    values = {} if case.control is None else {"control": case.control.detach()[:steps].requires_grad_()}
    return replace(case.with_values(values), steps=steps, keep="final", loss=_last)


def _last(trajectory: Trajectory) -> Tensor:
    """Sum all values of the last state."""
    parts = [getattr(trajectory.final, name).sum() for name in trajectory.final.names()]
    return sum(parts[1:], parts[0])


def _leaves(values: Arrays) -> dict[str, Tensor]:
    return {name: tensor(value, requires_grad=True) for name, value in values.items()}


def _batch(
    case: Case, values: Arrays, others: Arrays, *, shared: tuple[str, ...], once: bool = False
) -> tuple[Arrays, Run]:
    """Run two members in one rollout; return results by name, [2, *shape] unless shared, and the run itself."""
    stacked = {n: values[n] if n in shared else np.stack([values[n], others[n]]) for n in values}
    losses: list[Array] = []

    def loss(trajectory: Trajectory) -> Tensor:
        each = [case.loss(_member(trajectory, b)) for b in (0, 1)]
        losses[:] = [one.data for one in each]
        return each[0] + each[1]

    found = run(replace(case.with_values(_leaves(stacked)), loss=loss), once=once)
    return {"loss": np.stack(losses), **found.gradients}, found


def _member(trajectory: Trajectory, member: int) -> Trajectory:
    """Take one member of a batched trajectory."""

    def of(states: Any) -> Any:
        return states.replace(**{name: getattr(states, name)[member] for name in states.names()})

    return replace(trajectory, states=of(trajectory.states), final=of(trajectory.final))
