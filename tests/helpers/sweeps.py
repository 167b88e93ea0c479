"""Bodies that rows push: joints, and contacts whose impulses are not negative, in several sweeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.rollout import engine_of
from simphys.simulator import Model, Record, Shape
from simphys.substep import Parameters, Row, rows


@element
def joint(v_a, v_b, w_a, w_b, n, s, t, b):
    change = b * (t - n.dot(v_a - v_b)) / ((w_a + w_b) * n.dot(n))
    return v_a + w_a * change * n, v_b - w_b * change * n, s + change


@joint.adjoint
def adj_joint(v_a, v_b, w_a, w_b, n, s, t, b, adj_v_a, adj_v_b, adj_s):
    d, u = (w_a + w_b) * n.dot(n), v_a - v_b
    miss = t - n.dot(u)
    q = (w_a * n.dot(adj_v_a) - w_b * n.dot(adj_v_b) + adj_s) / d
    change = b * miss / d
    adj_n = change * (w_a * adj_v_a - w_b * adj_v_b) - b * q * u - 2 * change * q * (w_a + w_b) * n
    adj_w_a = change * (n.dot(adj_v_a) - q * n.dot(n))
    adj_w_b = -change * (n.dot(adj_v_b) + q * n.dot(n))
    return adj_v_a - b * q * n, adj_v_b + b * q * n, adj_w_a, adj_w_b, adj_n, adj_s, b * q, miss * q


@joint.tangent
def jvp_joint(v_a, v_b, w_a, w_b, n, s, t, b, dv_a, dv_b, dw_a, dw_b, dn, ds, dt, db):
    d, u = (w_a + w_b) * n.dot(n), v_a - v_b
    change = b * (t - n.dot(u)) / d
    dd = (dw_a + dw_b) * n.dot(n) + 2 * (w_a + w_b) * n.dot(dn)
    dchange = (db * (t - n.dot(u)) + b * (dt - dn.dot(u) - n.dot(dv_a - dv_b)) - change * dd) / d
    dv_a_new = dv_a + (dw_a * change + w_a * dchange) * n + w_a * change * dn
    dv_b_new = dv_b - (dw_b * change + w_b * dchange) * n - w_b * change * dn
    return dv_a_new, dv_b_new, ds + dchange


@element
def contact(v_a, v_b, w_a, w_b, s):
    change = ti.max(s - 0.5 * (v_a[1] - v_b[1]) / (w_a + w_b), 0.0) - s
    push = ti.Vector([0.0, change])
    return v_a + w_a * push, v_b - w_b * push, s + change


@contact.adjoint
def adj_contact(v_a, v_b, w_a, w_b, s, adj_v_a, adj_v_b, adj_s):
    u, w = v_a[1] - v_b[1], w_a + w_b
    q = w_a * adj_v_a[1] - w_b * adj_v_b[1]
    change, gu, gw, gs = -s, 0.0, 0.0, -q
    if s - 0.5 * u / w > 0:
        change = -0.5 * u / w
        gu, gw, gs = -0.5 / w * (q + adj_s), 0.5 * u / (w * w) * (q + adj_s), adj_s
    up = ti.Vector([0.0, gu])
    return adj_v_a + up, adj_v_b - up, change * adj_v_a[1] + gw, -change * adj_v_b[1] + gw, gs


@contact.tangent
def jvp_contact(v_a, v_b, w_a, w_b, s, dv_a, dv_b, dw_a, dw_b, ds):
    u, w, du = v_a[1] - v_b[1], w_a + w_b, dv_a[1] - dv_b[1]
    change, dchange = -s, -ds
    if s - 0.5 * u / w > 0:
        change = -0.5 * u / w
        dchange = -0.5 * du / w + 0.5 * u / (w * w) * (dw_a + dw_b)
    push_a, push_b = dw_a * change + w_a * dchange, dw_b * change + w_b * dchange
    return dv_a + ti.Vector([0.0, push_a]), dv_b - ti.Vector([0.0, push_b]), ds + dchange


BOTH = {("v_a", "v_b"): "velocity", ("w_a", "w_b"): "inverse mass"}
JOINT = Row(
    joint,
    Parameters(both=BOTH, own={"n": "direction", "s": "joint impulse", "t": "target"}, shared={"b": "relaxation"}),
    replaces=("v_a", "v_b", "s"),
    ends="joints",
)
CONTACT = Row(
    contact,
    Parameters(both=BOTH, own={"s": "contact impulse"}),
    replaces=("v_a", "v_b", "s"),
    ends="contacts",
)


def declare(**changes: Any) -> Any:
    """Declare the rows; `changes` of the declaration."""
    given: dict[str, Any] = {
        **{"state": ("velocity",), "kept": ("joint_impulse", "contact_impulse"), "kinds": [JOINT, CONTACT]},
        **{"over": "bodies", "sweeps": "sweeps"},
    }
    return rows(**(given | changes))


Solve = declare()


@dataclass(frozen=True)
class Params(Record):
    inverse_mass: Tensor
    direction: Tensor
    target: Tensor
    relaxation: Tensor


@dataclass(frozen=True)
class State(Record):
    velocity: Tensor
    joint_impulse: Tensor
    contact_impulse: Tensor


@dataclass(frozen=True)
class Chain(Model):
    """Four bodies: joints between them and to the world, and two contacts."""

    joints: Any = field(default_factory=lambda: np.array([[0, 1], [1, 2], [-1, 3]], np.int32))
    contacts: Any = field(default_factory=lambda: np.array([[3, 2], [0, -1]], np.int32))
    sweeps: int = 3
    dt: float = 1.0

    Params = Params
    State = State

    def param_shapes(self) -> Mapping[str, Shape]:
        return {"inverse_mass": (4,), "direction": (3, 2), "target": (3,), "relaxation": ()}

    def state_shapes(self) -> Mapping[str, Shape]:
        return {"velocity": (4, 2), "joint_impulse": (3,), "contact_impulse": (2,)}


def step(model: Chain, params: Params, state: State, control: Tensor | None = None) -> State:
    """Solve the rows, from the impulses of the step before."""
    p, impulses = params, (state.joint_impulse, state.contact_impulse)
    return State(*Solve.apply(model, state.velocity, *impulses, p.inverse_mass, p.direction, p.target, p.relaxation))


Chain.bind(step=step, engine=engine_of(step))


def make_chain(**options: Any) -> tuple[Chain, Params, State]:
    """Make the chain; all inputs require a gradient. One contact presses, the other separates in some sweeps."""
    random = np.random.default_rng(4)

    def leaf(values: Any) -> Tensor:
        return tensor(values, requires_grad=True)

    params = Params(
        inverse_mass=leaf(random.uniform(0.5, 1.5, 4)),
        direction=leaf(random.uniform(-1, 1, (3, 2))),
        target=leaf(random.uniform(-0.5, 0.5, 3)),
        relaxation=leaf(0.8),
    )
    impulses = leaf(random.uniform(-1, 1, 3)), leaf([0.7, 0.2])
    return Chain(**options), params, State(leaf(random.uniform(-1, 1, (4, 2))), *impulses)
