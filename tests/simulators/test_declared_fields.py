"""Fields of all simulators are declared, and values of another sign than the declared one are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.autograd.errors import UnphysicalValue
from simphys.scenefile import load
from simphys.simulator.declare import declarations, meanings

SCENES = Path(__file__).parents[2] / "scenes"


@pytest.mark.parametrize(
    "scene",
    [
        *("mass_spring/crawler", "billiards/carom", "charges/find_charges", "elastic/section", "heat/source"),
        *("molecular/argon", "mpm/press", "pendulum/friction", "rigid/block_on_springs", "rigid/push", "smoke/cavity"),
        *("sph/dam", "wave/drop", "shallow_water/harbour"),
    ],
)
def test_fields_have_their_shapes_meanings_and_signs(scene: str) -> None:
    model, params, state = load(SCENES / f"{scene}.toml").build()
    for record, shapes in ((params, model.param_shapes()), (state, model.state_shapes())):
        kind: Any = type(record)
        shared = [name for name, values in record.arrays().items() if values.shape == shapes[name]]
        assert list(shapes) == list(declarations(kind)) == list(meanings(kind)) == list(kind.names())
        assert [name for name in shapes if record.arrays()[name].shape[1:] != shapes[name] and name not in shared] == []
    given = params.arrays()
    model.check_params(given)
    for name, about in declarations(model.Params).items():
        if about.sign != "any" and given[name].size:
            for wrong in (-1.0, np.nan, np.inf, *([0.0] if about.sign == "positive" else [])):
                with pytest.raises(UnphysicalValue, match=f"{type(model).__name__}: {name}: "):
                    model.check_params({**given, name: np.full_like(given[name], wrong)})
