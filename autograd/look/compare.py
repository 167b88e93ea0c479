"""`compare`: the costs of two ways to put functions together, and the differences of their results."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from ..compose.replay import Step, detach_inputs, eps_of, outputs_of, pull_back
from ..errors import InputError
from ..graph import ancestors
from ..mode import enable_grad
from ..tensor import Array, Tensor
from .saved_memory import saved_bytes

_REPEATS = 5
_ROUNDINGS = 4096  # [eps of the dtype]: sums of some thousand terms may be taken in another order


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of a graph: number of nodes (without leaves), distinct saved memory, and median times."""

    nodes: int
    bytes_saved: int
    """[B], including inner graphs, and inputs where nodes keep them."""
    forward: float
    """[s], with recording."""
    backward: float
    """[s]"""

    def __str__(self) -> str:
        times = f"forward {1e6 * self.forward:.1f} us, backward {1e6 * self.backward:.1f} us"
        return f"nodes {self.nodes}, bytes saved {self.bytes_saved}, {times}"


@dataclass(frozen=True, kw_only=True)
class CompareReport:
    """The costs of two ways to compute the same, and the differences of their results."""

    nested: Cost
    combined: Cost
    value_differences: tuple[float, ...]
    """Largest difference of each output, relative to its largest magnitude."""
    gradient_differences: dict[int, float]
    """The same for the gradient of each input that requires one, by its number."""

    def __str__(self) -> str:
        gradients = ", ".join([f"input {i}: {difference:.1e}" for i, difference in self.gradient_differences.items()])
        return (
            f"nested:   {self.nested}\ncombined: {self.combined}\nlargest relative difference of values: "
            f"{max(self.value_differences):.1e}; of gradients: {gradients}"
        )


def compare(nested: Step, combined: Step, inputs: Tensor | Sequence[Any]) -> CompareReport:
    """Run both on `inputs` and report their costs; gradients are of a fixed random combination of the outputs.

    Errors: InputError if no input requires a gradient; AssertionError for different shapes or dtypes, and, with the
    report, for values or gradients that differ by more than 4096 roundings relative to the largest magnitude.
    """
    inputs = (inputs,) if isinstance(inputs, Tensor) else inputs
    if not any([isinstance(x, Tensor) and x.requires_grad for x in inputs]):
        raise InputError("compare", "an input requires a gradient", "none", "Set requires_grad=True on one.")
    cost, values, gradients = _measure(nested, inputs)
    other_cost, other_values, other_gradients = _measure(combined, inputs)
    kinds, other_kinds = ([f"{y.dtype} {y.shape}" for y in ys] for ys in (values, other_values))
    if kinds != other_kinds:
        raise AssertionError(f"compare: nested gives outputs {kinds}, combined {other_kinds}")
    report = CompareReport(
        nested=cost,
        combined=other_cost,
        value_differences=tuple(map(_difference, values, other_values)),
        gradient_differences={i: _difference(g, other_gradients[i]) for i, g in gradients.items()},
    )
    found = [(f"output {i}", y, report.value_differences[i]) for i, y in enumerate(values)]
    found += [(f"the gradient of input {i}", g, report.gradient_differences[i]) for i, g in gradients.items()]
    for name, array, difference in found:
        if difference > _ROUNDINGS * eps_of(array.dtype):
            raise AssertionError(f"compare: {name} differs by {difference:.1e}, relatively\n{report}")
    return report


def _measure(fn: Step, inputs: Sequence[Any]) -> tuple[Cost, list[Array], dict[int, Array]]:
    """Measure the cost, values, and gradients by the numbers of the inputs."""
    forward, backward = [], []
    for _ in range(_REPEATS):
        arguments = detach_inputs(inputs)
        with enable_grad():
            start = time.perf_counter()
            outputs = outputs_of(fn, fn(*arguments))
            forward.append(time.perf_counter() - start)
        random = np.random.default_rng(0)
        seeds = [Tensor(np.asarray(random.standard_normal(y.shape), y.dtype)) for y in outputs]
        nodes = sum(not node.is_accumulator for node in ancestors(outputs))
        bytes_saved = saved_bytes([y.grad_fn for y in outputs if y.grad_fn is not None])
        start = time.perf_counter()
        adjoints = pull_back(outputs, arguments, seeds)
        backward.append(time.perf_counter() - start)
    cost = Cost(nodes=nodes, bytes_saved=bytes_saved, forward=median(forward), backward=median(backward))
    gradients = {
        i: np.zeros(x.shape, x.dtype) if adjoint is None else adjoint.data
        for i, (x, adjoint) in enumerate(zip(inputs, adjoints, strict=True))
        if isinstance(x, Tensor) and x.requires_grad
    }
    return cost, [y.data for y in outputs], gradients


def _difference(first: Array, second: Array) -> float:
    """The largest difference relative to the largest magnitude; the same NaN or inf in both counts as equal."""
    with np.errstate(all="ignore"):
        same = (first == second) | (np.isnan(first) & np.isnan(second))
        finite = np.abs(np.array([first, second], "f8"))
        scale = np.max(finite, initial=0.0, where=np.isfinite(finite))
        gap = np.where(same, 0.0, np.abs(np.subtract(first, second, dtype="f8")) / scale)
    return float(np.max(np.where(np.isnan(gap), np.inf, gap), initial=0.0))
