"""The largest stable time step of diffusion."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.errors import InputError
from simphys.experiment.scene import build_scene
from simphys.scenefile import from_dict
from simphys.simulators.smoke import Smoke
from simphys.simulators.smoke.diffuse import Diffuse

from .flows import small, velocity
from .test_scene import sections


def limit_of(model: Smoke) -> float:
    """Return the largest stable time step for a viscosity of 1 m^2/s."""
    return model.step_limits({"viscosity": np.array(1.0)}, {})[0].dt


@pytest.mark.parametrize("sides", ["periodic", "closed"])
def test_diffusion_is_bounded_at_the_limit_and_between_periodic_sides_not_beyond(sides: str) -> None:
    """The fastest mode is a checkerboard, which walls do not allow."""
    model = small(8, 8, boundaries=(sides,) * 4)
    for excess in (0.0, 0.02):
        nu = np.array((1 + excess) * limit_of(model) / model.dt)
        u = velocity(model).data
        for _ in range(1000):
            u = Diffuse.apply(model, tensor(u), tensor(nu), tensor(np.zeros((4, 2)))).data
        assert (abs(u).max() > 1e3) == (excess > 0 and sides == "periodic")


def test_a_time_step_beyond_it_is_refused() -> None:
    limit = 0.5**2 / (4 * 10.0)
    build_scene(from_dict(sections(fluid={"viscosity": 10.0}, time={"dt": limit, "steps": 1})))
    with pytest.raises(InputError, match=r"largest stable time step of this scene is 0\.00625, by the viscosity"):
        build_scene(from_dict(sections(fluid={"viscosity": 10.0}, time={"dt": 1.01 * limit, "steps": 1})))
