"""Health of a gradient over a horizon: growth or decay of the adjoint backward in time, and the usable horizon.

With A_t the derivative of state t + 1 with respect to state t, adjoints propagate backward as
adj_t = A_t^T adj_{t+1} + dL/d(state t), and tangents forward by A_t. So both grow at the same rates. For a damped
oscillator x'' = -c x' - k x the rate is -c/2 (for the adjoint, per second counted backward from the end). For a chaotic
system it is the largest Lyapunov exponent.

The rounding of a state, relative to it eps, is a perturbation like any other. If perturbations grow by 1/eps up to the
end, each rounding leads to a different end. The gradient of that motion is noise, although every digit is computed
correctly. Going backward from the end, this begins at the step where the adjoint is 1/eps times as large as the largest
derivative of the loss that has entered so far.
"""

from .measure import health, scene_health
from .report import Health

__all__ = ["Health", "health", "scene_health"]
