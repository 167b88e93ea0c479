"""Tables beside objects belong to one object each, and end with it."""

from __future__ import annotations

import copy
import gc
from dataclasses import dataclass, replace

import numpy as np

import simphys.simulator.memo as module
from simphys.simulator.memo import memo


@dataclass(frozen=True)
class Owner:
    values: np.ndarray


def test_a_table_belongs_to_one_object() -> None:
    first = Owner(np.zeros(3))
    memo(first)["made"] = 1
    assert memo(first) == {"made": 1}
    for other in (Owner(first.values), replace(first), copy.copy(first), copy.deepcopy(first)):
        assert memo(other) == {}


def test_a_table_ends_with_its_object() -> None:
    owner = Owner(np.zeros(3))
    memo(owner)["made"] = 1
    key = id(owner)
    assert key in module._tables
    del owner
    gc.collect()
    assert key not in module._tables
