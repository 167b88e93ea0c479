"""Elements that settle where a force balances: roots of y + k y^3 = x + s, each by Newton's method."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.kernels.runtime import ti
from simphys.rollout import engine_of
from simphys.simulator import Model, Record, Shape
from simphys.substep import Fields, Functions, Setting, Static, per_element, routine
from simphys.substep.arithmetic import sum_of


@dataclass(frozen=True)
class Params(Record):
    """Parameters of the roots."""

    stiffness: Tensor
    """k of each element, [n]."""
    push: Tensor
    """s of each component, [2]."""
    unused: Tensor
    """Nothing, [0]."""


@dataclass(frozen=True)
class State(Record):
    """State: the roots."""

    place: Tensor
    """x of each element, [n, 2]."""


@dataclass(frozen=True)
class Roots(Model):
    """Elements and the number of Newton's iterations."""

    n: int = 3
    iterations: int = 30
    factor: float = 1.5

    Params = Params
    State = State

    def param_shapes(self) -> Mapping[str, Shape]:
        return {"stiffness": (self.n,), "push": (2,), "unused": (0,)}

    def state_shapes(self) -> Mapping[str, Shape]:
        return {"place": (self.n, 2)}


@ti.func
def find(model: ti.template(), x: ti.template()):
    """Find the roots; slope [n, 2] has the derivative of the equation by y."""
    for i in range(model.n):
        rounds = 0
        for e in range(model.components):
            j = model.components * i + e
            x.guess[0] = x.place[j]
            for _ in range(model.solver.iterations):
                y = x.guess[0]
                miss = y + x.stiffness[i] * y * y * y - x.place[j] - model.solver.factor * x.push[e]
                x.guess[0] = y - miss / (1 + 3 * x.stiffness[i] * y * y)
            x.root[j] = x.guess[0]
            x.slope[j] = 1 + 3 * x.stiffness[i] * x.guess[0] * x.guess[0]
            if x.root[j] > 0:
                rounds += 1
        x.positive[i] = rounds


@ti.func
def adj_find(model: ti.template(), x: ti.template(), adj_x: ti.template()):
    for j in range(model.components * model.n):
        g, i, e = adj_x.root[j] / x.slope[j], j // model.components, j % model.components
        adj_x.place[j] = adj_x.place[j] + g
        adj_x.push[e] = adj_x.push[e] + model.solver.factor * g
        adj_x.stiffness[i] = adj_x.stiffness[i] - x.root[j] * x.root[j] * x.root[j] * g


@ti.func
def jvp_find(model: ti.template(), x: ti.template(), dx: ti.template()):
    for j in range(model.components * model.n):
        i, e = j // model.components, j % model.components
        dmiss = x.root[j] * x.root[j] * x.root[j] * dx.stiffness[i]
        dx.root[j] = (dx.place[j] + model.solver.factor * dx.push[e] - dmiss) / x.slope[j]


SHAPES = Setting(
    lambda model: {
        **model.param_shapes(),
        **model.state_shapes(),
        "root": (model.n, 2),
        "positive": (model.n,),
        "slope": (model.n, 2),
        "guess": (1,),
    },
    lambda model: {
        "n": model.n,
        "components": Static(2),
        "solver": {"iterations": model.iterations, "factor": model.factor},
    },
)
FIELDS = Fields(
    given=("place", "stiffness", "push", "unused"),
    results=("root", "positive"),
    tape=("slope",),
    work=("guess",),
    choices=("positive",),
)


def declare(fields: Fields = FIELDS, tangent: Any = jvp_find, **options: Any) -> Any:
    """Declare the sub-step."""
    chosen: dict[str, Any] = {"of_model": ("n", "solver", "components"), **options}
    return routine("Find", Functions(find, adj_find, tangent), fields, SHAPES, **chosen)


Find = declare()

Sum = per_element(sum_of, over="elements", own={"a": "root", "b": "place"}, results={"place": "a"})


def step(model: Roots, params: Params, state: State, control: Tensor | None = None) -> State:
    """Advance by the sum of old and new places, so that a routine and another pattern share arrays."""
    root, _ = Find.apply(model, state.place, params.stiffness, params.push, params.unused)
    return State(Sum.apply(model, root, state.place * -0.5))


Roots.bind(step=step, engine=engine_of(step))


def make_roots(*members: int) -> tuple[Roots, Params, State]:
    """Return elements, and with `members` a batch of that many."""
    random, real = np.random.default_rng(4), runtime.real_dtype()

    def leaf(*shape: int) -> Tensor:
        return tensor(random.uniform(0.4, 1.4, shape).astype(real), requires_grad=True)

    return Roots(), Params(leaf(*members, 3), leaf(2), leaf(0)), State(leaf(*members, 3, 2))
