"""A model stays as it is, whatever its class: kernels are compiled for its topology and its time step."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from simphys.autograd.errors import InputError
from simphys.simulator import Model, Shape


@dataclass
class Chain(Model):
    """Not frozen, with a list and an array."""

    n: int
    dt: float = 0.1
    ends: Any = field(default_factory=lambda: [[0, 1], [1, 2]])
    masses: Any = field(default_factory=lambda: np.ones(3))

    def param_shapes(self) -> dict[str, Shape]:
        return {}

    def state_shapes(self) -> dict[str, Shape]:
        return {"x": (self.n,)}


def test_no_attribute_is_set_after_it_is_made() -> None:
    model = Chain(3)
    with pytest.raises(InputError, match=r"Chain.dt: a model stays as it is: kernels are compiled for it; found 0.5"):
        model.dt = 0.5
    assert replace(model, dt=0.5).dt == 0.5 and model.dt == 0.1
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        with pytest.raises(InputError, match="stays as it is"):
            other.n = 4


def test_its_lists_are_tuples_and_its_arrays_are_copies_that_cannot_be_written() -> None:
    ends, masses = [[0, 1], [1, 2]], np.ones(3)
    model = Chain(3, ends=ends, masses=masses)
    ends[0][0], masses[0] = 2, 5.0
    assert model.ends == ((0, 1), (1, 2)) and model.masses[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        model.masses[0] = 5.0
