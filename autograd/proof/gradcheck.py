"""Proof of gradients, first and second: adjoints against finite differences, and tangents (jvp) against adjoints."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..compose.functional import Outputs, linearize
from ..errors import InputError, MissingJvp
from ..graph import grad
from ..mode import enable_grad, is_grad_enabled, no_grad
from ..tensor import Array, Tensor
from .finite_difference import FEWEST, Estimate, derivative
from .gradcheck_report import Comparison, Element, GradcheckError, GradcheckReport, Mode, Outcome

EPS = np.geomspace(1e-2, 1e-9, 10)
"""Steps, relative to the input's root mean square: most models are smooth over 1 %; at 1e-9 rounding dominates."""

_DOUBT = 10.0  # a mismatch refutes an adjoint only if it exceeds the spread of the finite differences by this factor
_ENOUGH = 0.1  # no smaller steps are tried once adjoint and differences agree within this part of the tolerance
_TINY = 1e-6  # a tangent, by a relative change of the input, is compared at least at this part of the output
_FLOOR = 1e-3  # a row of the Jacobian is compared at least at this part of the largest row's size, else at noise


def gradcheck(
    fn: Callable[..., Outputs],
    inputs: Tensor | Sequence[Tensor],
    *,
    mode: Mode = "full",
    eps: npt.ArrayLike = EPS,
    tolerance: float = 1e-6,
    seed: int = 0,
    repeats: int = 2,
) -> GradcheckReport:
    """Compare the adjoint of fn(*inputs) with central differences for every input that requires a gradient.

    Inputs of size 0 are left out. `full` compares each element of the Jacobian: up to 2 len(eps) evaluations of fn per
    input element and a reverse pass per output element. `projected` compares <u, J v> for `repeats` random u of each
    output and v of each input, of any size. `eps` are falling steps, relative to the input's root mean square; smaller
    ones are left out once adjoint and differences agree within a tenth of the tolerance. If all Functions of the graph
    have a jvp, tangents are compared with adjoints, too. A value at a bound, beyond which fn raises UnphysicalValue,
    is moved to the other side alone.
    Errors: GradcheckError unless the outcome is `passed`; InputError for inputs that are not f64.
    """
    steps = np.asarray(eps, np.float64)
    if steps.ndim != 1 or len(steps) < FEWEST or steps[-1] <= 0 or not (np.diff(steps) < 0).all():
        raise InputError(
            "gradcheck", "eps is a falling series of 4 or more steps", eps, "Pass np.geomspace(1e-2, 1e-9, 10)."
        )
    problem = _Problem(fn, inputs)
    if not problem.has_elements:
        mode = "projected"  # compares sums over none
    random = np.random.default_rng(seed)
    rows = _probes([y.data for y in problem.outputs], mode, repeats, random)
    adjoints = [problem.pull(row.position, row.array) for row in rows]
    comparisons = []
    for i, position in enumerate(problem.checked):
        columns = _probes([problem.inputs[position].data], mode, repeats, random)
        gradients = np.array([adjoint[i].ravel() for adjoint in adjoints])
        found = _compare(problem, position, rows, columns, gradients, steps, tolerance)
        comparisons.append(max(found, key=lambda comparison: comparison.rank))
    try:
        mismatch = problem.dot_product_error(random)
    except MissingJvp:  # also of a Function inside a combined node, which only a push finds
        mismatch = None
    report = GradcheckReport(mode=mode, tolerance=tolerance, comparisons=tuple(comparisons), dot_product_error=mismatch)
    if report.outcome != "passed":
        raise GradcheckError(str(report), report)
    return report


def gradgradcheck(
    fn: Callable[..., Outputs],
    inputs: Tensor | Sequence[Tensor],
    *,
    mode: Mode = "full",
    eps: npt.ArrayLike = EPS,
    tolerance: float = 1e-6,
    seed: int = 0,
    repeats: int = 2,
) -> GradcheckReport:
    """Check the gradient of the gradient: `gradcheck` of g(*inputs, *u) = J^T u, for a random u for each output of fn.

    The adjoints are those of gradients made with create_graph, the differences those of plain gradients. So the two
    ways to take a first gradient are compared, too. In the report, output i is the gradient by the i-th input that
    requires one; the u are inputs after those of fn. The arguments are those of `gradcheck`.
    Errors: those of `gradcheck`; GraphError for a Function that is differentiable only once.
    """
    problem = _Problem(fn, inputs)
    count = len(problem.inputs)
    random = np.random.default_rng(seed)
    seeds = [Tensor(np.asarray(random.standard_normal(y.shape))).requires_grad_() for y in problem.outputs]

    def gradients(*given: Tensor) -> tuple[Tensor, ...]:
        recorded = is_grad_enabled()
        xs = given[:count]
        if not recorded:
            xs = tuple([x.detach().requires_grad_(i in problem.checked) for i, x in enumerate(xs)])
        with enable_grad():
            outputs = _floats(fn(*xs))
        return _pull(outputs, [xs[i] for i in problem.checked], given[count:], create_graph=recorded)

    try:
        return gradcheck(
            gradients, (*problem.inputs, *seeds), mode=mode, eps=eps, tolerance=tolerance, seed=seed, repeats=repeats
        )
    except GradcheckError as error:
        legend = f"outputs are gradients by the inputs that require one; inputs from {count} on are the u"
        raise GradcheckError(f"gradgradcheck ({legend}):\n{error}", error.report) from None


