"""The gradient in the precision and on the arch that a scene asks for, beside that of the processor in f64.

Where they differ, rounding may have decided between the sides of a kink, on which the start lies: then they agree from
a start that is disturbed a little. Else the first step and sub-step are found in which the device computes something
else, each from the processor's own states and adjoints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from simphys import rollout
from simphys.autograd import Tensor, grad, runtime, tensor
from simphys.autograd.errors import InputError
from simphys.simulator import Array, Arrays

from .case import Case, run
from .certificate import Statement
from .localize import Along
from .modes import differences, find_scales
from .substeps import Step, Traced

TOLERANCES = {"f32": 1e-2, "f64": 1e-6}
"""Largest relative difference from the processor's f64, by the precision that a scene asks for.

Rounding in f32, 6e-8, grows along the motion, and with chaos without a limit. A gradient that has lost all but two
digits is taken for lost, whatever the reason.
"""
DISTURBANCE = 1e-3
"""Part of the size of each field of the start by which it is disturbed, or number where it is zero."""

Make = Callable[[], Case]
"""Puts settings in force, and makes the case under them."""


def compare_asked(exact: Make, asked: Make, *, seed: int) -> tuple[list[Statement], str]:
    """Compare the gradient as asked for with the exact one: a statement for each field, and a sentence on all."""
    errors = _errors(exact, asked, None)
    chosen = runtime.settings()
    where, tolerance = f"{chosen.precision} on {chosen.arch}", TOLERANCES[chosen.precision]
    statements = [Statement(name, f"{where} = f64", error, tolerance) for name, error in errors.items()]
    wrong = [statement.name for statement in statements if not statement.passed]
    if not wrong:
        worst = max(errors.values())
        return statements, f"{where}: loss and gradient are those of the processor in f64 within {worst:.1e}."
    disturbed = _errors_off_kinks(exact, asked, seed)
    if disturbed is not None and max(disturbed.values()) <= tolerance:
        note = "from a start disturbed by a thousandth; {:.1e} from the start itself, which lies on a kink"
        by_name = {name: note.format(errors[name]) for name in wrong}
        statements = [
            replace(s, error=disturbed[s.name], note=by_name[s.name]) if s.name in by_name else s for s in statements
        ]
        return statements, (
            f"{where}: the start lies on a kink of the motion. Rounding decides on which side, and the gradient by "
            f"{', '.join(wrong)} is one of several."
        )
    return (
        statements,
        f"{where}: {', '.join(wrong)} differ{'s' * (len(wrong) == 1)} from f64. {locate(exact, asked, tolerance)}",
    )


def locate(exact: Make, asked: Make, tolerance: float) -> str:
    """Describe the first step, and the sub-step in it, in which the device computes something else."""
    case = exact()
    along = Along(case, run(case, once=True))
    found = _first_step(along, asked(), tolerance)
    if found is None:
        return "Each step by itself agrees, so the difference grows along the motion, or lies in the loss."
    t, what = found
    place = f"The first difference is in {what} step {t}."
    state = {name: values[t] for name, values in along.states.items()}
    seed = {name: values[t + 1] for name, values in along.adjoint.items()}
    of_device = _step(asked(), state, t).trace(_as_real(seed))
    of_processor = _step(exact(), state, t).trace(_as_real(seed))
    name = _first_sub_step(of_device, of_processor, tolerance)
    return f"{place} {name or 'The nested sub-steps agree there, so it is in the fused loops.'}"


def _first_step(along: Along, case: Case, tolerance: float) -> tuple[int, str] | None:
    """Find the first step whose result differs, else the first in reverse whose adjoint does."""
    for t in range(case.steps):
        final, _ = _one_step(case, along, t)
        for name, values in along.states.items():
            if _error(getattr(final, name).data, values[t + 1], values) > tolerance:
                return t, f"the {name} after"
    for t in reversed(range(case.steps)):
        final, leaves = _one_step(case, along, t)
        seeds = _as_real({name: along.adjoint[name][t + 1] for name in along.states})
        found = grad(
            [getattr(final, name) for name in seeds], list(leaves.values()), list(seeds.values()), allow_unused=True
        )
        for (name, leaf), g in zip(leaves.items(), found, strict=True):
            if name in along.adjoint:
                values = along.adjoint[name]
                own = np.zeros(leaf.shape) if g is None else g.data
                if _error(own + along.direct[name][t], values[t], values[t : t + 2]) > tolerance:
                    return t, f"the adjoint of {name} before"
    return None


def _one_step(case: Case, along: Along, t: int) -> tuple[Any, dict[str, Tensor]]:
    """Compute one fused step from the processor's state t; return the state after it, and the leaves."""
    state = _as_real({name: values[t] for name, values in along.states.items()})
    own = case.with_values({name: Tensor(values) for name, values in state.items()}).with_own_leaves()
    control = None if case.control is None else Tensor(np.ascontiguousarray(case.control.data[t : t + 1]))
    final = rollout.rollout(own.model, own.params, own.state, steps=1, control=control, keep="final").final
    return final, {name: leaf for name, leaf in own.leaves().items() if name != "control"}


