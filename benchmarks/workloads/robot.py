"""w1r: a robot of springs with a neural controller, on a ground; the distance of its foremost node.

8 x 4 nodes of unit mass at spacing 0.05, whose horizontal and vertical springs are actuated by the outputs of a network
whose inputs are ten waves and the sensed nodes. The gradient is that of -x of the last node at the end, with
respect to the weights `w1`, `b1`, `w2`, `b2`, every stiffness `k` and initial velocity `v0`.
"""

from __future__ import annotations

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.nn import Controller, pattern
from simphys.rollout import rollout
from simphys.simulators.mass_spring.model import MassSpring, Params, State

from .initial_data import hash01, lattice_nodes, lattice_springs
from .workload import Case, Settings, Workload, case_of

SETTINGS: Settings = {
    "time.steps": 682,
    "time.dt": 0.004,
    "control.frequency": 10.0,
    "control.amplitude": 0.1,
    "material.stiffness": 6000.0,
    "material.drag": 15.0,
    "environment.gravity": -4.8,
    "environment.ground_height": 0.1,
    "environment.ground_stiffness": 1e4,
    "environment.ground_friction": 2.0,
}
NX, NY, SPACING = 8, 4, 0.05
HIDDEN, WAVES = 32, 10
GOAL = (0.9, 0.2)


def build(settings: Settings, mode: str) -> Case:
    """Make the case with Tensors of the current precision."""
    ij, ends = lattice_nodes(NX, NY), lattice_springs(NX, NY)
    x = 0.1 + SPACING * ij
    n, S = len(x), len(ends)
    straight = NX * (NY - 1) + (NX - 1) * NY  # springs that are not diagonal
    model = MassSpring(
        ends,
        np.zeros(n, bool),
        2,
        settings["time.dt"],
        "semi_implicit_euler",
        actuator=np.arange(S, dtype=np.int32),
        controller=Controller(waves=WAVES, hidden=HIDDEN, goal=GOAL),
    )
    assert model.network is not None
    inputs = model.network.inputs
    leaves = {
        "w1": 0.3 * (2 * hash01(HIDDEN * inputs, 1) - 1).reshape(HIDDEN, inputs),
        "b1": np.zeros(HIDDEN),
        "w2": 0.6 * (2 * hash01(S * HIDDEN, 2) - 1).reshape(S, HIDDEN),
        "b2": np.zeros(S),
        "k": np.full(S, settings["material.stiffness"]),
        "v0": np.zeros((n, 2)),
    }
    wanted = {name: tensor(values, requires_grad=True) for name, values in leaves.items()}
    params = Params(
        stiffness=wanted["k"],
        damping=tensor(np.zeros(S)),
        rest_length=tensor(np.linalg.norm(x[ends[:, 1]] - x[ends[:, 0]], axis=1)),
        mass=tensor(np.ones(n)),
        drag=tensor(np.full(n, settings["material.drag"])),
        gravity=tensor([0.0, settings["environment.gravity"]]),
        ground_height=tensor(settings["environment.ground_height"]),
        ground_stiffness=tensor(settings["environment.ground_stiffness"]),
        ground_friction=tensor(settings["environment.ground_friction"]),
        amplitude=tensor(np.where(np.arange(S) < straight, settings["control.amplitude"], 0.0)),
        hidden_weight=wanted["w1"],
        hidden_bias=wanted["b1"],
        output_weight=wanted["w2"],
        output_bias=wanted["b2"],
    )
    start = State(tensor(x), wanted["v0"])
    steps = int(settings["time.steps"])
    waves = tensor(pattern(steps, dt=model.dt, frequency=settings["control.frequency"], waves=WAVES))

    def loss() -> Tensor:
        if mode == "fused":
            final = rollout(model, params, start, steps=steps, control=waves, keep="final").final
        else:
            final = rollout(model, params, start, steps=steps, control=waves, mode="nested").final
        return -final.position[n - 1, 0]

    return case_of(loss, wanted)


def elements(settings: Settings) -> int:
    """Number of springs."""
    return len(lattice_springs(NX, NY))


WORKLOAD = Workload("w1r", SETTINGS, elements, build)
