"""The largest stable time step of MLS-MPM, and advice after a blow-up.

Symbols: m, V mass [kg] and rest volume of a particle, w_ip the quadratic B-spline of node i at particle p,
r = x_i - x_p, m_i = sum over p of w_ip m. Linearised at rest, a step takes node velocities u to

    C_p = 4/dx^2 sum_i w_ip u_i r^T     e_p += dt sym C_p     tau_p = D e_p     D the tensor of elasticity [Pa]
    m_i u_i' = sum_p w_ip (m v_p + m C_p r - dt V 4/dx^2 tau_p r)               v_p = sum_i w_ip u_i

that is u' = T u - dt K e. For an eigenvector, in the norm of m_i, let a and b be the fractions of its energy that
particles carry as v and as dx/2 C. Then a + b = <T> <= 1 by the Cauchy-Schwarz inequality, as sum_i w_ip r r^T =
dx^2/4 I. b also bounds the stiffness. Let k be the largest eigenvalue of D, and c^2 the largest k V/m of a particle:

    dt^2 <K> <= 4 b (dt c/dx)^2          z^2 - (1 + a + b - dt^2 <K>) z + a + b = 0

By Jury's conditions |z| <= 1 while dt^2 <K> <= 2 + 2 (a + b). This holds for all a, b and positions of particles if

    dt <= dx / c,          k = 2 mu + dim lambda (the bulk modulus times dim for a fluid)

A particle alone at its nodes oscillates with b = 1 and needs exactly this: the limit is sharp where material comes
apart. With dense particles, two along each axis of a cell, waves stay bounded up to at least 1.27 times the limit.

Kirchhoff stress grows with the square of a stretch, and snow hardens by exp(xi (1 - J_p)): k includes both, for the
present state. Compression alone changes nothing here, as nodes then get more mass as well. Moreover a particle must not
cross a cell in one step, dt |v| < dx. Sources: E. I. Jury, Theory and Application of the z-Transform Method (1964); the
bound is derived here.
"""

from __future__ import annotations

import numpy as np

from simphys.simulator import Array, Arrays, StepLimit
from simphys.simulators.mpm.laws import LAWS
from simphys.simulators.mpm.laws.lame import coefficients
from simphys.simulators.mpm.model import MPM


def step_limits(model: MPM, params: Arrays, state: Arrays) -> tuple[StepLimit, ...]:
    """Limit the time step so that it is certainly stable with this material, and that no particle crosses a cell.

    The bound holds wherever particles are in their cells; the tangent of a step knows but one of these places.
    """
    rate = np.sqrt(stiffness(model, params, state) * params["volume"] / params["mass"]) / model.spacing
    stiffest = int(np.argmax(np.where(np.isfinite(rate), rate, np.inf)))
    limit = (1 / float(rate[stiffest]) if rate[stiffest] > 0 else np.inf) if np.isfinite(rate[stiffest]) else 0.0
    speed = np.abs(np.asarray(state["velocity"], np.float64)).max(axis=1)
    fastest = int(np.argmax(speed))
    crossing = model.spacing / float(speed[fastest]) if speed[fastest] > 0 else np.inf
    return (
        StepLimit(limit, _name_particle(model, stiffest), "make the stiffest material softer or heavier"),
        StepLimit(crossing, f"{_name_particle(model, fastest)}, which crosses a cell in it", "reduce its velocity"),
    )


def stiffness(model: MPM, params: Arrays, state: Arrays) -> Array:
    """Compute k of each particle [Pa], [n]: the largest ratio of stress to small strain."""
    found = np.zeros(model.particles)
    stretch = np.linalg.norm(np.asarray(state["deformation"], np.float64), ord=2, axis=(1, 2))
    for number, law in enumerate(model.laws):
        members = np.flatnonzero(model.law == number) if model.law is not None else np.arange(model.particles)
        reads = LAWS[law].PARAMETERS
        values = {name: np.asarray(params[name], np.float64)[members] for name in reads}
        if "bulk_modulus" in reads:
            found[members] = model.dim * values["bulk_modulus"]
            continue
        mu, la = coefficients(values["young_modulus"], values["poisson_ratio"])
        k = np.maximum(2 * mu + model.dim * la, 2 * mu) * np.maximum(1.0, stretch[members]) ** 2
        found[members] = (
            k * np.exp(values["hardening"] * (1 - state["plastic"][members])) if "hardening" in reads else k
        )
    return found


def advice(model: MPM, params: Arrays, state: Arrays) -> str:
    """Explain the probable cause of a blow-up after this last finite state, and a remedy."""
    if leaves := _describe_leaving(model, state):
        return leaves
    volume = np.linalg.det(np.asarray(state["deformation"], np.float64))
    if volume[crushed := int(np.argmin(volume))] <= 0.05:
        how = "inverted" if volume[crushed] <= 0 else f"compressed to {volume[crushed]:.2g} of its volume"
        return f"{_name_particle(model, crushed).capitalize()} is {how}: use a smaller time.dt, or stiffer material."
    return "Use a smaller time.dt, or slower or softer material."


def _describe_leaving(model: MPM, state: Arrays) -> str:
    """Name the first particle whose B-spline is about to reach beyond the grid's nodes; '' if there is none."""
    position = np.asarray(state["position"], np.float64)
    after = position + model.dt * np.asarray(state["velocity"], np.float64)
    upper = (np.array(model.cells) - 1.5) * model.spacing
    outside = ~((after >= 0.5 * model.spacing) & (after < upper)).all(axis=1)
    if not outside.any():
        return ""
    first = int(np.argmax(outside))
    where = ", ".join(f"{x:.3g}" for x in position[first])
    return (
        f"{_name_particle(model, first).capitalize()} leaves the grid from ({where}): give the grid more cells, "
        "let walls or colliders hold it, or make it slower."
    )


def _name_particle(model: MPM, particle: int) -> str:
    law = model.laws[0 if model.law is None else int(model.law[particle])]
    return f"particle {particle} ({law})"
