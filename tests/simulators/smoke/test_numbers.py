"""A start that is no number is an error, though advection's limits would hide it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simphys import load_scene, rollout
from simphys.autograd import tensor
from simphys.rollout import BlowUp

SCENE = Path(__file__).parents[3] / "scenes" / "smoke" / "taylor_green.toml"


def test_one_nan_in_the_start_is_an_error() -> None:
    scene = load_scene(SCENE)
    velocity = scene.state.velocity.data.copy()
    velocity[0, 5, 5] = np.nan
    with pytest.raises(BlowUp, match=r"at step 0 .* in velocity\[0, 5, 5\] = nan"):
        rollout.rollout(scene.model, scene.params, scene.state.replace(velocity=tensor(velocity)), steps=3)
