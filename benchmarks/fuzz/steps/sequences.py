"""Rules of one thing after the other: events in the order of time, and a routine that iterates."""

from typing import Any

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.substep import Event, Fields, Functions, Move, Parameters, Setting, Static, per_element, routine, sequence

from .world import Rule

NEVER = 1e30


@element
def drift(x, v, w, t):
    return x + t * v + w * t * t, v + 2 * w * t


@drift.adjoint
def adj_drift(x, v, w, t, adj_x, adj_v):
    adj_w, adj_t = t * t * adj_x + 2 * t * adj_v, (v + 2 * w * t) * adj_x + 2 * w * adj_v
    return adj_x, t * adj_x + adj_v, adj_w, adj_t


@drift.tangent
def jvp_drift(x, v, w, t, dx, dv, dw, dt):
    return dx + t * dv + t * t * dw + (v + 2 * w * t) * dt, dv + 2 * t * dw + 2 * w * dt


@element
def meet(x_i, v_i, w_i, x_j, v_j, w_j, size, end):
    gap, rate, bend = x_j - x_i, v_j - v_i, w_j - w_i
    far = ti.max(gap - size * size, 0.0)
    time = NEVER + 0.0 * gap
    if far > 1e-6 and rate < -1e-3 and rate * rate > 4 * bend * far:
        time = 2 * far / (-rate + ti.sqrt(rate * rate - 4 * bend * far))
    return time, 1e-12


@meet.adjoint
def adj_meet(x_i, v_i, w_i, x_j, v_j, w_j, size, end, time, slack, adj_time, adj_slack):
    q = -adj_time / (v_j - v_i + 2 * (w_j - w_i) * time)
    return -q, -q * time, -q * time * time, q, q * time, q * time * time, -2 * size * q


@meet.tangent
def jvp_meet(x_i, v_i, w_i, x_j, v_j, w_j, size, end, time, slack, dx_i, dv_i, dw_i, dx_j, dv_j, dw_j, dsize):
    moved = dx_j - dx_i + time * (dv_j - dv_i) + time * time * (dw_j - dw_i) - 2 * size * dsize
    return -moved / (v_j - v_i + 2 * (w_j - w_i) * time), 0.0


@element
def exchange(v_i, v_j, a_i, a_j, c):
    p = (1 + ti.sin(a_i) * c) * 0.5 * (v_j - v_i)
    return v_i + p, v_j - p + 0.1 * a_j


@exchange.adjoint
def adj_exchange(v_i, v_j, a_i, a_j, c, adj_i, adj_j):
    f, w, g = (1 + ti.sin(a_i) * c) * 0.5, 0.5 * (v_j - v_i), adj_i - adj_j
    return adj_i - f * g, adj_j + f * g, ti.cos(a_i) * c * w * g, 0.1 * adj_j, ti.sin(a_i) * w * g


@exchange.tangent
def jvp_exchange(v_i, v_j, a_i, a_j, c, dv_i, dv_j, da_i, da_j, dc):
    w = 0.5 * (v_j - v_i)
    dp = (ti.cos(a_i) * da_i * c + ti.sin(a_i) * dc) * w + (1 + ti.sin(a_i) * c) * 0.5 * (dv_j - dv_i)
    return dv_i + dp, dv_j - dp + 0.1 * da_j


@element
def reach(x, v, w, wall, side, end):
    sign = 2.0 * side - 1.0
    gap = sign * (wall[0] + 2.0 * sign - x)
    rate, bend = -sign * v, -sign * w
    time = NEVER + 0.0 * x
    if gap > 1e-6 and rate < -1e-3 and rate * rate > 4 * bend * gap:
        time = 2 * gap / (-rate + ti.sqrt(rate * rate - 4 * bend * gap))
    return time, 1e-12


@reach.adjoint
def adj_reach(x, v, w, wall, side, end, time, slack, adj_time, adj_slack):
    q = -adj_time / (v + 2 * w * time)
    return q, q * time, q * time * time, ti.Vector([-q, 0.0])


@reach.tangent
def jvp_reach(x, v, w, wall, side, end, time, slack, dx, dv, dw, dwall):
    return -(dx + time * dv + time * time * dw - dwall[0]) / (v + 2 * w * time), 0.0


@element
def bounce(x, v, wall, side):
    return x + (2.0 - 4.0 * side) * 1e-6, -0.5 * (1 + 0.5 * wall[1]) * v


