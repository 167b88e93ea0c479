"""Tanks that drain through holes, dh/dt = -k sqrt(h): the step of docs/engines.md, and its scene, tanks.toml."""

from dataclasses import dataclass

import numpy as np

from simphys.autograd import Tensor
from simphys.autograd.kernels.runtime import ti
from simphys.rollout import engine_of
from simphys.scenefile import Config, Fields, Section
from simphys.scenefile.section import Positive
from simphys.simulator import Model, Record, declare
from simphys.substep import element, per_element


@dataclass(frozen=True)
class Params(Record):
    opening: Tensor = declare("n", "m^0.5/s", sign="positive")
    """Coefficient k of each hole."""


@dataclass(frozen=True)
class State(Record):
    height: Tensor = declare("n", "m")
    """Height of the water in each tank."""


@dataclass(frozen=True)
class Tanks(Model):
    n: int
    dt: float
    Params, State = Params, State


@element
def outflow(h, k):
    return k * ti.sqrt(h)


@outflow.adjoint
def adj_outflow(h, k, adj):
    return 0.5 * k / ti.sqrt(h) * adj, ti.sqrt(h) * adj


@outflow.tangent
def jvp_outflow(h, k, dh, dk):
    return dk * ti.sqrt(h) + 0.5 * k / ti.sqrt(h) * dh


@element
def drain(h, q, dt):
    return h - dt * q


@drain.adjoint
def adj_drain(h, q, dt, adj):
    return adj, -dt * adj


@drain.tangent
def jvp_drain(h, q, dt, dh, dq):
    return dh - dt * dq


Outflow = per_element(outflow, over="tanks", own={"h": "height", "k": "opening"})
Drain = per_element(
    drain, over="tanks", own={"h": "height", "q": "outflow"}, constant={"dt": "time step"}, results={"height": "h"}
)


def step(model, params, state, control=None):
    flow = Outflow.apply(model, state.height, params.opening)
    return State(Drain.apply(model, state.height, flow, model.dt))


Tanks.bind(step=step, engine=engine_of(step))


class Row(Section):
    """Number of equal tanks, coefficient of their holes [m^0.5/s], and height of the water at first [m]."""

    count: int
    opening: Positive
    height: Positive


class TanksConfig(Config):
    """A scene of tanks."""

    tanks: Row

    def build_fields(self):
        row = self.tanks
        return Fields(
            params={"opening": np.full(row.count, row.opening)}, state={"height": np.full(row.count, row.height)}
        )

    def build_model(self):
        return Tanks(n=self.tanks.count, dt=self.time.dt)
