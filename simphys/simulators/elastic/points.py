"""Sources, receivers and fibres, at points anywhere between the places of the fields.

A source of strength q at x adds q times its force to the momentum, and q times its moment rates to the stress:

    rho dv/dt = ... + q F delta(x - x_s)          dsigma/dt = ... - q M delta(x - x_s)

    delta at place i: w_i(x_s) / (h^dim H_i)        received = sum_i w_i(x_r) v_i

with the weights w of cubic convolution, and the weights H of summation by parts (1 but near sides). Above the top, a
velocity that is read is continued by cubic polynomials, as horizontal ones lie half a cell below it; what a source
would give to places above the top goes to those as far below. A reading is that of the state, half a time step before
the state's time. A channel of a fibre with the gauge g, a vector along it, measures the mean strain s along g,

    s' = s + dt g . (v(x_f + g/2) - v(x_f - g/2)) / |g|^2

Adjoints are the transposes, and take the gradients of w by the positions.

Sources: Keys 1981; Aki and Richards 2002, section 3.3 (moment tensors); Petersson, O'Reilly, Sjoegreen and Bydlon 2016;
Bakku 2015 (fibres).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from simphys.autograd import Tensor, runtime
from simphys.numerics.drift import drift
from simphys.numerics.element import element
from simphys.simulator import Array
from simphys.substep import Along, along, concatenate, per_element, read_at, spread_from

from .model import Elastic, Params


@element
def shift(x, o):
    return x - o


@shift.adjoint
def adj_shift(x, o, adj):
    return adj


@element
def drive(F, q, e):
    return q * F.dot(e)


@drive.adjoint
def adj_drive(F, q, e, adj):
    return q * adj * e, F.dot(e) * adj


@element
def elongate(s, b, a, w):
    return s + w * (b - a)


@elongate.adjoint
def adj_elongate(s, b, a, w, adj):
    return adj, w * adj, -w * adj


Shift = per_element(shift, over="points", own={"x": "position"}, constant={"o": "place"}, results={"position": "x"})
Drive = per_element(
    drive,
    over="sources",
    own={"F": "amplitude", "q": "strength"},
    constant={"e": "component"},
    results={"strength": "q"},
)
Spread = spread_from("density", strength="strength", position="position", over="sources", sides="around")
Add = per_element(
    drift, over="cells", own={"x": "driven", "v": "density"}, constant={"e": "weight"}, results={"driven": "x"}
)
Read = {
    over: read_at("velocity", field="field", position="position", over=over, sides="beyond")
    for over in ("receivers", "fibre")
}
ReadAbove = {
    over: read_at("above", field="above", position="position", over=over, sides="beyond", grid="above")
    for over in ("receivers", "fibre")
}
Elongate = per_element(
    elongate,
    over="fibre",
    own={"s": "strain", "b": "end", "a": "begin"},
    constant={"w": "weight"},
    results={"strain": "s"},
)


@cache
def declare_continuation(dim: int) -> Any:
    """Declare the continuation of a field above the top."""
    return along("above", {"field": Along("z.continuation", dim - 1)}, over="above")


@cache
def declare_received(names: tuple[str, ...]) -> Any:
    """Declare the readings of velocities with these names, one after the other."""
    return concatenate(*names, result="received")


def add_forces(model: Elastic, params: Params, strength: Tensor, fields: dict[str, Tensor]) -> dict[str, Tensor]:
    """Add to the forces on velocities, which are derivatives times h, those of sources of strength [S]."""
    scale = 1 / model.spacing ** (len(model.cells) - 1)
    return _spread(model, params.source_position, params.force, strength, model.velocities, fields, scale)


def add_moments(model: Elastic, params: Params, strength: Tensor, fields: dict[str, Tensor]) -> dict[str, Tensor]:
    """Take from the stresses the moment rates of sources of strength [S] during a step."""
    scale = -model.dt / model.spacing ** len(model.cells)
    return _spread(model, params.source_position, params.moment, strength, model.stress_components, fields, scale)


def _spread(
    model: Elastic,
    at: Tensor,
    amplitude: Tensor,
    strength: Tensor,
    names: tuple[str, ...],
    fields: dict[str, Tensor],
    scale: float,
) -> dict[str, Tensor]:
    """Add to each of these fields the strengths times its component of the amplitude [S, fields]."""
    found = {}
    for number, name in enumerate(names):
        part = Drive.apply(model, amplitude, strength, make_directions(number, len(names), model.sources))
        position = Shift.apply(model, at, place_of(model, name, model.sources))
        density = Spread.apply(model, part, position)
        found[name] = Add.apply(model, fields[name], density, _weights(model, name, scale))
    return found


def receive(model: Elastic, params: Params, fields: dict[str, Tensor]) -> Tensor:
    """Read the velocities at the receivers, [dim R]."""
    none = np.zeros((model.receivers, len(model.cells)))
    velocities = _continue_above(model, fields)
    read = [_read(model, "receivers", name, velocities, params.receiver_position, none) for name in velocities]
    received: Tensor = declare_received(model.velocities).apply(model, *read)
    return received


def strain_fibre(model: Elastic, params: Params, strain: Tensor, fields: dict[str, Tensor]) -> Tensor:
    """Advance the strain of each channel of the fibres, [F], by the velocities at both ends of its gauge."""
    gauge, velocities = np.array(model.fibre), _continue_above(model, fields)
    weight = model.dt * gauge / (gauge**2).sum(axis=1, keepdims=True)
    for number, name in enumerate(velocities):
        ends = [_read(model, "fibre", name, velocities, params.fibre_position, by * gauge) for by in (0.5, -0.5)]
        strain = Elongate.apply(model, strain, *ends, np.ascontiguousarray(weight[:, number], runtime.real_dtype()))
    return strain


def _continue_above(model: Elastic, fields: dict[str, Tensor]) -> dict[str, tuple[Tensor, Tensor]]:
    """Continue the velocities to the two rows above the top: each field, and those rows."""
    above = declare_continuation(len(model.cells))
    return {name: (fields[name], above.apply(model, fields[name])) for name in model.velocities}


def _read(
    model: Elastic, over: str, name: str, velocities: dict[str, tuple[Tensor, Tensor]], position: Tensor, offset: Array
) -> Tensor:
    """Read a velocity at positions [n, dim] and an offset [n, dim] from there."""
    inside, beyond = (
        np.ascontiguousarray(place_of(model, name, len(offset), rows) - offset, runtime.real_dtype()) for rows in (0, 2)
    )
    values, above = velocities[name]
    continued = ReadAbove[over].apply(model, above, Shift.apply(model, position, beyond))
    read: Tensor = Read[over].apply(model, values, Shift.apply(model, position, inside)) + continued
    return read


@runtime.cached(maxsize=32)
def place_of(model: Elastic, field: str, count: int, above: int = 0) -> Array:
    """Position [m] of a field in the first cell, or some rows above it, for each of some points [n, 2]."""
    *across, z = model.place(field)
    return np.tile(model.spacing * np.array([*across, z - above]), (count, 1)).astype(runtime.real_dtype())


@runtime.cached(maxsize=32)
def make_directions(number: int, components: int, count: int) -> Array:
    """Make the unit vector of a component, for each of some points, [n, components]."""
    return np.tile(np.eye(components)[number], (count, 1)).astype(runtime.real_dtype())


@runtime.cached(maxsize=32)
def _weights(model: Elastic, field: str, scale: float) -> Array:
    """Compute scale / H at the places of a field, 0 where it vanishes, [*cells]."""
    return np.asarray(scale * model.mask(field) / model.weights(field), runtime.real_dtype())
