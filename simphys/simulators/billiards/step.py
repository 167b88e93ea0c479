"""The nested step, one node of the graph for each flight, time of impact, and impact. Read this first."""

from __future__ import annotations

from simphys.autograd import Tensor, tensor
from simphys.autograd.errors import InputError

from . import search
from .bounce import Bounce
from .flight import Flight
from .impact import Impact
from .model import Billiards, Params, State, check_params
from .time_of_impact import TimeOfImpact


def step(model: Billiards, params: Params, state: State, control: Tensor | None = None) -> State:
    """Advance `state` by one time step, from impact to impact. Raise InputError if there are more than the limit."""
    check_params({"radius": params.radius.data, "mass": params.mass.data})
    x, v = state.position, state.velocity
    left: Tensor = tensor(model.dt)
    for _ in range(model.max_impacts + 1):
        i, j = _next_impact(model, params, x, v, float(left))
        if i < 0:
            return State(*Flight.apply(x, v, params.deceleration, left))
        time = TimeOfImpact.apply(model, i, j, x, v, params.radius, params.deceleration, params.lower, params.upper)
        x, v = Flight.apply(x, v, params.deceleration, time)
        v = strike(model, params, i, j, x, v)
        left = left - time
    raise InputError("billiards", *describe_endless_impacts(model, params, i, j, model.dt - float(left)))


def _next_impact(model: Billiards, params: Params, x: Tensor, v: Tensor, left: float) -> tuple[int, int]:
    """Return the pair that collides next within the time left, or (-1, -1)."""
    walls = search.stack_walls(params.lower.data, params.upper.data)
    impact = search.first_impact(model, x.data, v.data, params.radius.data, walls, float(params.deceleration), left)
    return (-1, -1) if impact is None else (impact.ball, impact.partner)


def strike(model: Billiards, params: Params, i: int, j: int, x: Tensor, v: Tensor) -> Tensor:
    """Return the velocities after an impact of ball i and partner j."""
    after: Tensor
    if j < model.balls:
        after = Impact.apply(i, j, x, v, params.mass, params.restitution)
    else:
        after = Bounce.apply(i, (j - model.balls) // 2, v, params.cushion_restitution)
    return after


def describe_endless_impacts(
    model: Billiards, params: Params, ball: int, partner: int, time: float
) -> tuple[str, str, str]:
    """Describe impacts that do not end: the constraint, the situation at a time within the step, and a remedy."""
    restitution = params.restitution if partner < model.balls else params.cushion_restitution
    return (
        f"at most {model.max_impacts} impacts within a time step",
        f"more within its first {time:.3g} s, the last of them of ball {ball} and {model.name_of(partner)}, whose "
        f"restitution is {float(restitution):g}",
        "Balls that lose all speed between others, or are pushed by others, collide without end, and this model has no "
        "lasting contact: give more restitution or more distance, a shorter time step if many balls are fast, or "
        "another start.",
    )
