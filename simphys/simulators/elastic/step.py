"""The nested step, with one graph node for each sub-step. Read this first."""

from __future__ import annotations

from functools import reduce
from operator import add

from simphys.autograd import Tensor

from .medium import average
from .model import Elastic, Params, State
from .motion import Accelerate, Shear, Stretch, differentiate
from .points import add_forces, add_moments, receive, strain_fibre


def step(model: Elastic, params: Params, state: State, control: Tensor | None = None) -> State:
    """Advance `state` by one time step; `control` [S] holds the strengths of the sources during the step."""
    medium = average(model, params)
    fields = {name: getattr(state, name) for name in State.names()}

    forces = {name: differentiate(model, name, fields) for name in model.velocities}
    if control is not None and model.forces:
        forces = add_forces(model, params, control, forces)
    for name, force in forces.items():
        fields[name] = Accelerate.apply(model, fields[name], force, medium.buoyancy[name])

    strains = {name: differentiate(model, name, fields) for name in model.stress_components}
    dilatation = reduce(add, [strains[name] for name in model.normal_stresses])
    moduli = medium.lam, medium.mu, model.dt / model.spacing
    for name in model.normal_stresses:
        fields[name] = Stretch.apply(model, fields[name], strains[name], dilatation, *moduli)
    for name in model.shear_stresses:
        fields[name] = Shear.apply(model, fields[name], strains[name], medium.edges[name])
    if control is not None and model.moments:
        fields |= add_moments(model, params, control, fields)

    if model.receivers:
        fields["received"] = receive(model, params, fields)
    if model.fibre:
        fields["strain"] = strain_fibre(model, params, state.strain, fields)
    return State(**fields)
