"""Means and differences on an Arakawa C-grid, as the weights of neighbours.

Cell (i, j), the faces below it along each axis, and the corner below it along both have the same index. A vector has a
component at each of these faces. The grid wraps around, as if it were periodic, and the face beyond the last cell is
face 0. A wall is a face 0 that nothing flows through. In one dimension, what would be at corners is 0.

Source: Arakawa and Lamb 1977 (the C-grid).
"""

from simphys.substep.stencil import Term


def one_step(axis: int, dim: int, steps: int) -> tuple[int, ...]:
    """Return the shift by some steps along an axis."""
    return tuple([steps if a == axis else 0 for a in range(dim)])


def mean_at_faces(dim: int) -> list[list[Term]]:
    """Average cells at each face."""
    return [[Term(0.5, one_step(a, dim, 0)), Term(0.5, one_step(a, dim, -1))] for a in range(dim)]


def mean_at_corners(dim: int) -> list[Term]:
    """Average the four cells around each corner; in one dimension, the two at each face."""
    if dim == 1:
        return mean_at_faces(1)[0]
    return [Term(0.25, (-i, -j)) for i in (0, 1) for j in (0, 1)]


def falls_at_faces(dim: int) -> list[list[Term]]:
    """Take the difference of the two cells at each face, the lower less the upper one."""
    return [[Term(1, one_step(a, dim, -1)), Term(-1, one_step(a, dim, 0))] for a in range(dim)]


def upper_faces(dim: int) -> list[list[Term]]:
    """Take the value at the upper face of each cell."""
    return [[Term(1, one_step(a, dim, 1), a)] for a in range(dim)]


def divergence(dim: int) -> list[Term]:
    """Add up what leaves a cell through its upper faces, less what enters through its lower ones."""
    return [Term(sign, one_step(a, dim, steps), a) for a in range(dim) for sign, steps in ((1, 1), (-1, 0))]


def circulation(dim: int) -> list[Term]:
    """Add up a vector around each corner: u_y - u_y before - u_x + u_x before."""
    if dim == 1:
        return []
    return [Term(1, (0, 0), 1), Term(-1, (-1, 0), 1), Term(-1, (0, 0), 0), Term(1, (0, -1), 0)]


def turned_at_corners(dim: int) -> list[list[Term]]:
    """Average a vector U at each corner, turned by a right angle: (mean_x U_y, -mean_y U_x)."""
    if dim == 1:
        return [[]]
    return [[Term(0.5, (0, 0), 1), Term(0.5, (-1, 0), 1)], [Term(-0.5, (0, 0), 0), Term(-0.5, (0, -1), 0)]]


def corners_to_faces(dim: int) -> list[list[Term]]:
    """Average a vector at corners at each face, along it: (mean_y of the first component, mean_x of the second)."""
    if dim == 1:
        return [[]]
    return [[Term(0.5, (0, 0), 0), Term(0.5, (0, 1), 0)], [Term(0.5, (0, 0), 1), Term(0.5, (1, 0), 1)]]


def mean_across(dim: int) -> list[list[Term]]:
    """Average the other component over the four faces around each face. It is symmetric, with the axes exchanged."""
    if dim == 1:
        return [[]]
    return [
        [Term(0.25, (-i, j), 1) for i in (0, 1) for j in (0, 1)],
        [Term(0.25, (i, -j), 0) for i in (0, 1) for j in (0, 1)],
    ]
