"""The engine of waves gives what the generated engine gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simphys.autograd import linearize
from simphys.rollout.engine import engine_of
from simphys.simulators.wave.model import Wave
from simphys.simulators.wave.step import step

from ....mutation.sweep import use_engine
from ..systems import LINE, PLANE, SPACE, TORUS, Array, case, weighted_sum

STEPS = 5
MODELS = {"line": LINE, "plane": PLANE, "space": SPACE, "torus": TORUS, "bare": replace(TORUS, sources=(), receivers=0)}


def evaluate(model: Wave, batched: tuple[str, ...]) -> list[Array]:
    """Compute loss, gradients by all leaves, and tangents of the final state."""
    given = case(model, STEPS, batch=2 if batched else None, batched=batched)
    trajectory, leaves = given.rollout(), [x for x in given.leaves if x.requires_grad]
    loss = weighted_sum(trajectory)
    loss.backward(retain_graph=True)
    random = np.random.default_rng(2)
    tangents = [random.normal(size=x.shape) for x in leaves]
    moved = linearize((trajectory.final.height, trajectory.final.received), leaves)(*tangents)
    return [loss.data, *[x.grad.data for x in leaves if x.grad is not None], *moved]


@pytest.mark.parametrize("batched", [(), ("speed", "source_position")], ids=["alone", "batch"])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_it_agrees_with_the_generated_engine(model: Wave, batched: tuple[str, ...]) -> None:
    if batched and not model.sources:
        batched = ("speed", "height")
    own = evaluate(model, batched)
    with use_engine(Wave, engine_of(step)):
        generated = evaluate(model, batched)
    assert len(own) > 4
    for found, expected in zip(own, generated, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * max(np.abs(expected).max(initial=0), 1e-300))
