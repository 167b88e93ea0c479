"""Phases of a step: convergence of their sweeps, their adjoint, effects of an impact, and conventions at kinks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, grad, linearize, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.simulators.rigid import WORLD, Joint, Plane, RigidBodies, Sphere
from simphys.simulators.rigid.contacts.islands import IMPACT, NONE, REST
from simphys.simulators.rigid.solver.solve import Solve
from simphys.simulators.rigid.solver.sweeps import AFTER_IMPACT, AT_IMPACT, BEFORE_IMPACT, WHOLE_STEP

from ....helpers.rounding import assert_equal_but_for_rounding

NAMES = (
    "jacobian", "response", "target", "limit", "bounce", "time", "fraction", "twist", "velocity", "angular_velocity",
)  # fmt: skip
Inputs = dict[str, Tensor]


def make_model(dim: int, sweeps: int = 3, **options: Any) -> RigidBodies:
    """Return four balls on a floor, two of them connected: some rows are joint rows, some contact rows."""
    up = (0.0, 1.0) if dim == 2 else (0.0, 0.0, 1.0)
    origin = (0.0,) * dim
    joint = Joint("revolute", 0, 1, origin, origin, axis=None if dim == 2 else up)
    return RigidBodies(dim, 0.01, ((Sphere(0.1),),) * 4, (Plane(up),), joints=(joint,), sweeps=sweeps, **options)


def random_rows(model: RigidBodies, seed: int = 0, **changes: Any) -> Inputs:
    """Return random rows of these bodies."""
    random = np.random.default_rng(seed)
    n, S, N, M = model.bodies, model.spins, model.rows, model.contacts
    row, half = random.normal(size=(N, model.dim + 2 * S)), random.normal(size=(n, S, S))
    values = {
        "target": random.normal(size=N),
        "limit": random.uniform(0.2, 3.0, M),
        "bounce": random.uniform(0.2, 0.9, M),
    }
    inverse_mass = random.uniform(0.5, 1.5, n)
    values |= (
        directions(model, row, inverse_mass, half @ half.transpose(0, 2, 1) + np.eye(S))
        | {
            "time": model.dt * random.normal(size=M),
            "fraction": np.ones(n),
            "twist": random.normal(size=(n, model.dim + S)),
            "velocity": random.normal(size=(n, model.dim)),
            "angular_velocity": random.normal(size=(n, S)),
        }
        | changes
    )
    return {name: tensor(np.asarray(values[name], float), requires_grad=True) for name in NAMES}


def directions(model: RigidBodies, row: Any, inverse_mass: Any, inverse_inertia: Any) -> dict[str, Any]:
    """Return J and P of rows [N, dim + 2 S], for inverse masses [n] and inverses of inertias [n, S, S]."""
    dim, S, bodies = model.dim, model.spins, bodies_of_rows(model)
    of_mass = np.append(inverse_mass, 0.0)[bodies]  # the last is the world, WORLD = -1
    of_inertia = np.concatenate([inverse_inertia, np.zeros((1, S, S))])[bodies]
    lines, moments = np.repeat(row[:, None, :dim], 2, axis=1), row[:, dim:].reshape(-1, 2, S)
    jacobian = np.concatenate([lines, moments], axis=2)
    response = np.concatenate([of_mass[:, :, None] * lines, np.einsum("rbij,rbj->rbi", of_inertia, moments)], axis=2)
    sign = np.array([1.0, -1.0])[:, None]
    return {
        name: (sign * each).reshape(len(row), -1) for name, each in (("jacobian", jacobian), ("response", response))
    }


def all_at_rest(model: RigidBodies, *but: int) -> tuple[Tensor, Tensor]:
    """Return states without an impact, in which all contacts except some are at rest."""
    what = np.full(model.contacts, float(REST))
    what[list(but)] = NONE
    return tensor(what), tensor(-np.ones(model.bodies))


def split_case(model: RigidBodies, case: int = 0) -> tuple[tuple[Tensor, Tensor], Inputs]:
    """Return impacts of the connected bodies in one of two cases; no impact reaches the last body."""
    pairs = model.row_bodies.reshape(-1, 2)[len(model.row_bodies) // 2 - model.contacts :].tolist()
    what = [NONE if 3 in pair and pair != [3, WORLD] else (REST if 0 in pair else IMPACT) for pair in pairs]
    what[pairs.index([3, WORLD])] = REST
    hit = what.index(IMPACT)
    fraction = np.array([0.3, 0.3, 0.3, 1.0])
    inputs = random_rows(model, {2: (103, 13), 3: (265, 2)}[model.dim][case], fraction=fraction)
    return (tensor(np.array(what, float)), tensor([0.0, hit, hit, -1.0])), inputs


def bodies_of_rows(model: RigidBodies) -> np.ndarray:
    """Return both bodies of each row."""
    blocks, NJ = model.row_bodies.reshape(-1, 2), model.joint_rows
    return np.concatenate([blocks[:NJ], np.repeat(blocks[NJ:], model.dim, axis=0)])


def speeds(model: RigidBodies, jacobian: Tensor, twist: Tensor) -> np.ndarray:
    """Return u of each joint row and of each contact's rows."""
    V = np.concatenate([twist.data, np.zeros((1, model.freedoms))])  # the last is the world, WORLD = -1
    found: np.ndarray = (jacobian.data * V[bodies_of_rows(model)].reshape(model.rows, -1)).sum(axis=1)
    return found


