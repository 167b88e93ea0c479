"""Element functions for the inputs of a controller: the centre c of elements of equal weight, and a goal seen from it.

    c = sum of x_i / n        s_goal = goal - c                             [m]

Adjoint: adj_x_i = adj_c / n, and adj_c = -adj_s_goal. Both are linear.
"""

from simphys.numerics.element import element


@element
def share(x, part):
    return part * x


@share.adjoint
def adj_share(x, part, adj_c):
    return part * adj_c


@element
def sense_goal(c, goal):
    return goal - c


@sense_goal.adjoint
def adj_sense_goal(c, goal, adj_offset):
    return -adj_offset
