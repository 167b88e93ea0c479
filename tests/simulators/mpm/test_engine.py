"""The engine of material points: the end of a motion, streams and pieces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simphys.autograd import no_grad
from simphys.rollout import BlowUp, Mode, rollout, stream
from simphys.simulators.mpm.collider import Collider

from .systems import Case, system


def leaving(step: int) -> Case:
    """Build a case in which only particle 3 leaves, along the first axis; with margin 1 no upper wall stops it."""
    case = system(2, laws=("fluid",), particles=5, actuators=0)
    model = replace(case.model, margin=1, walls=("separating",) * 4)
    x, v = np.full((5, 2), 0.35) + 0.01 * np.arange(5)[:, None], np.zeros((5, 2))
    x[3] = (model.cells[0] - 1.5) * model.spacing - (step - 0.5) * model.dt, 0.55
    v[3, 0] = 1.0
    zero, still = np.zeros((5, 2, 2)), np.tile(np.eye(2), (5, 1, 1))
    started = case.starting(position=x, velocity=v, affine=zero, deformation=still, gravity=np.zeros(2))
    return started._replace(model=model)


@pytest.mark.parametrize("mode", ["fused", "step", "nested"])
@pytest.mark.parametrize("step", [1, 3])
def test_a_particle_that_leaves_the_grid_ends_the_motion_and_is_named(step: int, mode: Mode) -> None:
    model, params, state, _ = leaving(step)
    with no_grad(), pytest.raises(BlowUp, match="article 3") as caught:
        rollout(model, params, state, steps=5, mode=mode)
    assert caught.value.step == step and caught.value.field == "position" and caught.value.element == (3, 0)
    with no_grad():
        if step > 1:
            rollout(model, params, state, steps=step - 1, mode=mode)


def test_a_motion_that_stays_is_not_ended() -> None:
    case = system(2, laws=("fluid",), particles=5, actuators=0)
    with no_grad():
        final = rollout(case.model, case.params, case.state, steps=50, keep="final").final
    assert all(np.isfinite(x.data).all() for x in final.tensors())


def test_a_stream_gives_the_states_of_the_rollout() -> None:
    case = system(2, laws=("fluid",), particles=5, actuators=0)
    with no_grad():
        whole = rollout(case.model, case.params, case.state, steps=7).states.arrays()
    blocks = list(stream(case.model, case.params, case.state, steps=7, block=3))
    for name, expected in whole.items():
        np.testing.assert_array_equal(np.concatenate([states[name] for _, states in blocks]), expected)


def test_a_motion_in_pieces_is_the_motion_at_once() -> None:
    """Controlled colliders are included, as their velocities are recomputed for each piece."""
    case = system(2, laws=("fluid",), particles=5, steps=6, colliders=(Collider("sphere", (0.12,), "sticking"),))
    assert case.control is not None
    engine = case.model.engine(
        {name: x[None] for name, x in case.params.arrays().items()}, case.control.data, batch=1,
        needs=frozenset(), deterministic=False,
    )  # fmt: skip
    states = []
    for pieces in ((6,), (1, 2, 3)):
        segment, start = engine.segment(6), 0
        engine.load(segment, {name: x[None] for name, x in case.state.arrays().items()})
        for steps in pieces:
            engine.advance(segment, first=0, start=start, steps=steps)
            start += steps
        states.append(engine.read(segment, slice(None)))
    for name, whole in states[0].items():
        np.testing.assert_array_equal(states[1][name], whole, err_msg=name)
