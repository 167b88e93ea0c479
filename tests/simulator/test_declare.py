"""What is declared of fields of Params and State: shapes, signs and units follow from it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor
from simphys.autograd.errors import InputError, UnphysicalValue
from simphys.simulator import Model, Record, declare
from simphys.simulator.declare import declarations, make_empty, meanings
from simphys.simulator.space import OnGrid
from simphys.simulator.summary import documented_units


@dataclass(frozen=True)
class Params(Record):
    conductivity: Tensor = declare("*cells", "W/(m K)", sign="positive")
    """Conductivity of
    each cell."""
    wind: Tensor = declare("dim, *cells", "m/s")
    """Wind."""
    side_temperature: Tensor = declare("2 dim, 3", "K")
    """Temperature of each side."""
    loss: Tensor = declare("", "1", sign="not_negative")
    """Loss."""
    smoke: Tensor = declare("*cells", "1", only_if="smoky", default_factory=make_empty)
    """Smoke."""


@dataclass(frozen=True)
class State(Record):
    temperature: Tensor = declare("*cells", "K")


@dataclass(frozen=True)
class Room(OnGrid, Model):
    cells: tuple[int, ...] = (4, 3)
    spacing: float = 0.5
    dt: float = 0.1
    smoky: bool = False
    Params, State = Params, State


def test_shapes_are_read_from_attributes_of_the_model() -> None:
    shapes = {"conductivity": (4, 3), "wind": (2, 4, 3), "side_temperature": (4, 3), "loss": (), "smoke": (0,)}
    assert Room().param_shapes() == shapes
    assert Room((5,), smoky=True).param_shapes()["smoke"] == (5,)
    assert Room().state_shapes() == {"temperature": (4, 3)}


def test_the_grid_has_the_fields_with_a_value_for_each_cell() -> None:
    grid = Room().describe_grid()
    assert grid is not None and grid.fields == {"temperature": "K", "conductivity": "W/(m K)", "wind": "m/s"}
    smoky = Room(smoky=True).describe_grid()
    assert smoky is not None and smoky.fields["smoke"] == ""
    assert (grid.cells, grid.spacing, grid.offset) == ((4, 3), 0.5, 0.5)


def test_units_and_meanings_are_those_of_the_fields() -> None:
    assert documented_units(Params) == {"conductivity": "W/(m K)", "wind": "m/s", "side_temperature": "K"}
    assert meanings(Params)["conductivity"] == "Conductivity of each cell."
    assert meanings(State) == {}
    assert [each.name for each in fields(Params)] == list(declarations(Params))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"conductivity": np.array([1.0, 0.0])},
            r"Room: conductivity: positive and finite; found .*\[1\] = 0\.",
        ),
        ({"loss": np.array(-1.0)}, r"Room: loss: 0 or more, and finite; found loss = -1\."),
        ({"conductivity": np.array([np.nan])}, "positive and finite"),
    ],
)
def test_values_of_another_sign_are_refused(changed: dict[str, Any], message: str) -> None:
    values = {name: np.array(1.0) for name in Params.names()}
    Room().check_params(values | {"wind": np.array(-1.0), "smoke": np.zeros(0), "loss": np.array(0.0)})
    with pytest.raises(UnphysicalValue, match=message):
        Room().check_params(values | changed)


def make(shape: str, **attributes: Any) -> Any:
    """Make a model with one parameter of a shape, and with attributes."""
    record: Any = dataclass(frozen=True)(
        type("Params", (Record,), {"__annotations__": {"x": Tensor}, "x": declare(shape, "m")})
    )
    return type("Any", (Model,), {"Params": record, "State": State, "n": 3, "pair": (1, 2), **attributes})()


def test_lengths_and_numbers_of_numpy_count_and_a_wrong_name_is_told() -> None:
    assert make("pair, n").param_shapes() == {"x": (2, 3)}
    assert make("2 n, *pair", n=np.int64(4)).param_shapes() == {"x": (8, 1, 2)}
    with pytest.raises(InputError, match=r"Any\.Params\.x: shapes name attributes of Any; found no nodes\."):
        make("nodes").param_shapes()
    with pytest.raises(InputError, match=r"declare: a shape names attributes of the model; found 'n,dim'"):
        declare("n,dim", "m")


def test_fields_that_are_not_declared_need_a_method() -> None:
    plain: Any = dataclass(frozen=True)(type("Params", (Record,), {"__annotations__": {"x": Tensor, "y": Tensor}}))
    with pytest.raises(InputError, match=r"all fields are declared; found no declaration of x, y.*define param_shapes"):
        make("n", Params=plain).param_shapes()
    own = make("n", Params=plain, param_shapes=lambda self: {"x": (1,), "y": ()})
    assert own.param_shapes() == {"x": (1,), "y": ()}


def test_what_a_model_does_without_need_not_be_given() -> None:
    empty = make_empty()
    assert Params(empty, empty, empty, empty).smoke.shape == (0,)
    with pytest.raises(TypeError, match="loss"):
        Params(empty, empty, empty)  # type: ignore[call-arg]
