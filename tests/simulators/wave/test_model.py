"""The wave model: its validation, its layers in memory, and its largest time step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd.errors import InputError, UnphysicalValue
from simphys.rollout import BlowUp, rollout
from simphys.simulators.wave.model import Params, State, Wave

from .systems import PLANE, SPACE, still

LAYERS: dict[str, Any] = {"layer": 3, "layer_speed": 1.0, "layer_frequency": 2.0}
SIDES = ("absorbing", "absorbing", "zero", "free")


def test_sides_are_zero_where_none_is_named() -> None:
    model = Wave((5, 6), 0.1, 0.01)
    assert (model.dim, model.boundaries, model.slabs, model.layer_cells) == (2, ("zero",) * 4, (), 0)
    assert model.control_shape() is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cells": (2, 3, 4, 5)}, "space has 1, 2 or 3 dimensions"),
        ({"order": 6}, r"one of \(2, 4, 8\)"),
        ({"boundaries": ("zero",) * 3}, "4 of"),
        ({"boundaries": ("zero", "zero", "zero", "open")}, "4 of"),
        ({"boundaries": ("periodic", "zero", "zero", "zero")}, "opposite sides are periodic together"),
        ({"cells": (8, 7), "order": 8}, "axis 1 has at least 8 cells"),
        ({"cells": (5, 9), "boundaries": SIDES, **LAYERS}, "axis 0 has at least 6 cells"),
        ({"cells": (9,), "order": 8, "boundaries": ("absorbing", "free"), **LAYERS, "layer": 6}, "at least 10 cells"),
        ({"boundaries": SIDES, **LAYERS, "layer": 0}, "have a width, a speed and a frequency"),
        ({"boundaries": SIDES, **LAYERS, "layer_speed": 0.0}, "have a width, a speed and a frequency"),
        ({"boundaries": SIDES, "layer": 3}, "have a width, a speed and a frequency"),
        ({"sources": ("plane_z",)}, "each is one of"),
    ],
)
def test_invalid_models_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Wave(**{"cells": (9, 9), "spacing": 0.1, "dt": 0.01, **changes})


@pytest.mark.parametrize("model", [PLANE, SPACE], ids=["plane", "space"])
def test_layers_lie_at_their_sides_one_behind_the_other_in_memory(model: Wave) -> None:
    assert len(model.slabs) == model.boundaries.count("absorbing")
    places = [side for side, kind in enumerate(model.boundaries) if kind == "absorbing"]
    offset = 0
    for side, slab in zip(places, model.slabs, strict=True):
        axis, high = divmod(side, 2)
        assert (slab.axis, slab.width, slab.offset) == (axis, model.layer, offset)
        assert slab.first == (model.cells[axis] - model.layer if high else 0)
        assert slab.shape == tuple([model.layer if d == axis else n for d, n in enumerate(model.cells)])
        offset += int(np.prod(slab.shape))
    assert model.layer_cells == offset == model.state_shapes()["slope_memory"][0]


# --- the largest time step


@pytest.mark.parametrize(("dim", "order"), [(1, 2), (2, 4), (2, 8)])
def test_the_largest_time_step_is_the_limit_of_stability(dim: int, order: int) -> None:
    """Below the limit the shortest wave keeps its size; above it, it grows without bound."""
    speed, cells = 1.7, (10,) * dim
    rough = (-1.0) ** np.indices(cells).sum(axis=0)
    limit = Wave(cells, 0.1, 1.0, order=order).largest_dt(speed)

    def largest(dt: float) -> float:
        model = Wave(cells, 0.1, dt, order=order, boundaries=("periodic",) * (2 * dim))
        params, state = still(model, speed=speed, height=rough, previous=rough)
        return float(np.abs(rollout(model, params, state, steps=400, keep="final").final.height.data).max())

    assert (
        largest(0.99 * limit) < 20
    )  # bound: two nearly equal waves of opposite sign, 1 / sin(acos(1 - 2 * 0.99^2) / 2)
    assert largest(1.02 * limit) > 1e12


def test_the_limit_of_the_second_order_is_courants() -> None:
    assert Wave((5,), 0.1, 1.0).largest_dt(2.0) == pytest.approx(0.1 / 2.0)
    assert Wave((5, 5), 0.1, 1.0).largest_dt(2.0) == pytest.approx(0.1 / 2.0 / np.sqrt(2))


def test_a_blow_up_names_the_stability_limit() -> None:
    model = Wave((10,), 0.1, 0.2, boundaries=("periodic",) * 2)
    params, state = still(model, height=(-1.0) ** np.arange(10))
    with pytest.raises(BlowUp, match=r"Lower time\.dt below 0\.1, .* by the largest speed, 1,"):
        rollout(model, params, state, steps=3000)


def test_fields_are_named_as_the_contract_says() -> None:
    assert set(PLANE.state_shapes()) == set(State.names()) and set(PLANE.param_shapes()) == set(Params.names())
    assert PLANE.control_shape() == (2,)


@pytest.mark.parametrize("speed", [0.0, -1.5])
def test_a_speed_that_is_not_positive_is_refused_and_a_search_goes_on(speed: float) -> None:
    """The gradient by the start of a cell without waves is one divided by 0 in the fused steps."""
    model = Wave((6,), 0.1, 0.02)
    params, state = still(model, speed=[1.0, 1.0, speed, 1.0, 1.0, 1.0])
    with pytest.raises(UnphysicalValue, match=rf"Wave: speed: .*found speed\[2\] = {speed:g}"):
        rollout(model, params, state, steps=1)
