"""Your own Taichi kernels with gradients: a Function around two of them, its gradient proven, and what is refused.

A body that moves through air at velocity v [m/s] feels the drag force -c |v| v [N], with its own c [kg/m].

Run it:  python docs/examples/own_kernels.py
"""

import numpy as np

from simphys.autograd import Function, InputError, gradcheck, kernel, runtime, tensor
from simphys.autograd.kernels.runtime import ti

runtime.init(precision="f64")
Vectors = ti.types.ndarray(dtype=ti.types.vector(2, ti.f64), ndim=1)
Reals = ti.types.ndarray(dtype=ti.f64, ndim=1)


@ti.kernel
def drag(v: Vectors, c: Reals, force: Vectors):
    for i in range(c.shape[0]):
        force[i] = -c[i] * v[i].norm() * v[i]


@ti.kernel
def adj_drag(v: Vectors, c: Reals, adj_force: Vectors, adj_v: Vectors, adj_c: Reals):
    for i in range(c.shape[0]):
        speed = v[i].norm()
        along = v[i].dot(adj_force[i])
        direction = v[i] / ti.max(speed, 1e-100)  # 0, not 0 / 0, at rest
        adj_v[i] = -c[i] * (speed * adj_force[i] + along * direction)
        adj_c[i] = -speed * along


# --- the Function
class Drag(Function):
    """(velocity [n, 2], coefficient [n]) -> force [n, 2]."""

    launch, launch_adjoint = kernel(drag), kernel(adj_drag)

    @staticmethod
    def forward(ctx, v, c):
        ctx.save_for_backward(v, c)
        force = np.empty(v.shape)
        Drag.launch(v, c, force)
        return force

    @staticmethod
    def backward(ctx, adj_force):
        v, c = ctx.saved_tensors
        adj_v, adj_c = np.empty(v.shape), np.empty(c.shape)
        Drag.launch_adjoint(v, c, adj_force, adj_v, adj_c)
        return adj_v, adj_c


# --- its use


def main() -> None:
    v = tensor([[3.0, 4.0], [1.0, 0.0], [-2.0, 1.5]], requires_grad=True)
    c = tensor([0.1, 0.2, 0.3], requires_grad=True)
    print(gradcheck(Drag.apply, (v, c)))

    force = Drag.apply(v, c)
    loss = (force * force).sum()
    loss.backward()
    print(f"loss {loss.item():.6f}\ngradient by c {c.grad.data}\nname of the node {force.grad_fn.name()}")

    try:
        Drag.apply(v, tensor(np.ones(3), dtype=np.float32))
    except InputError as error:
        print(error)


if __name__ == "__main__":
    main()
