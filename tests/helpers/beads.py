"""Beads on a wire that fall onto a floor and hit each other: a small sequence, of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simphys.autograd import Tensor, tensor
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.rollout import engine_of
from simphys.simulator import Model, Record, Shape
from simphys.substep import Event, Move, Parameters, sequence

NEVER = 1e30


@element
def fall(x, v, w, g, t):
    return x + t * v - 0.5 * g * t * t, v - g * t + w * t * t


@fall.adjoint
def adj_fall(x, v, w, g, t, adj_x, adj_v):
    adj_t = (v - g * t) * adj_x + (2 * w * t - g) * adj_v
    return adj_x, t * adj_x + adj_v, t * t * adj_v, -0.5 * t * t * adj_x - t * adj_v, adj_t


@fall.tangent
def jvp_fall(x, v, w, g, t, dx, dv, dw, dg, dt):
    dx_new = dx + t * dv - 0.5 * t * t * dg + (v - g * t) * dt
    return dx_new, dv + dw * t * t - dg * t + (2 * w * t - g) * dt


@element
def meet(x_i, v_i, x_j, v_j, size, end):
    gap, rate = x_j - x_i - size, v_j - v_i
    time = NEVER + 0.0 * gap
    if gap > 0 and rate < 0:
        time = -gap / rate
    return time, 1e-12


@meet.adjoint
def adj_meet(x_i, v_i, x_j, v_j, size, end, time, slack, adj_time, adj_slack):
    q = -adj_time / (v_j - v_i)
    return -q, -q * time, q, q * time, -q


@element
def collide(v_i, v_j, m_i, m_j, c):
    J = (1 + c) * (v_j - v_i) * m_i * m_j / (m_i + m_j)
    return v_i + J / m_i, v_j - J / m_j


@collide.adjoint
def adj_collide(v_i, v_j, m_i, m_j, c, adj_v_i, adj_v_j):
    w, m, M = v_j - v_i, m_i * m_j / (m_i + m_j), m_i + m_j
    J, adj_J = (1 + c) * w * m, adj_v_i / m_i - adj_v_j / m_j
    adj_w, adj_m = (1 + c) * m * adj_J, (1 + c) * w * adj_J
    adj_m_i = adj_m * m_j * m_j / (M * M) - adj_v_i * J / (m_i * m_i)
    adj_m_j = adj_m * m_i * m_i / (M * M) + adj_v_j * J / (m_j * m_j)
    return adj_v_i - adj_w, adj_v_j + adj_w, adj_m_i, adj_m_j, w * m * adj_J


@element
def land(x, v, g, floor, side, end):
    square = v * v + 2 * g * (x - floor[0] - side)
    time = NEVER + 0.0 * x
    if x - floor[0] - side > 1e-9:
        time = (v + ti.sqrt(square)) / g
    return time, 1e-12


@land.adjoint
def adj_land(x, v, g, floor, side, end, time, slack, adj_time, adj_slack):
    q = -adj_time / (v - g * time)
    return q, q * time, -0.5 * time * time * q, ti.Vector([-q, 0.0])


@land.tangent
def jvp_land(x, v, g, floor, side, end, time, slack, dx, dv, dg, dfloor):
    return -(dx + time * dv - 0.5 * time * time * dg - dfloor[0]) / (v - g * time), 0.0


@element
def hop(x, v, floor, side):
    return x + 2e-9, -floor[1] * v + 0.1 * side


@hop.adjoint
def adj_hop(x, v, floor, side, adj_x, adj_v):
    return adj_x, -floor[1] * adj_v, ti.Vector([0.0, -v * adj_v])


MOVE = Move(
    fall,
    Parameters(own={"x": "height", "v": "speed", "w": "wind"}, shared={"g": "gravity"}),
    time="t",
    replaces=("x", "v"),
)
MEET = Event(
    collide,
    Parameters(
        both={("x_i", "x_j"): "height", ("v_i", "v_j"): "speed", ("m_i", "m_j"): "mass"},
        shared={"c": "restitution", "size": "size"},
    ),
    when=meet,
    replaces=("v_i", "v_j"),
)
LAND = Event(
    hop,
    Parameters(own={"x": "height", "v": "speed"}, shared={"g": "gravity", "floor": "floor"}),
    when=land,
    replaces=("x", "v"),
    side="side",
)


def declare(**changes: Any) -> Any:
    """Declare the sequence; `changes` of the declaration."""
    given: dict[str, Any] = {
        **{"state": ("height", "speed"), "move": MOVE, "events": [MEET, LAND], "over": "beads"},
        **{"duration": "time step", "limit": "limit", "sides": "floors"},
    }
    return sequence(**(given | changes))


Fall = declare()


@dataclass(frozen=True)
class Params(Record):
    wind: Tensor
    gravity: Tensor
    size: Tensor
    mass: Tensor
    restitution: Tensor
    floor: Tensor


@dataclass(frozen=True)
class State(Record):
    height: Tensor
    speed: Tensor


@dataclass(frozen=True)
class Beads(Model):
    beads: int = 3
    floors: int = 1
    limit: int = 20
    dt: float = 0.25

    Params = Params
    State = State

    def param_shapes(self) -> Mapping[str, Shape]:
        n = (self.beads,)
        return {"wind": n, "gravity": (), "size": (), "mass": n, "restitution": (), "floor": (2,)}

    def state_shapes(self) -> Mapping[str, Shape]:
        return {"height": (self.beads,), "speed": (self.beads,)}


def step(model: Beads, params: Params, state: State, control: Tensor | None = None) -> State:
    """Let the beads fall, after another sub-step."""
    p = params
    given = state.height, state.speed + 0.01 * state.height
    return State(*Fall.apply(model, *given, p.wind, p.gravity, p.size, p.mass, p.restitution, p.floor, model.dt))


Beads.bind(step=step, engine=engine_of(step))


def make_beads(**options: Any) -> tuple[Beads, Params, State]:
    """Make three beads, of which each is hit and lands within some steps; all inputs require a gradient."""

    def leaf(values: Any) -> Tensor:
        return tensor(values, requires_grad=True)

    params = Params(
        wind=leaf([0.3, -0.2, 0.1]),
        gravity=leaf(1.1),
        size=leaf(0.05),
        mass=leaf([1.2, 1.7, 0.6]),
        restitution=leaf(0.8),
        floor=leaf([-0.3, 0.9]),
    )
    return Beads(**options), params, State(leaf([0.1, 0.5, 1.4]), leaf([0.6, -0.8, 0.0]))
