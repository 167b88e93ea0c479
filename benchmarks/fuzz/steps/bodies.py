"""Random small steps of declared sub-steps, on nodes and the edges between them, with all kinds of inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.kernels.runtime import ti
from simphys.diagnose.check.case import Case, RandomWeights
from simphys.numerics.element import element
from simphys.rollout.engine import engine_of
from simphys.simulator import Model, Record, Shape
from simphys.substep import edges, from_grid, per_element, to_grid


@element
def turn(x, v, k, h):
    return x + h * k * ti.sin(v), v - h * ti.sin(x)


@turn.adjoint
def adj_turn(x, v, k, h, adj_x, adj_v):
    s, c = ti.sin(v), ti.cos(v)
    return adj_x - h * ti.cos(x) * adj_v, h * k * c * adj_x + adj_v, h * s.dot(adj_x)


@turn.tangent
def jvp_turn(x, v, k, h, dx, dv, dk):
    return dx + h * (dk * ti.sin(v) + k * ti.cos(v) * dv), dv - h * ti.cos(x) * dx


@element
def tilt(x, g, c):
    return c * x + c * c * g


@tilt.adjoint
def adj_tilt(x, g, c, adj):
    return c * adj, c * c * adj, x.dot(adj) + 2 * c * g.dot(adj)


@tilt.tangent
def jvp_tilt(x, g, c, dx, dg, dc):
    return c * dx + dc * x + 2 * c * dc * g + c * c * dg


@element
def drive(x, u, w):
    return (1 + u * w) * x


@drive.adjoint
def adj_drive(x, u, w, adj):
    p = x.dot(adj)
    return (1 + u * w) * adj, w * p, u * p


@drive.tangent
def jvp_drive(x, u, w, dx, du, dw):
    return (1 + u * w) * dx + (du * w + u * dw) * x


@element
def stretch(k, c):
    return k / (1 + c * c)


@stretch.adjoint
def adj_stretch(k, c, adj):
    q = 1 + c * c
    return adj / q, -2 * k * c / (q * q) * adj


@stretch.tangent
def jvp_stretch(k, c, dk, dc):
    q = 1 + c * c
    return dk / q - 2 * k * c / (q * q) * dc


@element
def pull(d, u, k):
    return k * (d + 0.3 * d.dot(d) * u)


@pull.adjoint
def adj_pull(d, u, k, adj):
    p = u.dot(adj)
    return k * (adj + 0.6 * p * d), 0.3 * k * d.dot(d) * adj, d.dot(adj) + 0.3 * d.dot(d) * p


@pull.tangent
def jvp_pull(d, u, k, dd, du, dk):
    return dk * (d + 0.3 * d.dot(d) * u) + k * (dd + 0.6 * d.dot(dd) * u + 0.3 * d.dot(d) * du)


@element
def flow(a, k, s):
    return k * a + s * a * a * a


@flow.adjoint
def adj_flow(a, k, s, adj):
    return (k + 3 * s * a * a) * adj, a * adj, a * a * a * adj


@flow.tangent
def jvp_flow(a, k, s, da, dk, ds):
    return (k + 3 * s * a * a) * da + a * dk + a * a * a * ds


@element
def place(x):
    return 0.7 + 0.6 * ti.sin(x)


@place.adjoint
def adj_place(x, adj):
    return 0.6 * ti.cos(x) * adj


@place.tangent
def jvp_place(x, dx):
    return 0.6 * ti.cos(x) * dx


@element
def puff(r, a, v):
    return a * v + r.dot(v) * r


@puff.adjoint
def adj_puff(r, a, v, adj):
    s = r.dot(adj)
    return s * v + r.dot(v) * adj, v.dot(adj), a * adj + s * r


@puff.tangent
def jvp_puff(r, a, v, dr, da, dv):
    return da * v + a * dv + (dr.dot(v) + r.dot(dv)) * r + r.dot(v) * dr


@element
def breathe(r, u, k):
    return k * u + u.dot(r) * r


@breathe.adjoint
def adj_breathe(r, u, k, adj):
    s = r.dot(adj)
    return s * u + u.dot(r) * adj, k * adj + s * r, u.dot(adj)


@breathe.tangent
def jvp_breathe(r, u, k, dr, du, dk):
    return dk * u + k * du + (du.dot(r) + u.dot(dr)) * r + u.dot(r) * dr


Turn = per_element(
    turn, over="nodes", own={"x": "x", "v": "v", "k": "k"}, constant={"h": "h"}, results={"x": "x", "v": "v"}
)
Tilt = per_element(tilt, over="nodes", own={"x": "x"}, shared={"g": "g", "c": "c"})
Drive = per_element(drive, over="nodes", own={"x": "x", "w": "w"}, gathered={"u": ("control", "picks")})
Stretch = per_element(stretch, over="edges", own={"k": "k"}, shared={"c": "c"})
Pull = edges(pull, between={"d": "x", "u": "v"}, own={"k": "k"}, onto="pull")
Flow = edges(flow, between={"a": "a"}, own={"k": "k"}, shared={"s": "s"}, onto="flow")

Place = per_element(place, over="nodes", own={"x": "x"})
Puff = to_grid(puff, offset={"r": "x"}, own={"a": "a", "v": "v"}, results={"cloud": "v"}, over="nodes")
Breathe = from_grid(
    breathe, offset={"r": "x"}, nodes={"u": "cloud"}, shared={"k": "k"}, results={"breath": "r"}, over="nodes"
)


@dataclass(frozen=True)
class Params(Record):
    weight: Tensor
    """[n]"""
    stiffness: Tensor
    """[S]"""
    tilt: Tensor
    """[dim]"""
    factor: Tensor
    """[]"""


@dataclass(frozen=True)
class State(Record):
    x: Tensor
    """[n, dim]"""
    v: Tensor
    """[n, dim]"""
    a: Tensor
    """[n]"""


class Call(NamedTuple):
    """A line of a random step: a sub-step, and random numbers that choose its inputs."""

    name: str
    choices: tuple[int, ...]


@dataclass(frozen=True)
class RandomModel(Model):
    """A random step of `calls` on n nodes with S edges."""

    ends: np.ndarray
    picks: np.ndarray
    dim: int
    calls: tuple[Call, ...]
    controls: int
    dt: float = 0.1
    spacing: float = 0.7

    Params = Params
    State = State

    @cached_property
    def nodes(self) -> int:
        return len(self.picks)

    @property
    def cells(self) -> tuple[int, ...]:
        """Number of nodes of a grid along each axis."""
        return (4, 3, 5)[: self.dim]

    def param_shapes(self) -> Mapping[str, Shape]:
        return {"weight": (self.nodes,), "stiffness": (len(self.ends),), "tilt": (self.dim,), "factor": ()}

    def state_shapes(self) -> Mapping[str, Shape]:
        return {"x": (self.nodes, self.dim), "v": (self.nodes, self.dim), "a": (self.nodes,)}

    def control_shape(self) -> Shape | None:
        return (self.controls,) if self.controls else None


def step(model: RandomModel, params: Params, state: State, control: Tensor | None = None) -> State:
    """Apply the calls to values chosen among those there are, and let each field change by one of its kind."""
    vectors, numbers, springs = [state.x, state.v], [state.a, params.weight], [params.stiffness]

    def pick(values: Sequence[Any], choice: int) -> Any:
        return values[choice % len(values)]

    for name, (i, j, k) in model.calls:
        x, v, a = pick(vectors, i), pick(vectors, j), pick(numbers, k)
        match name:
            case "turn":
                vectors += Turn.apply(model, x, v, a, model.dt)
            case "tilt":
                vectors.append(Tilt.apply(model, x, params.tilt, params.factor))
            case "drive" if control is not None:
                vectors.append(Drive.apply(model, x, control, a))
            case "stretch":
                springs.append(Stretch.apply(model, pick(springs, i), params.factor))
            case "pull":
                vectors.append(Pull.apply(model, x, v, pick(springs, k)))
            case "flow":
                numbers.append(Flow.apply(model, a, pick(springs, j), params.factor))
            case "breathe":
                here, there = Place.apply(model, x), Place.apply(model, v)
                cloud = Puff.apply(model, pick((here, there), k), a, v)
                vectors.append(0.3 * Breathe.apply(model, here, cloud, params.factor))
            case "add":
                vectors.append(x + v)
                numbers.append(a - pick(numbers, i))
    dt = model.dt
    return State(
        x=state.x + dt * vectors[-1],
        v=state.v - dt * pick(vectors, model.calls[-1].choices[0]),
        a=state.a + dt * numbers[-1],
    )


RandomModel.bind(step=step, engine=engine_of(step))

NAMES = ("turn", "tilt", "drive", "stretch", "pull", "flow", "add")


def tensor_maker(random: np.random.Generator, batch: int) -> Callable[[Shape], Tensor]:
    """Return what draws a Tensor of a shape: of a batch or of all members, with a gradient or without one."""

    def make(shape: Shape) -> Tensor:
        batched = batch > 1 and random.random() < 0.5
        values = random.uniform(-1, 1, (batch, *shape) if batched else shape)
        return tensor(values, dtype=runtime.real_dtype(), requires_grad=bool(random.random() < 0.8))

    return make


def without_some(params: Any, random: np.random.Generator) -> Any:
    """Exchange some of the parameters that are not differentiated for zeros: engines leave out what these multiply."""
    idle = {name: x for name, x in zip(params.names(), params.tensors(), strict=True) if not x.requires_grad}
    zeros = {name: tensor(np.zeros_like(x.data)) for name, x in idle.items() if random.random() < 0.5}
    return params.replace(**zeros)


def draw(seed: int) -> Case:
    """Draw a rollout: its number of steps, sub-steps, sizes, batch, controls, inputs that are differentiated."""
    random = np.random.default_rng(seed)
    n, dim, count = int(random.integers(2, 7)), int(random.integers(1, 4)), int(random.integers(1, 9))
    pairs = [random.choice(n, 2, replace=False) for _ in range(count)]
    calls = [
        Call(str(random.choice(NAMES)), tuple([int(c) for c in random.integers(0, 100, 3)]))
        for _ in range(random.integers(1, 7))
    ]
    others = np.random.default_rng([seed, 6])  # the other draws are those of steps without a grid
    if others.random() < 0.25:
        choices = tuple([int(c) for c in others.integers(0, 100, 3)])
        calls.insert(int(others.integers(0, len(calls) + 1)), Call("breathe", choices))
    controls = int(random.integers(0, 3))
    picks = random.integers(-1, max(controls, 1), n).astype(np.int32) if controls else np.full(n, -1, np.int32)
    model = RandomModel(np.array(pairs, np.int32), picks, dim, tuple(calls), controls)
    steps, batch = int(random.integers(1, 6)), int(random.choice([1, 1, 2, 3]))

    make = tensor_maker(random, batch)
    params = Params(**{name: make(shape) for name, shape in model.param_shapes().items()})
    params = without_some(params, np.random.default_rng([seed, 34]))
    state = State(**{name: make(shape) for name, shape in model.state_shapes().items()})
    control = make((steps, controls)) if controls else None
    if not any([x.requires_grad for x in (*params.tensors(), *state.tensors())]):
        state.x.requires_grad_()
    return Case(model, params, state, control, steps, RandomWeights(seed), "all")