def dot_product_test(
    fn: Callable[..., Outputs], inputs: Tensor | Sequence[Tensor], *, tolerance: float = 1e-10, seed: int = 0
) -> float:
    """Compare forward mode with reverse mode: <u, J v> = <J^T u, v> for random u, v. Returns the relative mismatch.

    Errors: GradcheckError above `tolerance`; MissingJvp for a Function without a jvp; InputError unless inputs are f64.
    """
    mismatch = _Problem(fn, inputs).dot_product_error(np.random.default_rng(seed))
    if not mismatch <= tolerance:
        raise GradcheckError(f"jvp and adjoint disagree: <u, J v> and <J^T u, v> differ by {mismatch:.1e} relatively")
    return mismatch


class _Problem:
    """fn at the inputs: recorded once for its adjoints, evaluated without recording for finite differences."""

    def __init__(self, fn: Callable[..., Outputs], inputs: Tensor | Sequence[Tensor]) -> None:
        self.fn = fn
        self.inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
        wanted = [position for position, x in enumerate(self.inputs) if x.requires_grad]
        if not wanted:
            raise InputError("gradcheck", "an input requires a gradient", "none", "Set requires_grad=True on it.")
        self.checked = [position for position in wanted if self.inputs[position].size] or wanted
        for position in self.checked:
            if self.inputs[position].dtype != np.float64:
                found = f"input {position} of {self.inputs[position].dtype}"
                raise InputError("gradcheck", "finite differences need f64", found, "Use precision=f64.")
        leaves = [Tensor(x.data.copy()).requires_grad_(x.requires_grad) for x in self.inputs]
        self.leaves = [leaves[position] for position in self.checked]
        with enable_grad():
            self.outputs = _floats(fn(*leaves))

    @property
    def has_elements(self) -> bool:
        """True if the Jacobian has elements."""
        return any(self.inputs[position].size for position in self.checked) and any(y.size for y in self.outputs)

    def evaluate(self, position: int, array: Array) -> list[Array]:
        """The outputs with another value of one input."""
        inputs = [Tensor(x.data.copy()) for x in self.inputs]
        inputs[position] = Tensor(np.asarray(array))
        with no_grad():
            return [y.data for y in _floats(self.fn(*inputs))]

    def pull(self, output: int, adjoint: Array) -> list[Array]:
        """The adjoints of the checked inputs."""
        return [g.data for g in _pull([self.outputs[output]], self.leaves, [adjoint], create_graph=False)]

    def dot_product_error(self, random: np.random.Generator) -> float:
        """The largest |<u, J v> - <J^T u, v>| / (|J^T u| |v|) for a random u of each output and v of each input."""
        push = linearize(self.outputs, self.leaves)
        directions = [random.standard_normal(x.shape) for x in self.leaves]
        pushed = [push(*[v if i == j else None for j in range(len(directions))]) for i, v in enumerate(directions)]
        worst = 0.0
        for output, y in enumerate(self.outputs):
            u = random.standard_normal(y.shape)
            least = _TINY * np.vdot(abs(u), abs(y.data))
            for x, v, tangents, adjoint in zip(self.leaves, directions, pushed, self.pull(output, u), strict=True):
                forward, reverse = np.vdot(u, tangents[output]), np.vdot(adjoint, v)
                size = max(abs(forward), np.linalg.norm(adjoint) * np.linalg.norm(v), least / _size(x.data))
                if forward != reverse:
                    mismatch = float(abs(forward - reverse) / size)
                    worst = max(worst, mismatch if math.isfinite(mismatch) else math.inf)
        return worst


def _floats(outputs: Outputs) -> list[Tensor]:
    return [y for y in ((outputs,) if isinstance(outputs, Tensor) else outputs) if y.dtype.kind == "f"]


def _pull(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], adjoints: Sequence[Tensor | Array], *, create_graph: bool
) -> tuple[Tensor, ...]:
    """The adjoints of the inputs, zeros where the outputs do not depend on one; the graph is kept."""
    pairs = [(y, u) for y, u in zip(outputs, adjoints, strict=True) if y.requires_grad]
    found: tuple[Tensor | None, ...] = (None,) * len(inputs)
    if pairs:
        ys, us = zip(*pairs, strict=True)
        found = grad(ys, inputs, us, retain_graph=True, create_graph=create_graph, allow_unused=True)
    return tuple([Tensor(np.zeros(x.shape)) if g is None else g for x, g in zip(inputs, found, strict=True)])


class _Probe(NamedTuple):
    """Weights of an output, or a direction of an input."""

    position: int
    element: Element
    array: Array

    def measure(self, outputs: Sequence[Tensor]) -> float:
        """The size of the terms of what it sums: of an element itself, or of a weighted output."""
        y = outputs[self.position].data
        size = float(np.vdot(abs(self.array), abs(y)))
        return size if math.isfinite(size) else 0.0


