"""A rollout without gradients, block by block: for horizons whose states do not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..autograd import Tensor, no_grad
from ..simulator import Array, Arrays, Model
from .inputs import read_inputs
from .run import Progress, Watch, blocks
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
    """(step numbers [rows], states [rows, *shape] or [B, rows, *shape] by field) of each block of the horizon.

    The first block begins with step 0, the start; memory is that of one block. Errors: InputError; BlowUp, after the
    blocks before it and, as a last one, the steps of its own block up to the blow-up.
    """
    inputs = read_inputs(model, params, state, control, steps)
    arrays = params.arrays()
    with no_grad():
        engine = model.engine(
            arrays,
            None if control is None else control.data,
            batch=inputs.members,
            needs=frozenset(),
            deterministic=deterministic,
        )
    watch = Watch(model, arrays, limit, steps, on_progress)
    segment = engine.segment(min(block, steps))
    current = inputs.start()

    def part(states: Arrays) -> Arrays:
        return {name: values if inputs.batch else values[0] for name, values in states.items()}

    for first, count in blocks(steps, block):
        engine.load(segment, current)
        begin = 0 if first == 0 else 1
        try:
            watch.advance(engine, segment, first=first, steps=count)
        except BaseException:
            reached = watch.reached - first  # sound states of this block are handed out even so
            if reached >= begin:
                yield (
                    np.arange(first + begin, first + reached + 1),
                    part(engine.read(segment, slice(begin, reached + 1))),
                )
            raise
        yield np.arange(first + begin, first + count + 1), part(engine.read(segment, slice(begin, count + 1)))
        current = {name: values[:, 0] for name, values in engine.read(segment, [count]).items()}
