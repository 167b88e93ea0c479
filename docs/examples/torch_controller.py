"""A torch network learns to move a soft body over the ground; its gradient comes through simphys' adjoints.

A body of nine nodes, joined by springs, lies on the ground. Every 0.05 s the network sees the body (node positions
about their mean, velocities) and a clock, and sets the rest lengths of all springs within 20 % of their own: muscles.
After 1 s the middle of the body shall be 0.3 m further right. `to_torch` makes the rollout between two decisions a
function of torch, so that torch's backward goes through network and physics in turn, and torch's Adam does the rest.

Run it:  pip install 'simphys[torch]'  and  python docs/examples/torch_controller.py
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch

from simphys.autograd import Tensor, tensor
from simphys.autograd.bridges.pytorch import to_torch
from simphys.rollout import rollout
from simphys.simulators.mass_spring import MassSpring, Params, State

SIDE, SPACING = 3, 0.2  # nodes along an edge; their distance [m]
DT, STEPS, DECISIONS = 0.0025, 20, 20  # time step [s]; steps between two decisions; decisions
GOAL, PERIOD, STROKE = 0.3, 0.5, 0.2  # how far to go [m]; of the clock [s]; largest change of a rest length


def body() -> tuple[MassSpring, Params, State]:
    """A square of SIDE x SIDE nodes of 0.1 kg on the ground, with springs to all eight neighbours."""
    nodes = np.array(list(itertools.product(range(SIDE), repeat=2)), float) * SPACING
    pairs = itertools.combinations(range(len(nodes)), 2)
    near = 1.5 * SPACING
    ends = np.array([(a, b) for a, b in pairs if np.linalg.norm(nodes[a] - nodes[b]) < near], np.int32)
    params = Params(
        stiffness=tensor(np.full(len(ends), 200.0)),
        damping=tensor(np.full(len(ends), 1.0)),
        rest_length=tensor(np.linalg.norm(nodes[ends[:, 0]] - nodes[ends[:, 1]], axis=1)),
        mass=tensor(np.full(len(nodes), 0.1)),
        drag=tensor(np.full(len(nodes), 0.5)),
        gravity=tensor([0.0, -9.8]),
        ground_height=tensor(0.0),
        ground_stiffness=tensor(300.0),
        ground_friction=tensor(2.0),
    )
    state = State(position=tensor(nodes), velocity=tensor(np.zeros_like(nodes)))
    return MassSpring(ends, np.zeros(len(nodes), bool), 2, DT), params, state


def main(iterations: int = 60, seed: int = 0) -> list[float]:
    """Train; the loss of each iteration: (distance to the goal at the end / distance at the start)^2."""
    model, params, start = body()

    @to_torch
    def advance(rest_length: Tensor, position: Tensor, velocity: Tensor) -> tuple[Tensor, Tensor]:
        moved = params.replace(rest_length=rest_length)
        final = rollout(model, moved, State(position, velocity), steps=STEPS).final
        return final.position, final.velocity

    torch.manual_seed(seed)
    muscles = torch.nn.Sequential(
        torch.nn.Linear(2 + 4 * model.nodes, 32),
        torch.nn.Tanh(),
        torch.nn.Linear(32, model.springs),
        torch.nn.Tanh(),
    ).double()
    own_length = torch.tensor(params.rest_length.numpy())
    optimizer = torch.optim.Adam(muscles.parameters(), lr=0.005)
    losses = []
    for iteration in range(iterations):
        position, velocity = torch.tensor(start.position.numpy()), torch.tensor(start.velocity.numpy())
        target = position[:, 0].mean() + GOAL
        for decision in range(DECISIONS):
            phase = 2 * math.pi * decision * STEPS * DT / PERIOD
            clock = torch.tensor([math.sin(phase), math.cos(phase)], dtype=torch.float64)
            shape = (position - position.mean(dim=0)) / SPACING
            signal = muscles(torch.cat([clock, shape.flatten(), velocity.flatten()]))
            position, velocity = advance(own_length * (1 + STROKE * signal), position, velocity)
        loss = ((position[:, 0].mean() - target) / GOAL) ** 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if iteration % 10 == 0 or iteration == iterations - 1:
            print(f"iteration {iteration:3d}   loss {losses[-1]:.2e}")
    return losses


if __name__ == "__main__":
    main()
