"""A node of a step's graph, its outputs for other inputs, and the sizes that these are weighted by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from simphys.autograd import Context, Tensor
from simphys.simulator import Array

NUDGES = 4
"""Number of changes of the inputs in their last digits by which rounding is measured."""
FAINT = 1e-9
"""Size of an output, relative to the largest input or output, below which it may be rounding alone."""
NO_DIGITS = 1e-3
"""Relative change of an output by nudges from which on it has no digits that could be compared."""


@dataclass(frozen=True)
class SubStep:
    """Node of a step's graph."""

    node: Context
    inputs: tuple[Any, ...]
    outputs: tuple[Tensor, ...]

    @property
    def name(self) -> str:
        """Name of its Function."""
        return self.node.name().removesuffix("Backward")

    @property
    def own(self) -> bool:
        """True if its Function belongs to the simulator; False for an operation on Tensors."""
        return not self.node.function.__module__.startswith("simphys.autograd")

    @cached_property
    def output_sizes(self) -> list[float]:
        """Sizes by which outputs are weighted: their root mean squares, or those of the terms that cancel in them.

        An output that is 0 but for rounding, such as 7e-18, would weigh so much that nothing else counted. Its terms
        are as large as its change by nudges of the inputs, divided by their relative size.
        """
        sizes = [root_mean_square(y.data) for y in self.outputs]
        inputs = [root_mean_square(v.data) for v in self.inputs if isinstance(v, Tensor) and v.requires_grad]
        largest = max([*sizes, *inputs])
        if min(sizes) >= FAINT * largest:
            return sizes
        random = np.random.default_rng(0)
        nudged = [compute_outputs(self, round_inputs(self.inputs, random)) for _ in range(NUDGES)]
        for place, y in enumerate(self.outputs):
            changes = [root_mean_square(moved[place].data - y.data, zero=0.0) for moved in nudged]
            change = min(filter(None, changes), default=0.0)  # a kink may make some of them large
            if sizes[place] < FAINT * largest and change > NO_DIGITS * sizes[place]:
                sizes[place] = max(sizes[place], min(change / np.finfo("f8").eps, largest))
        return sizes


def compute_outputs(
    sub_step: SubStep, inputs: Sequence[Any], place: int | None = None, value: Tensor | None = None
) -> list[Tensor]:
    """Compute the outputs of a sub-step, as functions of one of its inputs if it is given a value."""
    given = [v.detach() if isinstance(v, Tensor) else v for v in inputs]
    if place is not None:
        given[place] = value
    found = sub_step.node.function.apply(*given)
    return list(found) if isinstance(found, tuple) else [found]


def round_inputs(inputs: Sequence[Any], random: np.random.Generator) -> list[Any]:
    """Change all inputs that have derivatives in their last digits, so that other rounding errors follow."""
    rounded: list[Any] = []
    for value in inputs:
        if isinstance(value, Tensor) and value.requires_grad:
            digits = np.finfo(value.dtype).eps * random.choice([-1.0, 1.0], value.shape)
            rounded.append(Tensor(np.asarray(value.data * (1 + digits), value.dtype)))
        else:
            rounded.append(value)
    return rounded


def root_mean_square(values: Array, *, zero: float = 1.0) -> float:
    return (float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0) or zero
