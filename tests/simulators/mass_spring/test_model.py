"""The model rejects invalid input that no kernel would notice, and lists the springs at each node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.errors import InputError, UnphysicalValue
from simphys.rollout import BlowUp, Mode, rollout
from simphys.simulators.mass_spring.actuate import Actuate
from simphys.simulators.mass_spring.model import MassSpring
from simphys.substep.relation import Inverse, invert

from .systems import NAMES, leaves, springs_only, system, unpacked


def model(ends: list[list[int]], nodes: int = 3, integrator: str = "semi_implicit_euler") -> MassSpring:
    return MassSpring(np.array(ends, np.int32).reshape(-1, 2), np.zeros(nodes, bool), 2, 0.1, integrator)


@pytest.mark.parametrize("ends", [[[0, 3]], [[-1, 0]]])
def test_a_spring_joins_nodes_that_exist(ends: list[list[int]]) -> None:
    with pytest.raises(InputError, match=r"node indices lie in 0\.\.2"):
        model(ends)


def test_an_unknown_integrator_is_refused_with_a_list_of_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"semi_implicit_euler.*velocity_verlet.*found rk4"):
        model([[0, 1]], integrator="rk4")


def incidence_of(ends: list[list[int]]) -> Inverse:
    made = model(ends)
    return invert(made, "ends", made.ends, made.nodes)


def test_the_incidence_lists_springs_and_ends_of_each_node_in_the_order_of_springs() -> None:
    start, incidence = incidence_of([[2, 0], [0, 1], [1, 2]])
    rows = [[(int(entry) >> 1, "ab"[entry & 1]) for entry in incidence[start[i] : start[i + 1]]] for i in range(3)]
    assert rows == [[(0, "b"), (1, "a")], [(1, "b"), (2, "a")], [(0, "a"), (2, "b")]]


def test_an_isolated_node_has_an_empty_row() -> None:
    start, incidence = incidence_of([[0, 2]])
    assert start.tolist() == [0, 1, 1, 2] and incidence.tolist() == [0, 1]
    start, _ = incidence_of([])
    assert start.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "velocity_verlet"])
def test_the_stages_of_a_step_kick_and_drift_by_dt_in_all(integrator: str) -> None:
    kicks, _, drifts = zip(*model([], integrator=integrator).stages, strict=True)
    assert sum(kicks) == sum(drifts) == 0.1


def test_parameters_come_in_the_order_in_which_a_step_takes_them() -> None:
    _, params, state = system(2)
    assert leaves(*unpacked(*leaves(params, state))) == leaves(params, state)
    assert [getattr(params, name) for name in NAMES[2:]] == list(params.tensors())
    assert params.replace(mass=params.drag).mass is params.drag
    assert state.replace(velocity=state.position).velocity is state.position


def test_shapes_are_those_of_the_fields() -> None:
    for actuators, amplitudes in [(0, 0), (2, 7)]:
        model, params, state = system(2, nodes=5, springs=7, actuators=actuators)
        assert {name: value.shape for name, value in params.arrays().items()} == model.param_shapes()
        assert {name: value.shape for name, value in state.arrays().items()} == model.state_shapes()
        assert params.amplitude.shape == (amplitudes,)
        assert model.control_shape() == ((actuators,) if actuators else None)


def test_an_actuator_drives_some_springs() -> None:
    actuator = np.array([1, -1, 1])
    model = MassSpring(np.array([[0, 1], [1, 2], [2, 0]]), np.zeros(3, bool), 2, 0.1, actuator=actuator)
    assert model.actuators == 2
    start, springs = invert(model, "actuator", actuator, 2)
    assert [springs[start[a] : start[a + 1]].tolist() for a in range(2)] == [[], [0, 2]]
    lengths = Actuate.apply(model, tensor(np.ones(3)), tensor(np.full(3, 0.1)), tensor([5.0, 2.0])).data
    np.testing.assert_allclose(lengths, [1.2, 1.0, 1.2])


@pytest.mark.parametrize("actuator", [[0], [0, -2]])
def test_each_spring_has_an_actuator_or_none(actuator: list[int]) -> None:
    with pytest.raises(InputError, match="an actuator's index, or -1, for each of the 2 springs"):
        MassSpring(np.array([[0, 1], [1, 2]]), np.zeros(3, bool), 2, 0.1, actuator=np.array(actuator))


def test_a_blow_up_names_the_largest_stable_time_step() -> None:
    model, params, state = springs_only([[0, 1]], [[0.0], [1.1]], pinned=[0], stiffness=100.0, dt=0.3)
    expected = r"Lower time\.dt below 0\.2, the largest stable step at the start"  # 2 / sqrt(k / m)
    with pytest.raises(BlowUp, match=expected):
        rollout(model, params, state, steps=1000)


@pytest.mark.parametrize("mass", [0.0, -1.0])
@pytest.mark.parametrize("mode", ["fused", "nested"])
def test_an_unphysical_mass_is_reported_and_a_search_goes_on(mass: float, mode: Mode) -> None:
    model, params, state = springs_only([[0, 1]], [[0.0, 0.0], [1.0, 0.2]], rest_length=0.7)
    params = params.replace(mass=tensor([1.0, mass]))
    with pytest.raises(UnphysicalValue, match=rf"MassSpring: mass: positive and finite; found mass\[1\] = {mass:g}"):
        rollout(model, params, state, steps=1, mode=mode)
    with pytest.raises(UnphysicalValue, match="MassSpring: mass"):
        model.check_params(params.arrays())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ends": [[1, 1]]}, "ends: each row names 2 different nodes"),
        ({"ends": [[0.0, 1.0]]}, "ends: whole numbers"),
        ({"dim": 4}, "dim: space has 1, 2 or 3 dimensions"),
        ({"pinned": np.array([0, 1, 0])}, "pinned: True or False for each node"),
        ({"pinned": True}, "pinned: True or False for each node"),
        ({"actuator": [0.0]}, "actuator: whole numbers"),
    ],
)
def test_a_model_refuses_what_it_cannot_be_made_of(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=rf"MassSpring\.{message}"):
        MassSpring(**{"ends": [[0, 1]], "pinned": [False] * 3, "dim": 2, "dt": 0.1, **changes})


def test_lists_become_arrays() -> None:
    made = MassSpring(ends=[[0, 1]], pinned=[True, False], dim=2, dt=0.1, actuator=[1])  # type: ignore[arg-type]
    assert made.free.tolist() == [0.0, 1.0] and made.ends.dtype == np.int32 and made.actuators == 2
