"""Arrays of models are locked: a write to topology, which no version shows, raises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys import load_scene
from simphys.simulator.contract import ModelType

SCENES = Path(__file__).parents[2] / "scenes"
ONE_EACH = (
    *("billiards/carom", "charges/find_charges", "heat/conductivity", "mass_spring/throw", "mpm/squeeze"),
    *("pendulum/double", "rigid/walker_2d", "shallow_water/harbour", "smoke/taylor_green", "wave/drop"),
)


def writable_arrays(value: Any, path: str) -> Iterator[str]:
    """Yield the arrays inside a value that can be written to."""
    if isinstance(value, np.ndarray):
        if value.flags.writeable:
            yield path
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            yield from writable_arrays(part, f"{path}[{number}]")
    elif is_dataclass(value):
        for field in fields(value):
            yield from writable_arrays(getattr(value, field.name), f"{path}.{field.name}")


@pytest.mark.parametrize("name", ONE_EACH)
def test_arrays_of_a_model_are_locked(name: str) -> None:
    model = load_scene(SCENES / f"{name}.toml").model
    assert not list(writable_arrays(model, "model"))


def test_derived_tables_of_rigid_bodies_are_locked() -> None:
    model: Any = load_scene(SCENES / "rigid" / "walker_2d.toml").model
    assert not list(writable_arrays([model.free, model.free_rows, model.constraints], "model"))


def test_a_model_does_not_share_the_arrays_that_it_is_given() -> None:
    @dataclass(frozen=True)
    class Chain(metaclass=ModelType):
        ends: np.ndarray

    ends = np.arange(4)
    chain = Chain(ends)
    ends[0] = 9
    assert chain.ends.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError):
        chain.ends[0] = 9
    assert chain.ends.tolist() == [0, 1, 2, 3]
