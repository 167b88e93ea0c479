"""Parameters from a measurement, by the gradient of one's own kernels: a damped pendulum, swinging wide.

The angle q [rad] obeys q'' = -a sin q - b q'. Unknown: a = g / length [1/s^2], the damping b [1/s], and the start. The
whole rollout is one kernel, its adjoint a second one that goes back in time (semi-implicit Euler):

    w' = w - h (a sin q + b w),  q' = q + h w'

Run it:  python docs/examples/fit_pendulum.py
"""

import numpy as np
from scipy.optimize import minimize

from simphys.autograd import Function, kernel, ops, runtime, tensor
from simphys.autograd.kernels.runtime import ti

runtime.init(precision="f64")
STEPS, H = 2000, 0.005  # time steps; their length [s]
SAMPLE = slice(0, STEPS + 1, 20)  # the camera sees ten frames a second
TRUE = np.array([9.81 / 1.3, 0.12, 2.0, 0.0])  # a, b, angle and angular velocity at the start
Reals = ti.types.ndarray(dtype=ti.f64, ndim=1)


@kernel
def swing(p: Reals, q: Reals, w: Reals):
    q[0], w[0] = p[2], p[3]
    for _ in range(1):  # a loop at the top level may run in parallel: the time loop goes inside
        for t in range(STEPS):
            w[t + 1] = w[t] - H * (p[0] * ti.sin(q[t]) + p[1] * w[t])
            q[t + 1] = q[t] + H * w[t + 1]


@kernel
def adj_swing(p: Reals, q: Reals, w: Reals, adj: Reals, adj_p: Reals):
    for _ in range(1):
        adj_q, adj_w, adj_a, adj_b = adj[STEPS], 0.0 * p[0], 0.0 * p[0], 0.0 * p[0]
        for step in range(STEPS):
            t = STEPS - 1 - step
            adj_w += H * adj_q
            adj_a -= H * adj_w * ti.sin(q[t])
            adj_b -= H * adj_w * w[t]
            adj_q += adj[t] - H * adj_w * p[0] * ti.cos(q[t])
            adj_w *= 1 - H * p[1]
        adj_p[0], adj_p[1], adj_p[2], adj_p[3] = adj_a, adj_b, adj_q, adj_w


class Swing(Function):
    """Parameters [4] -> angle [STEPS + 1]."""

    @staticmethod
    def forward(ctx, p):
        q, w = np.empty(STEPS + 1), np.empty(STEPS + 1)
        swing(p, q, w)
        ctx.save_for_backward(p, q, w)
        return q

    @staticmethod
    def backward(ctx, adj_q):
        adj_p = np.empty(4)
        adj_swing(*ctx.saved_tensors, adj_q, adj_p)
        return adj_p


def main() -> np.ndarray:
    noise = 0.01 * np.random.default_rng(0).standard_normal(STEPS + 1)
    measured = (Swing.apply(tensor(TRUE)).numpy() + noise)[SAMPLE]

    def loss_and_gradient(values: np.ndarray) -> tuple[float, np.ndarray]:
        p = tensor(values, requires_grad=True)
        residual = Swing.apply(p)[SAMPLE] - measured
        loss = ops.sum(residual * residual)
        loss.backward()
        return loss.item(), p.grad.numpy()

    start = TRUE * [1.05, 0.7, 0.95, 1.0] + [0, 0, 0, 0.1]
    fit = minimize(loss_and_gradient, start, jac=True, method="L-BFGS-B", options={"maxiter": 200})
    rms = np.sqrt(fit.fun / measured.size)
    for name, found, true in zip(("a", "b", "angle", "angular velocity"), fit.x, TRUE, strict=True):
        print(f"{name:<17} found {found:8.4f}   true {true:8.4f}")
    print(f"residual {rms:.4f} rad (noise 0.01), {fit.nfev} gradients")
    return fit.x


if __name__ == "__main__":
    main()