def _probes(arrays: list[Array], mode: Mode, repeats: int, random: np.random.Generator) -> list[_Probe]:
    """One unit array for each element (`full`), or `repeats` random arrays of each shape (`projected`)."""
    probes = []
    for position, array in enumerate(arrays):
        if mode == "projected":
            probes += [_Probe(position, None, random.standard_normal(array.shape)) for _ in range(repeats)]
            continue
        for element in np.ndindex(array.shape):
            unit = np.zeros(array.shape)
            unit[element] = 1.0
            probes.append(_Probe(position, element, unit))
    return probes


def _compare(
    problem: _Problem,
    position: int,
    rows: list[_Probe],
    columns: list[_Probe],
    gradients: Array,
    steps: Array,
    tolerance: float,
) -> list[Comparison]:
    """All comparisons of one input: `rows` weigh outputs, `columns` are directions; `gradients` [row, element]."""
    x = problem.inputs[position].data
    size = _size(x)
    outputs = np.array([row.position for row in rows])
    rounding = np.finfo(float).eps * np.array([row.measure(problem.outputs) for row in rows])[:, None]

    def estimate(direction: Array) -> Estimate:
        adjoint = size * gradients @ direction.ravel()

        def f(h: float) -> Array:
            y = problem.evaluate(position, x + h * size * direction)
            return np.array(
                [np.vdot(r.array, y[r.position]) if r.element is None else y[r.position][r.element] for r in rows]
            )

        def enough(found: Estimate) -> bool:
            column = Estimate(*[part[:, None] for part in found])
            error, spread = _compare_sizes(size * gradients, adjoint[:, None], column, rounding, tolerance, outputs)
            return bool(np.all(np.maximum(error, spread) <= _ENOUGH * tolerance))

        return derivative(f, steps, enough, rounding=rounding[:, 0])

    estimates = _estimate_each(estimate, columns)
    found = Estimate(*[np.stack(parts, axis=1) for parts in zip(*estimates, strict=True)])  # [row, column]
    adjoint = size * gradients @ np.array([column.array.ravel() for column in columns]).T
    error, spread = _compare_sizes(size * gradients, adjoint, found, rounding, tolerance, outputs)
    error[~np.isfinite(error)] = np.inf
    comparisons = []
    for (r, row), (c, column) in itertools.product(enumerate(rows), enumerate(columns)):
        e, s = float(error[r, c]), float(spread[r, c])
        outcome: Outcome = "untrusted" if max(e, s) > tolerance else "passed"
        if e > max(tolerance, _DOUBT * s):
            outcome = "failed"
        comparisons.append(
            Comparison(
                outcome=outcome,
                input=position,
                input_element=column.element,
                output=row.position,
                output_element=row.element,
                adjoint=float(adjoint[r, c] / size),
                finite_difference=float(found.value[r, c] / size),
                error=e,
                spread=s,
                eps=float(found.step[r, c]),
            )
        )
    return comparisons


def _estimate_each(estimate: Callable[[Array], Estimate], columns: list[_Probe]) -> list[Estimate]:
    """Estimate the derivatives along all columns; one along which both sides are refused gets entries of one sign.

    Values at their bounds allow only that, such as inertias of 0.
    """
    found = []
    for place, column in enumerate(columns):
        there = estimate(column.array)
        if (column.array < 0).any() and not np.isfinite(there.spread).any():
            columns[place] = column._replace(array=abs(column.array))
            there = estimate(columns[place].array)
        found.append(there)
    return found


def _compare_sizes(
    gradients: Array, adjoint: Array, found: Estimate, rounding: Array, tolerance: float, output: Array
) -> tuple[Array, Array]:
    """Relative errors of the adjoints, and relative spreads of the differences, [row, column].

    What moves a value by less than its rounding counts as zero: a derivative by cancelling terms, or of an output that
    is huge and does not depend on the input.
    """
    scale = np.maximum(_scale(gradients, found.value, found.slope, output), rounding / tolerance)
    is_zero = (found.slope == 0) & (abs(adjoint) <= rounding) & (abs(found.value) * found.step <= 4 * rounding)
    error, spread = [np.where(is_zero, 0.0, each) for each in (abs(adjoint - found.value), found.spread)]
    return error / scale, spread / scale


def _size(x: Array) -> float:
    """The root mean square; 1 for zeros."""
    return math.sqrt(np.mean(np.square(x))) if x.any() else 1.0


def _scale(gradients: Array, value: Array, slope: Array, output: Array) -> Array:
    """The reference of relative errors, [row, 1]: the norm of the row's gradient, unless that is negligible."""
    finite = np.where(np.isfinite(value), value, 0.0)
    norm = np.maximum(np.linalg.norm(gradients, axis=1), abs(finite).max(axis=1))
    norm = np.where(np.isfinite(norm), norm, 0.0)
    for index in np.unique(output):
        same = output == index
        norm[same] = np.maximum(norm[same], _FLOOR * norm[same].max())
    norm = np.maximum(norm, _FLOOR * slope.max(axis=1))
    return np.where(norm > 0, norm, 1.0)[:, None]
