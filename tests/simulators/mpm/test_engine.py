"""The engine of material points: the end of a motion, streams and pieces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simphys.autograd import no_grad
from simphys.rollout import BlowUp, Mode, rollout

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