@pytest.mark.parametrize("dim", [2, 3])
def test_the_adjoint_of_the_sweeps_is_right(dim: int) -> None:
    """Contacts stick, slide, separate or are inactive, with joints; derivatives are by every input."""
    model = make_model(dim)
    what, inputs = all_at_rest(model, 2), random_rows(model, seed=2)
    _, _, impulse = Solve.apply(model, *what, *inputs.values())
    assert not impulse.data[1:].any()
    pressed, slides = contact_states(model, inputs, impulse.data[0])
    assert (pressed & slides).any() and (pressed & ~slides).any() and (what[0].data[~pressed] > 0).any()
    gradcheck(lambda *x: Solve.apply(model, *what, *x), tuple(inputs.values()))


@pytest.mark.parametrize("case", [0, 1])
@pytest.mark.parametrize("dim", [2, 3])
def test_the_adjoint_is_right_if_an_impact_splits_the_step(dim: int, case: int) -> None:
    """Held contacts slide, pulled, and stick; others press only at the impact."""
    model = make_model(dim)
    what, inputs = split_case(model, case)
    new, shift, impulse = Solve.apply(model, *what, *inputs.values())
    assert shift.data.any(axis=1).tolist() == [True, True, True, False]
    meets, rests, held = what[0].data == IMPACT, what[0].data == REST, whole_step(model, what, inputs)
    assert not impulse.data[:AT_IMPACT, model.joint_rows :][:, np.repeat(meets, dim)].any()
    (spring_wrench, slides), (pressed, slides_then) = [
        contact_states(model, inputs, impulse.data[phase]) for phase in (BEFORE_IMPACT, AT_IMPACT)
    ]
    (by_bounce,) = grad(new.sum(), (inputs["bounce"],))
    assert by_bounce.data[meets & pressed].any()
    if case == 0:
        assert (rests & held & ~spring_wrench & slides).any() and (rests & held & ~slides).any()
        assert (meets & pressed & slides_then).any() and (meets & pressed & ~slides_then).any()
        assert (meets & contact_states(model, inputs, impulse.data[AFTER_IMPACT])[0]).any()
    else:
        assert (rests & ~held & pressed).any()
    gradcheck(lambda *x: Solve.apply(model, *what, *x), tuple(inputs.values()))


def whole_step(model: RigidBodies, what: tuple[Tensor, Tensor], inputs: Inputs) -> np.ndarray:
    """Return the contacts that press in the same step without the impacts."""
    active = tensor(np.where(what[0].data == REST, REST, NONE).astype(float))
    alone = {**inputs, "fraction": tensor(np.ones(model.bodies))}
    impulse = Solve.apply(model, active, tensor(-np.ones(model.bodies)), *alone.values())[2].data[WHOLE_STEP]
    return contact_states(model, inputs, impulse)[0]


