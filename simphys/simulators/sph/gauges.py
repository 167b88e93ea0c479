"""Gauges: the depth of the fluid at some places along the first axis, differentiable by the positions.

    D_k = sum_i V B((x_i - c_k)/w) / (w a)        over particles of fluid

B quadratic B-spline, c_k place of gauge k [m], w its width [m], a breadth of the tank [m], 1 in the plane. Each gauge
measures the mean depth under a window around it, whatever the spacing of the particles. Adjoint, for z = adj_D, with
B' the difference of two hat functions: adj_x = sum_k z_k B'_k V / (w^2 a).
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.substep import total


@element
def depth(x, c, fluid, S, rate):
    u = ti.abs(x[0] - c) * rate
    far, near = ti.max(1.5 - u, 0.0), ti.max(0.5 - u, 0.0)
    return (fluid * S) * (0.5 * far * far - 1.5 * near * near)


@depth.adjoint
def adj_depth(x, c, fluid, S, rate, adj_D):
    u = (x[0] - c) * rate
    slope = ti.max(1.0 - ti.abs(u + 0.5), 0.0) - ti.max(1.0 - ti.abs(u - 0.5), 0.0)
    e = fluid * S * rate * adj_D.dot(slope)
    return ti.Vector([e if ti.static(axis == 0) else 0.0 * e for axis in ti.static(range(x.n))])


Depth = total(
    depth,
    over="particles",
    own={"x": "position"},
    constant={"c": "gauges", "fluid": "fluid", "S": "volume over area", "rate": "inverse width"},
    results={"depth": "c"},
)
"""Depth [gauges] [m]."""
