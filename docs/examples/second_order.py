"""Newton's method with Hessian-vector products: the shape of a hanging chain, without ever forming a matrix.

A chain of springs hangs between two nails; its shape is where its energy is least,

    E = sum over links of k/2 (length - rest)^2  +  sum over nodes of m g height.

Each step solves H p = -gradient by conjugate gradients, with H times a vector from `hvp`, and halves p until E falls.

Run it:  python docs/examples/second_order.py
"""

import numpy as np

from simphys.autograd import Tensor, hvp, ops, runtime, tensor

runtime.init(precision="f64")
NODES, STIFFNESS, REST, WEIGHT = 30, 2000.0, 0.05, 0.2  # free nodes; [N/m]; [m]; of a node [N]
NAILS = np.array([[0.0, 0.0], [1.2, 0.3]])


def energy(free: Tensor) -> Tensor:
    """Of the free nodes' places [NODES, 2]."""
    nodes = ops.concatenate([tensor(NAILS[:1]), free, tensor(NAILS[1:])])
    links = nodes[1:] - nodes[:-1]
    length = ops.sqrt(ops.sum(links * links, axis=1))
    return STIFFNESS / 2 * ops.sum((length - REST) ** 2) + WEIGHT * ops.sum(free[:, 1])


def solve(multiply, right: np.ndarray, tolerance: float) -> np.ndarray:
    """Conjugate gradients for H p = right; stops where H curves downwards."""
    p, residual = np.zeros_like(right), right.copy()
    direction = residual
    for _ in range(10 * right.size):
        product = multiply(direction)
        curvature = np.vdot(direction, product)
        if curvature <= 0:
            return p if p.any() else right
        squared = np.vdot(residual, residual)
        p = p + squared / curvature * direction
        residual = residual - squared / curvature * product
        if np.linalg.norm(residual) < tolerance:
            break
        direction = residual + np.vdot(residual, residual) / squared * direction
    return p


def main() -> list[float]:
    """The norm of the gradient [N] at each step."""
    line = np.linspace(NAILS[0], NAILS[1], NODES + 2)[1:-1]
    x = tensor(line - [0.0, 0.1], requires_grad=True)
    norms = []
    for step in range(50):
        x.grad = None
        value = energy(x)
        value.backward()
        gradient = x.grad.numpy()
        norms.append(float(np.linalg.norm(gradient)))
        print(f"step {step:2d}   energy {value.item():10.6f} J   gradient {norms[-1]:.1e} N")
        if norms[-1] < 1e-9:
            break
        p = solve(lambda v: hvp(energy, x, v)[1], -gradient, min(0.1, norms[-1]) * norms[-1])
        while energy(tensor(x.numpy() + p)).item() > value.item() + 1e-12:
            p = p / 2
        with x.writable() as places:
            places += p
    return norms


if __name__ == "__main__":
    main()