def contact_states(model: RigidBodies, inputs: Inputs, impulse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the contacts that press, and those whose friction is at its limit."""
    contacts, limit = impulse[model.joint_rows :].reshape(-1, model.dim), inputs["limit"].data
    sideways = np.linalg.norm(contacts[:, 1:], axis=1)
    return contacts[:, 0] > 0, (sideways >= limit * np.abs(contacts[:, 0]) * (1 - 1e-12)) & (sideways > 0)


@pytest.mark.parametrize("dim", [2, 3])
def test_sweeps_converge_to_the_targets_of_the_rows(dim: int) -> None:
    """Joints reach their target; contacts approach no faster than theirs, and press only if they reach it."""
    model = make_model(dim, sweeps=3000)
    inputs = random_rows(model, seed=5)
    new, _, impulses = Solve.apply(model, *all_at_rest(model), *inputs.values())
    NJ, impulse, limit = model.joint_rows, impulses.data[0], inputs["limit"].data
    miss = speeds(model, inputs["jacobian"], new) - inputs["target"].data
    np.testing.assert_allclose(miss[:NJ], 0, atol=1e-9)
    normal, pressed = miss[NJ::dim], impulse[NJ::dim]
    assert (pressed >= 0).all() and (normal > -1e-9).all()
    np.testing.assert_allclose(normal * pressed, 0, atol=1e-9)
    for c in range(model.contacts):
        friction = impulse[NJ + c * dim + 1 : NJ + (c + 1) * dim]
        slip = miss[NJ + c * dim + 1 : NJ + (c + 1) * dim]
        bound = limit[c] * pressed[c]
        assert np.linalg.norm(friction) <= bound + 1e-12
        if np.linalg.norm(friction) < bound - 1e-9:
            np.testing.assert_allclose(slip, 0, atol=1e-9)
        elif bound > 0:  # sliding: friction is opposite to the slip, in the plane of both tangents
            np.testing.assert_allclose(friction / bound, -slip / np.linalg.norm(slip), atol=1e-6)


@pytest.mark.parametrize("dim", [2, 3])
def test_impulses_are_equal_and_opposite(dim: int) -> None:
    """This holds in all phases."""
    model = replace(make_model(dim), planes=())
    inputs = random_rows(model, seed=7, fraction=np.full(4, 0.4))
    what = tensor(np.array([(REST, IMPACT)[c % 2] for c in range(model.contacts)], float)), tensor(np.ones(4))
    new, _, impulse = Solve.apply(model, *what, *inputs.values())
    assert impulse.data.any(axis=1).tolist() == [False, True, True, True]
    bodies = bodies_of_rows(model).reshape(-1)
    J, P = [inputs[name].data.reshape(-1, model.freedoms) for name in ("jacobian", "response")]
    mass = np.array([(J[bodies == body] / P[bodies == body])[0, 0] for body in range(model.bodies)])
    momenta = [(mass[:, None] * twist.data[:, :dim]).sum(axis=0) for twist in (inputs["twist"], new)]
    np.testing.assert_allclose(momenta[1], momenta[0], atol=1e-12)


SWEPT = 64
"""Roundings of a ball with a speed of 2 that changes by 3: sixty sweeps converge within a few."""


def ball_on_a_floor(fraction: float, *, dv: float, v: float, rests: bool, mu: float = 0.0, **options: Any) -> Any:
    """Return a ball of mass 1 that cannot rotate, on a floor; it hits a wall at a fraction of the step.

    It moves at v along x; forces add dv along y.
    """
    walls = (Plane((0.0, 1.0)), Plane((-1.0, 0.0)))
    model = RigidBodies(2, 0.01, ((Sphere(0.1),),), walls, sweeps=60, **options)
    row = np.array([[0.0, 1, 0, 0], [1, 0, 0, 0], [-1.0, 0, 0, 0], [0.0, 1, 0, 0]])
    values = {
        **directions(model, row, np.ones(1), np.ones((1, 1, 1))),
        "target": np.zeros(4), "limit": np.full(2, mu), "bounce": [0.0, 0.5],
        "time": [0.0, (fraction - 0.5) * model.dt], "fraction": [fraction],
        "twist": [[v, dv, 0.0]], "velocity": [[v, 0.0]], "angular_velocity": [[0.0]],
    }  # fmt: skip
    what = tensor([float(REST if rests else NONE), float(IMPACT)]), tensor([1.0])
    return model, what, {name: tensor(np.asarray(values[name], float), requires_grad=True) for name in NAMES}


def test_a_support_has_an_impulse_before_and_after_an_impact() -> None:
    """Gravity takes 0.2 in a step, three tenths of it before the impact; friction of the floor slows the ball."""
    model, what, inputs = ball_on_a_floor(0.3, dv=-0.2, v=2.0, rests=True, mu=0.5)
    new, shift, impulse = Solve.apply(model, *what, *inputs.values())
    assert_equal_but_for_rounding(impulse.data[1:, 0], [0.06, 0.0, 0.14], ulps=SWEPT, size=3.0)
    assert_equal_but_for_rounding(impulse.data[1:, 1], [-0.03, 0.0, 0.07], ulps=SWEPT, size=3.0)
    assert_equal_but_for_rounding(impulse.data[1:, 2], [0.0, 1.5 * 1.97, 0.0], ulps=SWEPT, size=3.0)
    assert not impulse.data[0].any()
    assert_equal_but_for_rounding(new.data, [[-0.5 * 1.97 + 0.07, 0.0, 0.0]], ulps=SWEPT, size=3.0)
    time = 0.01 * (np.array([0.15, 0.3, 0.65]) - 0.5)  # in the middle of each part, and at the impact
    along = time @ np.array([-0.03, -1.5 * 1.97, 0.07])
    assert_equal_but_for_rounding(shift.data, np.array([[along, 0.0, 0.0]]), ulps=SWEPT, size=3.0)


def test_a_body_hit_in_free_fall_falls_before_and_after() -> None:
    model, what, inputs = ball_on_a_floor(0.3, dv=-0.2, v=2.0, rests=False)
    new, shift, _ = Solve.apply(model, *what, *inputs.values())
    assert_equal_but_for_rounding(new.data, [[-1.0, -0.2, 0.0]], ulps=SWEPT, size=3.0)
    assert_equal_but_for_rounding(shift.data, [[-0.002 * -3.0, 0.0, 0.0]], ulps=SWEPT, size=3.0)


def test_a_later_impact_of_the_same_bodies_has_the_speed_of_its_own_time() -> None:
    """A ball that falls on the floor at 0.6 of a step is slower by a tenth of the step's gain at 0.5."""
    model, _, inputs = ball_on_a_floor(0.5, dv=-0.2, v=2.0, rests=False, mu=0.0)
    values = {name: each.data for name, each in inputs.items()}
    values |= {"time": np.array([0.001, 0.0]), "bounce": np.array([0.8, 0.5]), "velocity": np.array([[2.0, -1.0]])}
    values |= {"twist": np.array([[2.0, -1.2, 0.0]])}
    what = tensor([float(IMPACT)] * 2), tensor([1.0])
    new, _, _ = Solve.apply(model, *what, *[tensor(values[name]) for name in NAMES])
    assert_equal_but_for_rounding(new.data, [[-1.0, 0.8 * 1.12 - 0.4 * 0.2, 0.0]], ulps=SWEPT, size=3.0)


def kink(mu: float, slip: float) -> tuple[RigidBodies, Inputs]:
    """Return a ball without spin, of mass 1, that hits the floor at speed 1 and slides at `slip`."""
    model = RigidBodies(2, 0.01, ((Sphere(0.1),),), (Plane((0.0, 1.0)),), sweeps=2)
    row = np.array([[0.0, 1.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0]])
    values = {"target": np.zeros(2), "limit": [mu], **directions(model, row, [1.0], np.ones((1, 1, 1)))}
    return model, random_rows(model, **values, twist=np.array([[slip, -1.0, 0.0]]))


def test_a_contact_without_an_impulse_counts_as_separated() -> None:
    """Its lambda is exactly 0: nothing depends on its target."""
    model, inputs = kink(0.5, 0.0)
    inputs["twist"] = tensor(np.zeros((1, 3)), requires_grad=True)
    _, _, impulse = Solve.apply(model, *all_at_rest(model), *inputs.values())
    impulse.sum().backward()
    target = inputs["target"].grad
    assert not impulse.data.any()
    assert target is not None and target.data[0] == 0.0


def test_friction_at_the_edge_of_its_cone_counts_as_sticking() -> None:
    """mu = 0.5 just stops a slip of 0.5: the final velocity is 0, and its derivatives are those of sticking."""
    model, inputs = kink(0.5, 0.5)
    new, _, _ = Solve.apply(model, *all_at_rest(model), *inputs.values())
    new[0, 0].backward()
    assert new.data[0, 0] == 0.0
    limit, twist = inputs["limit"].grad, inputs["twist"].grad
    assert limit is not None and twist is not None
    assert limit.data[0] == 0.0 and twist.data[0, 0] == 0.0


def test_tangents_at_the_edge_of_the_cone_are_those_of_sticking() -> None:
    model, inputs = kink(0.5, 0.5)
    new, _, _ = Solve.apply(model, *all_at_rest(model), *inputs.values())
    push = linearize([new], [inputs["limit"], inputs["twist"]])
    assert push(np.ones(1), np.zeros((1, 3)))[0][0, 0] == 0.0
    assert push(np.zeros(1), np.array([[1.0, 0.0, 0.0]]))[0][0, 0] == 0.0


@pytest.mark.parametrize("dim", [2, 3])
def test_tangents_are_the_transposed_adjoint_of_many_rows_at_the_edges_of_their_cones(dim: int) -> None:
    """Four balls stick to a floor with coefficients that rounding would make too small; then one slides."""
    model, random = make_model(dim, sweeps=300), np.random.default_rng(8)
    on_floor = model.row_bodies.reshape(-1, 2)[model.joint_rows :, 1] == WORLD
    what, limit = all_at_rest(model, *np.flatnonzero(~on_floor)), np.full(model.contacts, 50.0)
    target = np.concatenate([random.normal(size=model.joint_rows), np.tile([4.0, 0, 0][:dim], model.contacts)])
    inputs = random_rows(model, seed=5, target=target)
    sticking = inputs | {"limit": tensor(limit)}
    friction = Solve.apply(model, *what, *sticking.values())[2].data[0, model.joint_rows :].reshape(-1, dim)[on_floor]
    assert (friction[:, 0] > 0).all()
    limit[on_floor] = (1 - 1e-9) * np.linalg.norm(friction[:, 1:], axis=1) / friction[:, 0]
    for factor in (1.0, 0.5):
        limit[np.argmax(on_floor)] *= factor
        given = list((inputs | {"limit": tensor(limit, requires_grad=True)}).values())
        outputs = Solve.apply(model, *what, *given)
        us, ds = [[random.standard_normal(each.shape) for each in group] for group in (outputs, given)]
        tangents, adjoints = linearize(outputs, given)(*ds), grad(outputs, given, us, allow_unused=True)
        parts = [np.vdot(g.data, d) for g, d in zip(adjoints, ds, strict=True) if g is not None]
        forward = sum(np.vdot(u, dy) for u, dy in zip(us, tangents, strict=True))
        assert abs(forward - sum(parts)) < 1e-10 * np.abs(parts).max()


def test_a_contact_where_nothing_slides_has_finite_derivatives() -> None:
    """Friction has no direction then."""
    model, inputs = kink(0.5, 0.0)
    new, shift, impulse = Solve.apply(model, *all_at_rest(model), *inputs.values())
    (new.sum() + shift.sum() + impulse.sum()).backward()
    assert all(leaf.grad is None or np.isfinite(leaf.grad.data).all() for leaf in inputs.values())


def test_an_impact_without_approach_has_target_0() -> None:
    """If the support of a body holds it back, nothing depends on the restitution."""
    model, what, inputs = ball_on_a_floor(0.3, dv=0.0, v=0.0, rests=False)
    new, _, _ = Solve.apply(model, *what, *inputs.values())
    new.sum().backward()
    bounce = inputs["bounce"].grad
    assert not new.data.any() and bounce is not None and not bounce.data.any()
