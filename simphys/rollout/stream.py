"""Rollout without gradients, block by block, for horizons whose states do not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..autograd import Tensor
from ..autograd.errors import InputError
from ..simulator import Array, Arrays, Engine, Model
from .inputs import Inputs, read_inputs
from .run import Monitor, Progress, split_blocks
from .trajectory import LIMIT


def stream(
    model: Model,
    params: Any,
    state: Any,
    *,
    steps: int,
    block: int,
    control: Tensor | None = None,
    deterministic: bool = False,
    limit: float = LIMIT,
    on_progress: Progress | None = None,
) -> Iterator[tuple[Array, Arrays]]:
    """Simulate, and yield (step numbers [rows], states [rows, *shape] or [B, rows, *shape] by field) of each block.

    The first block begins with step 0, the initial state. Only one block is in memory. Errors: InputError; BlowUp,
    after the last sound steps have been yielded, even if they do not fill a block.
    """
    inputs = read_inputs(model, params, state, control, steps)
    if block < 1:
        raise InputError("stream", "a block has at least one step", block, "Pass the number of steps per block.")
    engine = inputs.model.engine(*inputs.arrays(), batch=inputs.members, needs=frozenset(), deterministic=deterministic)
    return _blocks(inputs, engine, Monitor(inputs, limit, on_progress), min(block, steps))


def _blocks(inputs: Inputs, engine: Engine, monitor: Monitor, block: int) -> Iterator[tuple[Array, Arrays]]:
    segment = engine.segment(block)
    current = inputs.start

    def rows(first: int, begin: int, end: int) -> tuple[Array, Arrays]:
        """Read rows begin ... end of the segment that starts at step `first`."""
        states = engine.read(segment, slice(begin, end + 1))
        of_one = states if inputs.batch is not None else {name: values[0] for name, values in states.items()}
        return np.arange(first + begin, first + end + 1), of_one

    for first, count in split_blocks(inputs.steps, block):
        engine.load(segment, current)
        begin = 0 if first == 0 else 1
        try:
            last = monitor.advance(engine, segment, first=first, steps=count)
        except BaseException:
            if monitor.reached - first >= begin:  # yield the sound states of this block all the same
                yield rows(first, begin, monitor.reached - first)
            raise
        yield rows(first, begin, count)
        current = {name: values[:, 0] for name, values in last.items()}
