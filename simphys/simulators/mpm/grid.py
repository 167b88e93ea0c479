"""Velocity of the grid nodes from their momentum: gravity, rigid colliders, walls.

    u = p / (m + m_0) + dt g,   then each collider (collision.py), then the walls axis by axis (wall.py)     [m/s]

m mass [kg], p momentum [kg m/s], m_0 the mass floor [kg], g gravity [m/s^2]. Walls come last, so that no material
leaves. Adjoint: walls and colliders in reverse, then for a = adj_u

    adj_p = a / (m + m_0)     adj_m = -(p.a) / (m + m_0)^2     adj_g = dt a

Source: Hu et al. 2018 (MLS-MPM), grid operations.
"""

from typing import TYPE_CHECKING, Any

from simphys.numerics.element import element
from simphys.substep import per_element

from .collision import collide
from .wall import walls

if TYPE_CHECKING:
    from .model import MPM


@element
def free_velocity(m, p, g, floor, h):
    return p / (m + floor) + h * g


@free_velocity.adjoint
def adj_free_velocity(m, p, g, floor, h, adj_u):
    inverse = 1 / (m + floor)
    return -p.dot(adj_u) * inverse * inverse, inverse * adj_u, h * adj_u


FreeVelocity = per_element(
    free_velocity,
    over="cells",
    own={"m": "mass", "p": "momentum"},
    shared={"g": "gravity"},
    constant={"floor": "mass_floor", "h": "dt"},
    results={"velocity": "p"},
)
"""Velocity of the nodes [*cells, dim] [m/s] before they touch anything."""


def constrain(model: "MPM", velocity: Any, wall_friction: Any, colliders: tuple[Any, ...]) -> Any:
    """Let colliders, and then walls, change the velocity of the nodes [*cells, dim].

    `colliders` has their positions, rotations, velocities, spins and frictions.
    """
    for number, body in enumerate(model.colliders):
        sizes = (*body.size, 0.0, 0.0, 0.0)[:3]
        sub_step = collide(body.shape, body.contact, number)
        velocity = sub_step.apply(model, velocity, *colliders, model.spacing, model.skin, *sizes)
    for axis, count in enumerate(model.cells):
        sub_step = walls(axis, *model.walls[2 * axis : 2 * axis + 2])
        velocity = sub_step.apply(model, velocity, wall_friction, float(model.margin), float(count - model.margin))
    return velocity
