"""Singular value decomposition F = U diag(s) V^T with det U = det V = 1, s1 >= s2 >= |s3|; s3 has the sign of det F.

In 2-D there is a closed form: with (a, b) = (F00 + F11, F10 - F01) / 2 and (c, d) = (F00 - F11, F10 + F01) / 2,

    s = |(a, b)| +- |(c, d)|,   U, V rotate by the angles (angle(c, d) +- angle(a, b)) / 2

where half angles take a square root, but no trigonometric function. 3-D uses one-sided Jacobi rotations (Hestenes 1958;
Demmel and Veselic 1992). V rotates pairs of columns of F until all are orthogonal; their lengths are then s, and their
directions U. Angles that F does not determine (for equal or zero singular values) are arbitrary.

The compiler's own ti.svd is not accurate enough. Its fixed number of sweeps and its absolute thresholds leave residuals
far above rounding for F near the identity and for small F, and in 2-D it gives det U = -1. Here, residual and
orthogonality are of the order of rounding for any F (tests/numerics/test_svd.py), unless squares of its entries
underflow.
"""

import functools
from types import SimpleNamespace
from typing import Any

from simphys.autograd.kernels.runtime import ti

SWEEPS = 12
"""Largest number of sweeps of Jacobi rotations; they converge quadratically, and 4 or 5 suffice in f64."""


@functools.cache
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The element function svd(F) -> U, s, V, for matrices with 2 or 3 rows."""
    return _in_plane(real) if dim == 2 else _in_space(real)


@functools.cache
def _in_plane(real: Any) -> SimpleNamespace:
    mat, vec = ti.types.matrix(2, 2, real), ti.types.vector(2, real)
    tiny = 1e-37 if real is ti.f32 else 1e-300

    @ti.func
    def direction(x):
        """Length and unit vector, or 0 and the first axis."""
        x2 = x.dot(x)
        length = ti.sqrt(x2)
        unit = vec([1.0, 0.0])
        if x2 > tiny:
            unit = x / length
        return length, unit

    @ti.func
    def svd(F):
        r, ab = direction(vec([F[0, 0] + F[1, 1], F[1, 0] - F[0, 1]]))
        t, cd = direction(vec([F[0, 0] - F[1, 1], F[1, 0] + F[0, 1]]))
        cos, sin = cd.dot(ab), cd[1] * ab[0] - cd[0] * ab[1]  # of twice V's angle
        larger = ti.sqrt(0.5 * (1 + ti.abs(cos)))
        smaller = 0.5 * sin / larger
        c, s = larger, smaller
        if cos < 0:
            c, s = smaller, larger
        V = mat([[c, -s], [s, c]])
        U = mat([[ab[0], -ab[1]], [ab[1], ab[0]]]) @ V
        return U, 0.5 * vec([r + t, r - t]), V

    return SimpleNamespace(svd=svd)


@functools.cache
def _in_space(real: Any) -> SimpleNamespace:
    mat, vec = ti.types.matrix(3, 3, real), ti.types.vector(3, real)
    tiny, eps = (1e-37, 1.2e-7) if real is ti.f32 else (1e-300, 2.2e-16)
    orthogonal = (2 * eps) ** 2  # square of the cosine below which two columns count as orthogonal

    @ti.func
    def orthogonal_unit(u):
        """Unit vector orthogonal to the unit vector u."""
        w = vec([-u[1], u[0], 0.0])
        if ti.abs(u[2]) > 0.7:
            w = vec([0.0, -u[2], u[1]])
        return w / w.norm()

    @ti.func
    def sort_pair(a, b, x, y):
        """Sort a and b by length, the longer one first, and x and y with them; a swap rotates by a right angle."""
        longer, shorter, first, second = a, b, x, y
        if a.norm_sqr() < b.norm_sqr():
            longer, shorter, first, second = b, -a, y, -x
        return longer, shorter, first, second

    @ti.func
    def svd(F):
        a, b, d = vec([F[0, 0], F[1, 0], F[2, 0]]), vec([F[0, 1], F[1, 1], F[2, 1]]), vec([F[0, 2], F[1, 2], F[2, 2]])
        x, y, z = vec([1.0, 0.0, 0.0]), vec([0.0, 1.0, 0.0]), vec([0.0, 0.0, 1.0])
        orthogonal_pairs = 0
        for _ in range(3 * SWEEPS):
            if orthogonal_pairs < 3:
                aa, bb, ab = a.dot(a), b.dot(b), a.dot(b)
                orthogonal_pairs += 1
                c, s = 1.0, 0.0
                if ab * ab > orthogonal * aa * bb:
                    # the smaller angle with ab (c^2 - s^2) + (aa - bb) c s = 0
                    h = 0.5 * (bb - aa)
                    t = ab / (ti.abs(h) + ti.sqrt(h * h + ab * ab))
                    t = -t if h < 0 else t
                    c = 1 / ti.sqrt(1 + t * t)
                    s = c * t
                    orthogonal_pairs = 0
                a, b, d = s * a + c * b, d, c * a - s * b  # rotated; the next pair becomes the first one
                x, y, z = s * x + c * y, z, c * x - s * y
        a, b, x, y = sort_pair(a, b, x, y)
        b, d, y, z = sort_pair(b, d, y, z)
        a, b, x, y = sort_pair(a, b, x, y)

        aa = a.dot(a)
        u = vec([1.0, 0.0, 0.0])
        if aa > tiny:
            u = a / ti.sqrt(aa)
        b -= u.dot(b) * u
        bb = b.dot(b)
        v = orthogonal_unit(u)
        if bb > tiny + eps * eps * aa:
            v = b / ti.sqrt(bb)
        w = u.cross(v)
        U = mat([[u[0], v[0], w[0]], [u[1], v[1], w[1]], [u[2], v[2], w[2]]])
        V = mat([[x[0], y[0], z[0]], [x[1], y[1], z[1]], [x[2], y[2], z[2]]])
        return U, vec([u.dot(a), v.dot(b), w.dot(d)]), V

    return SimpleNamespace(svd=svd)