def _first_sub_step(of_device: list[Traced], of_processor: list[Traced], tolerance: float) -> str | None:
    """Name the first sub-step whose results differ, else the first in reverse whose adjoints do."""
    pairs = list(zip(of_device, of_processor, strict=True))
    for one, other in pairs:
        if _differ(one.outputs, other.outputs, tolerance):
            return f"It is in the sub-step {one.name}."
    for one, other in reversed(pairs):
        if _differ(one.adjoints, other.adjoints, tolerance):
            return f"It is in the adjoint of the sub-step {one.name}."
    return None


def _differ(some: Iterable[Array | None], others: Iterable[Array | None], tolerance: float) -> bool:
    pairs = [(a, b) for a, b in zip(some, others, strict=True) if a is not None and b is not None]
    largest = max([float(np.max(np.abs(b), initial=0)) for _, b in pairs], default=0.0)
    return any(_error(a, b, np.array([np.max(np.abs(b), initial=0), 1e-4 * largest])) > tolerance for a, b in pairs)


def _errors(exact: Make, asked: Make, disturb: Callable[[Case], Case] | None) -> dict[str, float]:
    """Return the relative differences of loss and gradients by name; the settings as asked for stay in force."""
    case = exact() if disturb is None else disturb(exact())
    proven = run(case, once=True)
    scales = find_scales(case, proven)
    case = asked() if disturb is None else disturb(asked())
    return differences(run(case, once=True).results(), proven.results(), scales)


def _errors_off_kinks(exact: Make, asked: Make, seed: int) -> dict[str, float] | None:
    """Return the differences from a disturbed start; None where there is no motion from it."""

    def disturb(case: Case) -> Case:
        random = np.random.default_rng(seed)
        moved = {}
        for name in case.state.names():
            x = getattr(case.state, name)
            if x.size and x.dtype.kind == "f":
                size = float(np.sqrt(np.mean(np.square(x.data, dtype="f8")))) or 1.0
                noise = DISTURBANCE * size * random.standard_normal(x.shape)
                moved[name] = tensor((x.data + noise).astype(x.dtype))
        return case.with_values(moved).with_own_leaves()

    try:
        return _errors(exact, asked, disturb)
    except (InputError, rollout.BlowUp):
        asked()
        return None


def _step(case: Case, state: Arrays, t: int) -> Step:
    return Step(case, _as_real(state), t)


def _as_real(arrays: Arrays) -> Arrays:
    """Return contiguous arrays in the precision in force."""
    return {
        name: np.ascontiguousarray(values, runtime.real_dtype() if values.dtype.kind == "f" else values.dtype)
        for name, values in arrays.items()
    }


def _error(found: Array, expected: Array, scale: Array) -> float:
    """Return the largest difference as a fraction of the largest value in `scale`."""
    gap = float(np.max(np.abs(np.asarray(found, "f8") - expected), initial=0))
    size = float(np.max(np.abs(scale), initial=0))
    if not np.isfinite(gap):
        return np.inf
    return gap / size if size > 0 else (np.inf if gap > 0 else 0.0)
