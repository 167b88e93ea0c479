"""First impact among bodies that constrain each other: a change of their constraint forces affects all of them.

Bodies are linked by the rows that they share in a step: joint rows, and rows of active contacts. The world and fixed
bodies link nothing, since no impulse passes through them. The choice is piecewise constant and has no derivative.
"""

from simphys.autograd.kernels.runtime import ti

NONE, REST, IMPACT = range(3)
"""State of a contact candidate in a step."""


@ti.func
def is_free(body, free: ti.template()):
    found = False
    if body >= 0:
        found = free[body] == 1
    return found


@ti.func
def is_earlier(new, old, time: ti.template()):
    """Compare two candidates; a negative number stands for none."""
    found = False
    if new >= 0 and new != old:
        found = True
        if old >= 0:
            apart = time[new] - time[old]
            found = apart < 0 or (apart == 0 and new < old)
    return found


@ti.func
def find_first_impacts(model: ti.template(), x: ti.template()):
    """Set first [n]: the number of the first impact's candidate, or -1 for bodies that no impact reaches."""
    for b in range(model.bodies):
        x.first[b] = -1.0
    for c in range(model.contacts):
        if x.active[c] == IMPACT:
            for side in range(2):
                body = model.row_bodies[2 * (model.joint_rows + c) + side]
                if is_free(body, model.free):  # read only then: kernels evaluate calls on both sides of an `and`
                    old = ti.cast(x.first[body], ti.i32)
                    if is_earlier(c, old, x.time):
                        x.first[body] = c
    changed = True
    while changed:
        changed = False
        for k in range(model.joint_rows + model.contacts):
            a, b, counts = model.row_bodies[2 * k], model.row_bodies[2 * k + 1], True
            if k >= model.joint_rows:
                counts = x.active[k - model.joint_rows] > NONE
            if counts and is_free(a, model.free) and is_free(b, model.free):
                impact_a, impact_b = ti.cast(x.first[a], ti.i32), ti.cast(x.first[b], ti.i32)
                if is_earlier(impact_a, impact_b, x.time):
                    x.first[b] = impact_a
                    changed = True
                elif is_earlier(impact_b, impact_a, x.time):
                    x.first[a] = impact_b
                    changed = True


@ti.func
def block_impact(block, bodies: ti.template(), first: ti.template()):
    """Return the first impact that reaches the rows of a block, negative for none."""
    found = -1
    for side in range(2):
        body = bodies[2 * block + side]
        if body >= 0:
            found = ti.max(found, ti.cast(first[body], ti.i32))
    return found


@ti.func
def timing_impact(c, model: ti.template(), x: ti.template()):
    """Return the impact that sets the time of a contact at rest, or -1."""
    impact, found = block_impact(model.joint_rows + c, model.row_bodies, x.first), -1
    if x.active[c] == REST and impact >= 0:  # noqa: SIM102 - read only if it exists
        if x.time[c] == x.time[impact]:
            found = impact
    return found
