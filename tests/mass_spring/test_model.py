"""A topology refuses what no kernel would notice, and lists the springs of each node."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd.errors import InputError
from simphys.mass_spring.model import Topology

from .systems import NAMES, leaves, system, unpacked


def topology(ends: list[list[int]], nodes: int = 3, integrator: str = "semi_implicit_euler") -> Topology:
    return Topology(np.array(ends, np.int32).reshape(-1, 2), np.zeros(nodes, bool), 2, 0.1, integrator)


@pytest.mark.parametrize("ends", [[[0, 3]], [[-1, 0]]])
def test_a_spring_joins_nodes_that_exist(ends: list[list[int]]) -> None:
    with pytest.raises(InputError, match=r"node indices lie in 0\.\.2"):
        topology(ends)


def test_an_unknown_integrator_is_refused_with_the_choice() -> None:
    with pytest.raises(InputError, match=r"semi_implicit_euler.*velocity_verlet.*found rk4"):
        topology([[0, 1]], integrator="rk4")


def test_the_incidence_lists_springs_and_ends_of_each_node_in_the_order_of_springs() -> None:
    start, incidence = topology([[2, 0], [0, 1], [1, 2]]).incidence
    rows = [[(int(entry) >> 1, "ab"[entry & 1]) for entry in incidence[start[i] : start[i + 1]]] for i in range(3)]
    assert rows == [[(0, "b"), (1, "a")], [(1, "b"), (2, "a")], [(0, "a"), (2, "b")]]


def test_an_isolated_node_has_an_empty_row() -> None:
    start, incidence = topology([[0, 2]]).incidence
    assert start.tolist() == [0, 1, 1, 2] and incidence.tolist() == [0, 1]
    start, incidence = topology([]).incidence
    assert start.tolist() == [0, 0, 0, 0] and len(incidence) == 0


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "velocity_verlet"])
def test_the_stages_of_a_step_kick_and_drift_by_dt_in_all(integrator: str) -> None:
    kicks, _, drifts = zip(*topology([], integrator=integrator).stages, strict=True)
    assert sum(kicks) == sum(drifts) == 0.1


def test_parameters_come_in_the_order_in_which_a_step_takes_them() -> None:
    _, params, state = system(2)
    assert leaves(*unpacked(*leaves(params, state))) == leaves(params, state)
    assert [getattr(params, name) for name in NAMES[2:]] == list(params.tensors())
    assert params.replace(mass=params.drag).mass is params.drag
    assert state.replace(velocity=state.position).velocity is state.position
