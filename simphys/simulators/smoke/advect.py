"""Advection: the fluid carries its own velocity, and smoke.

    u'(x) = u(x - dt u(x)),    s'(x) = s(x - dt u'(x))

semi-Lagrangian or by MacCormack's scheme; see sampling.py and maccormack.py, also for adjoints. A departure point
outside is moved to the side, where the value is that of the inflow or of a no-slip wall (see lattice.py). The adjoint
of self-advection is the sum of the adjoints of u as advected field and as advecting velocity. Source: Stam 1999; Selle,
Fedkiw, Kim, Liu and Rossignac 2008.
"""

from __future__ import annotations

from collections.abc import Mapping

from simphys.autograd import runtime
from simphys.substep import Chain, Entries, Launch, Target, launched

from .lattice import smoke_lattice, velocity_lattices
from .model import Smoke
from .transport import Transport, Workspace

Out = Mapping[str, Target]
ARRAYS = 20
"""Approximate number of velocities in the workspace."""


def advect_velocity(model: Smoke, velocity: Entries, boundary_velocity: Entries, out: Out) -> Launch:
    """Advect a velocity [dim, *faces] [m/s] by itself, with boundary_velocity [2 dim, dim]."""
    space, target = _space(model), out["advected_velocity"]
    bring = space.bring_velocity("", velocity, boundary_velocity)
    return Chain(*bring, space.clear(target), *[each.forward(target) for each in space.velocity])


def adj_advect_velocity(
    model: Smoke, velocity: Entries, boundary_velocity: Entries, adj_advected_velocity: Entries, out: Out
) -> Launch:
    space = _space(model)
    moves = [Chain(each.bring_adjoint(adj_advected_velocity), each.pull) for each in space.velocity]
    return Chain(
        *space.bring_velocity("", velocity, boundary_velocity),
        *space.clear_adj_velocity(),
        *moves,
        *[each.pass_on_ghosts for each in space.velocity],
        *space.take_adj_velocity(out),
        *[space.velocity[0].take_adj_given(target) for name, target in out.items() if name == "boundary_velocity"],
    )


def jvp_advect_velocity(
    model: Smoke,
    velocity: Entries,
    boundary_velocity: Entries,
    dvelocity: Entries,
    dboundary_velocity: Entries,
    out: Out,
) -> Launch:
    space, target = _space(model), out["advected_velocity"]
    return Chain(
        *space.bring_velocity("", velocity, boundary_velocity),
        *space.bring_velocity("d", dvelocity, dboundary_velocity),
        space.clear(target),
        *[each.push(target) for each in space.velocity],
    )


def advect_smoke(model: Smoke, smoke: Entries, velocity: Entries, boundary_smoke: Entries, out: Out) -> Launch:
    """Advect smoke [*cells] by velocity [dim, *faces] [m/s], with boundary_smoke [2 dim]."""
    space = _space(model)
    return Chain(
        *space.bring_velocity("", velocity),
        *space.smoke.bring_field("", smoke, boundary_smoke),
        space.smoke.forward(out["advected_smoke"]),
    )


def adj_advect_smoke(
    model: Smoke, smoke: Entries, velocity: Entries, boundary_smoke: Entries, adj_advected_smoke: Entries, out: Out
) -> Launch:
    space = _space(model)
    takes = {"smoke": space.smoke.take_adjoint, "boundary_smoke": space.smoke.take_adj_given}
    return Chain(
        *space.bring_velocity("", velocity),
        *space.smoke.bring_field("", smoke, boundary_smoke),
        *space.clear_adj_velocity(),
        *space.smoke.clear_adjoints(),
        space.smoke.bring_adjoint(adj_advected_smoke),
        space.smoke.pull,
        space.smoke.pass_on_ghosts,
        *[each.pass_on_ghosts for each in space.velocity if space.averages],
        *[takes[name](target) for name, target in out.items() if name in takes],
        *space.take_adj_velocity(out),
    )


def jvp_advect_smoke(
    model: Smoke,
    smoke: Entries,
    velocity: Entries,
    boundary_smoke: Entries,
    dsmoke: Entries,
    dvelocity: Entries,
    dboundary_smoke: Entries,
    out: Out,
) -> Launch:
    space = _space(model)
    return Chain(
        *space.bring_velocity("", velocity),
        *space.bring_velocity("d", dvelocity),
        *space.smoke.bring_field("", smoke, boundary_smoke),
        *space.smoke.bring_field("d", dsmoke, dboundary_smoke),
        space.smoke.push(out["advected_smoke"]),
    )


class _Space:
    """The transports of a model's quantities."""

    def __init__(self, model: Smoke) -> None:
        self._work = Workspace(model)
        self.velocity = [Transport(self._work, lattice) for lattice in velocity_lattices(model)]
        self.smoke = Transport(self._work, smoke_lattice(model))
        self.averages = model.grid == "staggered"
        """True if the velocity that moves a quantity is a mean, which reads ghosts at periodic sides."""

    def bring_velocity(self, kind: str, velocity: Entries, boundary: Entries | None = None) -> list[Launch]:
        """Launches that copy a velocity, or its tangent, with its ghosts.

        Transport of smoke reads no ghosts beyond sides, so it gives no boundary. It reads others only in means.
        """
        extends = boundary is not None or self.averages
        return [launch for each in self.velocity for launch in each.bring_field(kind, velocity, boundary, extends)]

    def clear(self, target: Target) -> Launch:
        """Launch that sets a velocity to zero, where it has entries beyond the faces of its components."""
        return self._work.clear_beyond(target)

    def clear_adj_velocity(self) -> list[Launch]:
        return self.velocity[0].clear_adjoints()

    def take_adj_velocity(self, out: Out) -> list[Launch]:
        """Launches that copy the adjoint of the velocity, if it is wanted."""
        if "velocity" not in out:
            return []
        target = out["velocity"]
        first = [] if target.adds else [self.clear(target)]
        return [*first, *[each.take_adjoint(target) for each in self.velocity]]


@runtime.cached(maxsize=4)
def _space(model: Smoke) -> _Space:
    return _Space(model)


AdvectVelocity = launched(
    advect_velocity,
    adjoint=adj_advect_velocity,
    tangent=jvp_advect_velocity,
    results={"advected_velocity": "velocity"},
    name="AdvectVelocity",
    is_cheap=True,
    work_arrays=ARRAYS,
)
"""Velocity [dim, *faces] advected by itself for a step, with boundary_velocity [2 dim, dim]."""

AdvectSmoke = launched(
    advect_smoke,
    adjoint=adj_advect_smoke,
    tangent=jvp_advect_smoke,
    results={"advected_smoke": "smoke"},
    name="AdvectSmoke",
    work_arrays=ARRAYS,
)
"""Smoke [*cells] advected by velocity [dim, *faces] for a step, with boundary_smoke [2 dim]."""
