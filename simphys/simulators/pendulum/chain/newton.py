"""Newton's method for the rates of a step: when it has converged, and when it has failed."""

from simphys.autograd import runtime
from simphys.autograd.kernels.runtime import ti

MAX_CORRECTIONS = 20
"""Largest number of Newton corrections; four or five are usual."""

ITERATING, CONVERGED, FAILED = 0, 1, 2


def find_tolerance() -> float:
    """Return the turn [rad] by a correction after which only rounding is left."""
    return 1e-9 if runtime.settings().precision == "f64" else 1e-4


@ti.func
def correct(v, correction, k):
    """Return the rates after a correction by Newton's method, and the status, by how far links turn in the time k."""
    turn, status = 0 * k, ITERATING
    for i in range(ti.static(v.n)):
        turn = ti.max(turn, k * ti.abs(correction[i]))
    if turn < ti.static(find_tolerance()):
        status = CONVERGED
    elif not turn < 1:
        status = FAILED
    return v + correction, status


@ti.func
def refuse_unconverged(v, status, nan):
    """Return the rates, or nan for each if Newton's method has not found them."""
    found = v
    for i in range(ti.static(v.n)):
        if status != CONVERGED:
            found[i] = nan
    return found
