"""Full tensors of inertia, and roots by which unknown inertias stay those of matter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import simphys
from simphys.autograd import Tensor, gradcheck, tensor
from simphys.autograd.errors import UnphysicalValue
from simphys.autograd.proof.gradcheck import dot_product_test
from simphys.experiment.scene import build_scene
from simphys.rollout import rollout
from simphys.scenefile import ConfigError, from_dict
from simphys.simulators.rigid import Params, RigidBodies
from simphys.simulators.rigid.checks import check_params
from simphys.simulators.rigid.motion.drift import Drift, FreeDrift
from simphys.simulators.rigid.motion.kick import Kick
from simphys.simulators.rigid.pseudo_inertia import as_matrix, find_gyration, find_inertia, second_moments
from simphys.simulators.rigid.solver.mobility import Mobility
from simphys.simulators.rigid.stability import step_limits

from ...helpers.rounding import assert_equal_but_for_rounding
from .free_bodies import bodies, drift_inputs, free_drift_inputs, inertia, kick_inputs
from .solver.test_mobility import contact_states, make_inputs, make_model
from .systems import chain

FOLDER = Path(__file__).parents[3] / "scenes" / "rigid"
FRAME = Rotation.from_rotvec([0.4, -0.7, 0.2])
"""Of the principal axes in the frame of a body."""


@pytest.mark.parametrize(
    ("substep", "inputs"), [(Kick, kick_inputs), (Drift, drift_inputs), (FreeDrift, free_drift_inputs)]
)
def test_motion_with_full_tensors_has_right_derivatives(substep: Any, inputs: Any) -> None:
    model = bodies(3, 2, full=True)
    given = tuple(inputs(model).values())
    gradcheck(lambda *x: substep.apply(model, 0.3, *x), given, tolerance=1e-8, mode="projected")
    dot_product_test(lambda *x: substep.apply(model, 0.3, *x), given, tolerance=1e-12)


def mobility_inputs(model: RigidBodies) -> list[Tensor]:
    return [*make_inputs(model)[:-1], inertia(model)]


def test_mobility_with_full_tensors_has_right_derivatives() -> None:
    model = replace(make_model(3), full_inertia=True)
    gradcheck(
        lambda *x: Mobility.apply(model, contact_states(model), *x),
        mobility_inputs(model),
        tolerance=1e-8,
        mode="projected",
    )


def test_a_turned_frame_changes_no_motion() -> None:
    """Principal axes that are turned in the frame, and frames that are turned back, move alike."""
    model, params, state = chain(3)
    plain = replace(model, joints=(), springs=(), free_anchors=False, joint_friction=False)
    shapes = plain.param_shapes()
    given = {name: tensor(np.zeros(shape)) for name, shape in shapes.items()}
    moments = np.array([[0.2, 0.3, 0.4], [0.3, 0.3, 0.5], [0.1, 0.2, 0.25]])
    given |= {"mass": params.mass, "inertia": tensor(moments), "gravity": params.gravity}
    spin = np.array([[1.0, 2.0, -1.0], [0.3, -0.4, 0.6], [2.0, 0.1, 0.2]])
    start = state.replace(angular_velocity=tensor(spin))
    P = FRAME.as_matrix()
    tensors = np.array([P @ np.diag(each) @ P.T for each in moments])
    full = np.stack([tensors[:, i, j] for i, j in ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))], axis=1)
    np.testing.assert_allclose(as_matrix(full), tensors, atol=1e-15)
    turned = np.array([np.roll((Rotation.from_quat(np.roll(q, -1)) * FRAME.inv()).as_quat(), 1)
                       for q in start.orientation.data])  # fmt: skip
    one = rollout(plain, Params(**given), start, steps=50)
    other = rollout(
        replace(plain, full_inertia=True),
        Params(**{**given, "inertia": tensor(full)}),
        start.replace(orientation=tensor(turned)),
        steps=50,
    )
    assert_equal_but_for_rounding(other.angular_velocity.data, one.angular_velocity.data, ulps=4096)
    assert abs(one.angular_velocity.data[-1] - spin).max() > 0.1


def test_limits_of_the_step_do_not_depend_on_the_frame() -> None:
    model, params, state = chain(3)
    moments, full = params.inertia.data, replace(model, full_inertia=True)
    widened = np.hstack([moments, np.zeros_like(moments)])
    one = step_limits(model, params.arrays(), state.arrays())[0]
    other = step_limits(full, {**params.arrays(), "inertia": widened}, state.arrays())[0]
    assert one[:2] == other[:2] and one.dt < np.inf


def test_roots_are_those_of_the_inertia_and_back() -> None:
    for given in ([0.3], [0.2, 0.3, 0.4], [0.2, 0.3, 0.4, 0.03, -0.02, 0.05]):
        root = find_gyration(2.0, np.array(given))
        assert root is not None
        found = find_inertia(tensor([2.0]), tensor([root])).data[0]
        np.testing.assert_allclose(found, np.pad(given, (0, 0 if len(given) != 3 else 3)), atol=1e-15)
    assert find_gyration(1.0, np.array([0.1, 0.2, 0.4])) is None


def test_any_root_is_that_of_matter() -> None:
    random = np.random.default_rng(0)
    roots = np.hstack([np.exp(random.normal(size=(500, 3))), random.normal(0, 3, (500, 3))])
    found = find_inertia(tensor(np.exp(random.normal(size=500))), tensor(roots)).data
    assert (np.linalg.eigvalsh(second_moments(found)) > 0).all()
    a, b, c = np.linalg.eigvalsh(as_matrix(found)).T
    assert (a > 0).all() and (c < a + b).all()


def test_the_derivative_of_the_inertia_is_right() -> None:
    random = np.random.default_rng(1)
    for count in (1, 6):
        given = [tensor(random.uniform(0.5, 1.5, shape), requires_grad=True) for shape in ((3,), (3, count))]
        assert gradcheck(find_inertia, tuple(given))


def top(**changes: Any) -> dict[str, Any]:
    """A body that turns about a hinge in space, seen for half a second."""
    body = {"position": [0.0, 0.1, -0.3], "mass": 1.5, "inertia": [0.02, 0.03, 0.04]}
    joint = {"kind": "revolute", "a": 0, "anchor": [0.0, 0.0, 0.0], "axis": [0.3, 1.0, 0.2]}
    return {
        "simulator": {"name": "rigid"},
        "time": {"dt": 5e-3, "steps": 20},
        "environment": {"gravity": [0.0, 0.0, -9.81]},
        "bodies": [body],
        "joints": [joint],
        "loss": {"terms": [{"kind": "final_state", "nodes": [0], "target": [0.1, 0.2, 0.3]}]},
        **changes,
    }


ROOT = {"parameter": "gyration", "entries": [[0, 0], [0, 1], [0, 2]], "transform": "log"}
PRODUCTS = {"parameter": "gyration", "entries": [[0, 3], [0, 4], [0, 5]], "scale": 0.1}
MASS = {"parameter": "mass", "transform": "log"}


def test_the_gradient_of_a_scene_by_roots_and_mass_is_right() -> None:
    objective = build_scene(from_dict(top(unknowns={"root": ROOT, "products": PRODUCTS, "mass": MASS}))).objective()
    theta = tensor(objective.start + 0.05, requires_grad=True)
    assert gradcheck(objective.loss_tensor, (theta,), mode="projected")
    scene = objective.scene_at(objective.start + np.random.default_rng(2).normal(size=objective.start.size))
    check_params(scene.params.arrays())


def test_all_ten_numbers_are_found_in_a_film() -> None:
    """The recording follows the laws of momentum and angular momentum; the search begins with a round body."""
    fit = simphys.identify(simphys.load_scene(FOLDER / "block_on_springs.toml"))
    assert fit.verdict == "passed"
    truth = np.concatenate([np.atleast_1d(unknown.truth) for unknown in fit.scene.config.unknowns.values()])
    for row, true in zip(fit.unknowns, truth, strict=True):
        assert abs(row.value - true) < 3 * row.standard_error, row
    A = np.array([[0.08, 0.02, -0.01], [0.0, 0.06, 0.015], [0.0, 0.0, 0.1]])
    S = 1.5 * A @ A.T
    found = as_matrix(fit.recording.params["inertia"])[0]
    np.testing.assert_allclose(found, np.trace(S) * np.eye(3) - S, atol=5e-4)


def test_tensors_may_be_given() -> None:
    tables = top()
    tables["bodies"][0]["inertia"] = [0.02, 0.03, 0.04, 0.001, -0.002, 0.003]
    scene = build_scene(from_dict(tables))
    assert scene.model.full_inertia and scene.params.inertia.data.tolist() == [tables["bodies"][0]["inertia"]]


@pytest.mark.parametrize(
    ("inertia", "unknowns", "message"),
    [
        ([0.1, 0.1, 0.3], {}, r"bodies\.0\.inertia: no principal moment of matter exceeds the sum"),
        ([0.1, 0.1, 0.1, 0.2, 0.0, 0.0], {}, r"bodies\.0\.inertia: no principal moment of matter exceeds"),
        ([0.1, 0.1, 0.1, 0.0], {}, r"bodies\.0\.inertia: has three moments, or six numbers"),
        ([0.1, 0.1, 0.0], {}, r"bodies\.0\.inertia: moments of inertia are positive"),
        ([0.1, 0.1, 0.2], {"r": ROOT}, r"bodies\.0\.inertia: where gyrations are sought, each moment is less"),
        ([0.1, 0.1, 0.1], {"r": ROOT | {"transform": "linear"}}, r"unknowns\.r\.transform: roots on the diagonal stay"),
        (
            [0.1, 0.1, 0.1],
            {"r": ROOT, "i": {"parameter": "inertia"}},
            r"unknowns\.i\.parameter: inertia follows from the gyration",
        ),
    ],
)
def test_what_is_no_inertia_is_named(inertia: Any, unknowns: Any, message: str) -> None:
    tables = top(unknowns=unknowns)
    tables["bodies"][0]["inertia"] = inertia
    with pytest.raises(ConfigError, match=message):
        from_dict(tables)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"i": {"parameter": "inertia", "value": [0.1, 0.1, 0.3]}},
            r"i\.value: no principal moment of matter exceeds .*found \[0\.1, 0\.1, 0\.3\]",
        ),
        (
            {"r": {"parameter": "gyration", "entries": [[0, 0]], "value": -0.1}},
            r"r\.value: roots on the diagonal are pos",
        ),
        (
            {
                "i": {"parameter": "inertia", "value": [0.1, 0.1, 0.1]},
                "r": {"parameter": "gyration", "entries": [[0, 0]], "value": 0.1},
            },
            r"i\.parameter: inertia follows from the gyration",
        ),
    ],
)
def test_values_of_what_is_no_inertia_are_named(values: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"values\.{message}"):
        from_dict(top(values=values))


MOMENTS = {"parameter": "inertia", "entries": [[0, 0], [0, 1], [0, 2]]}


@pytest.mark.parametrize(
    ("unknown", "message"),
    [
        ({"start": [0.1, 0.1, 0.3]}, r"start: no principal moment of matter exceeds .*found \[0\.1, 0\.1, 0\.3\]"),
        ({"entries": [[0, 2]], "start": 0.06}, r"start: no principal moment .*found \[0\.02, 0\.03, 0\.06\]"),
        ({"tied": True, "start": -0.1}, r"start: no principal moment"),
        (
            {"entries": [[0, 2]], "start": 0.09, "bounds": [0.08, 0.2]},
            r"bounds: .*moments from .* 0\.03, 0\.08\]",
        ),
        ({"entries": [[0, 2]], "start": 0.09, "bounds": [0.08, np.inf]}, r"bounds: no principal moment"),
        ({"entries": [[0, 0]], "start": 0.001, "bounds": [0.0, 0.005]}, r"bounds: no principal moment"),
    ],
)
def test_unknown_inertias_start_and_stay_as_those_of_matter(unknown: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"unknowns\.moments\.{message}"):
        from_dict(top(unknowns={"moments": MOMENTS | unknown}))


@pytest.mark.parametrize(
    "unknown",
    [
        {"start": [0.1, 0.1, 0.2]},
        {"entries": [[0, 2]], "start": 0.04, "bounds": [0.03, 0.2]},
        {"tied": True, "start": 0.1, "bounds": [0.0, 1.0], "transform": "log"},
    ],
)
def test_unknown_inertias_that_may_be_those_of_matter_are_taken(unknown: Any) -> None:
    from_dict(top(unknowns={"moments": MOMENTS | unknown}))


def test_a_start_of_an_inertia_is_judged_with_the_values_beside_it() -> None:
    values = {"long": {"parameter": "inertia", "entries": [[0, 0], [0, 1]], "value": 0.1}}
    unknowns = {"moment": {"parameter": "inertia", "entries": [[0, 2]], "start": 0.15}}
    from_dict(top(unknowns=unknowns, values=values))
    with pytest.raises(ConfigError, match=r"unknowns\.moment\.start: no principal moment"):
        from_dict(top(unknowns=unknowns))


def test_tensors_of_no_matter_are_refused_in_scripts() -> None:
    params = {"mass": np.ones(1), "friction": np.ones(1), "restitution": np.ones(1)}
    params["joint_transition_rate"] = np.ones(1)
    for wrong in ([1.0, 1.0, 3.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.9, 0.0, 0.0], [np.nan] * 6):
        with pytest.raises(UnphysicalValue, match="no principal moment of matter"):
            check_params({**params, "inertia": np.array([wrong])})
    check_params({**params, "inertia": np.array([[1.0, 1.0, 2.0, 0.0, 0.0, 0.0]])})