@bounce.adjoint
def adj_bounce(x, v, wall, side, adj_x, adj_v):
    return adj_x, -0.5 * (1 + 0.5 * wall[1]) * adj_v, ti.Vector([0.0, -0.25 * v * adj_v])


@bounce.tangent
def jvp_bounce(x, v, wall, side, dx, dv, dwall):
    return dx, -0.25 * dwall[1] * v - 0.5 * (1 + 0.5 * wall[1]) * dv


OWN = {"x": "height", "v": "speed", "w": "bend"}
MOVE = Move(drift, Parameters(own=OWN), time="t", replaces=("x", "v"))
MEET = Event(
    exchange,
    Parameters(
        both={
            ("x_i", "x_j"): "height",
            ("v_i", "v_j"): "speed",
            ("w_i", "w_j"): "bend",
            ("a_i", "a_j"): "charge",
        },
        shared={"c": "c", "size": "size"},
    ),
    when=meet,
    replaces=("v_i", "v_j"),
)
REACH = Event(bounce, Parameters(own=OWN, shared={"wall": "wall"}), when=reach, replaces=("x", "v"), side="side")
Pass = sequence(
    state=("height", "speed"),
    move=MOVE,
    events=[MEET, REACH],
    over="nodes",
    duration="time step",
    limit="limit",
    sides="walls",
)


@ti.func
def find(model: ti.template(), x: ti.template()):
    """Find the root y + k^2 y^3 = x + s of each component, by Newton's method."""
    for j in range(model.dim * model.nodes):
        i = j // model.dim
        stiff = x.hard[i] * x.hard[i]
        x.guess[0] = x.start[j]
        for _ in range(model.rounds):
            y = x.guess[0]
            miss = y + stiff * y * y * y - x.start[j] - 1.5 * x.lift[j % model.dim]
            x.guess[0] = y - miss / (1 + 3 * stiff * y * y)
        x.root[j] = x.guess[0]
        x.slope[j] = 1 + 3 * stiff * x.guess[0] * x.guess[0]


@ti.func
def adj_find(model: ti.template(), x: ti.template(), adj_x: ti.template()):
    for j in range(model.dim * model.nodes):
        g, i, y = adj_x.root[j] / x.slope[j], j // model.dim, x.root[j]
        adj_x.start[j] = adj_x.start[j] + g
        adj_x.lift[j % model.dim] = adj_x.lift[j % model.dim] + 1.5 * g
        adj_x.hard[i] = adj_x.hard[i] - 2 * x.hard[i] * y * y * y * g


@ti.func
def jvp_find(model: ti.template(), x: ti.template(), dx: ti.template()):
    for j in range(model.dim * model.nodes):
        i, y = j // model.dim, x.root[j]
        moved = 2 * x.hard[i] * dx.hard[i] * y * y * y
        dx.root[j] = (dx.start[j] + 1.5 * dx.lift[j % model.dim] - moved) / x.slope[j]


SETTING = Setting(
    lambda model: {
        **dict.fromkeys(("start", "root", "slope"), (model.nodes, model.dim)),
        "hard": (model.nodes,),
        "lift": (model.dim,),
        "guess": (1,),
    },
    lambda model: {"nodes": model.nodes, "rounds": 60, "dim": Static(model.dim)},
)
FIELDS = Fields(given=("start", "hard", "lift"), results=("root",), tape=("slope",), work=("guess",))
Find = routine("Find", Functions(find, adj_find, jvp_find), FIELDS, SETTING, of_model=("nodes", "rounds", "dim"))


@element
def calm(x):
    return ti.sin(x)


@calm.adjoint
def adj_calm(x, adj):
    return ti.cos(x) * adj


@calm.tangent
def jvp_calm(x, dx):
    return ti.cos(x) * dx


Calm = per_element(calm, over="nodes", own={"x": "a"})


def _pass(model: Any, x: Any, v: Any, w: Any, a: Any, c: Any, size: Any, wall: Any) -> Any:
    """Let the elements pass: the search assumes that they bend little."""
    return Pass.apply(model, x, v, 0.1 * Calm.apply(model, w), size, a, c, wall, 0.5)


NUMBERS = ("numbers",) * 4
RULES = {
    "pass": Rule((*NUMBERS, "number", "number", "floor"), ("numbers", "numbers"), _pass, most=2),
    "find": Rule(("points", "numbers", "vector"), ("points",), Find.apply),
    "calm": Rule(("numbers",), ("numbers",), Calm.apply),
}
