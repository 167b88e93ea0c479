"""Normal velocity at sides: 0 at faces on a closed side, boundary_velocity on an inflow side.

    u'_a = 0 (closed), w_a (inflow)     at faces of component a on a side normal to axis a;     u' = u elsewhere

On a collocated grid no velocity entry is on a side, and nothing is done here; the ghosts of diffuse.py and project.py
impose the velocity at sides. Open and periodic sides are unconstrained. Adjoint, with g = adj_u':

    adj_u = 0 at prescribed faces, else g              adj_w_a = sum of g_a over the faces of an inflow side
"""

import functools
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels import device
from simphys.autograd.kernels.runtime import ti
from simphys.substep import Chain, Entries, KernelCall, Launch, Target, launched

from .entries import FIXED, OWN, Form, Work, functions, work_of
from .faces import is_prescribed
from .model import Smoke

Out = Mapping[str, Target]


# fmt: off
@functools.cache
def loops(form: Form) -> SimpleNamespace:
    real, dim, _, on_gpu, alone = form
    f = functions(dim, on_gpu)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @no_type_check
    @kernel
    def prescribe(
        rounds: ti.i32, table: integers, adds: ti.i32, enters: reals, u: reals, w: reals, target: reals,
        begin_u: ti.i32, begin_w: ti.i32, begin: ti.i32,
    ):
        ti.loop_config(serialize=alone)
        for r in range(rounds):
            component, at, line, own = f.begin(table, r)
            a = component - (3 - dim)
            for x in range(at[2], f.last(table, at)):
                at[2] = x
                value = u[begin_u + line + x]
                if x < own:
                    for d in ti.static(range(3 - dim, 3)):
                        if component == d:
                            for end in ti.static((0, 1)):
                                near = ti.static(end) * (table[OWN + 4 * d] - 1)
                                if at[d] == near and table[FIXED + 2 * d + end] == 1:
                                    n = (2 * a + end) * dim + a
                                    value = enters[n] * w[begin_w + n]
                to = begin + line + x
                target[to] = ti.select(adds == 1, target[to], 0.0) + value

    @no_type_check
    @kernel
    def add_sides(
        sides: ti.i32, table: integers, c: real, masked: ti.i32, adds: ti.i32, chosen: reals, factor: reals, g: reals,
        target: reals, begin_factor: ti.i32, begin_g: ti.i32, begin: ti.i32,
    ):
        """Add up g over the entries nearest to each side, for each component, where `chosen` [sides, components] is 1.

        With `masked`, entries whose velocity is prescribed are left out.
        """
        for n in range(sides):
            side, a = n // dim, n % dim
            component, total = a + 3 - dim, real(0.0)
            if chosen[n] != 0:
                counts = ti.Vector([table[OWN + 3 * component + d] for d in ti.static(range(3))])
                axis = side // 2 + 3 - dim
                near = ti.select(side % 2 == 0, 0, counts[axis] - 1)
                counts[axis] = 1
                for i in range(counts[0] * counts[1] * counts[2]):
                    line = i // counts[2]
                    at = ti.Vector([line // counts[1], line % counts[1], i % counts[2]])
                    at[axis] = near
                    if masked == 0 or f.is_free(table, component, at):
                        total += g[begin_g + f.place(table, component, at)]
            value = c * factor[begin_factor] * total
            target[begin + n] = ti.select(adds == 1, target[begin + n], 0.0) + value

    return SimpleNamespace(prescribe=prescribe, add_sides=add_sides)
# fmt: on


def add_sides(
    work: Work, g: Entries, chosen: Any, factor: Entries, c: float, target: Target, *, masked: bool
) -> Launch:
    """Launch that adds up g near sides, times the number `factor` and c: [2 dim, dim], 0 where `chosen` is 0."""
    dim, to = work.model.dim, target.entries
    loop = loops(work.form).add_sides
    given = 2 * dim * dim, work.table, c, int(masked), int(target.adds), chosen, factor.numbers, g.numbers, to.numbers
    return KernelCall(loop, *given, moving=[(factor, 0), (g, 0), (to, 0)])


@runtime.cached(maxsize=4)
def _entering(model: Smoke) -> Any:
    """Make an array [2 dim, dim] with 1 for the normal velocity of each inflow side."""
    enters = np.zeros((2 * model.dim, model.dim), runtime.real_dtype())
    for side, kind in enumerate(model.boundaries):
        enters[side, side // 2] = kind == "inflow" and is_prescribed(model, side)
    return device.to_device(enters.reshape(-1))


def _prescribe(model: Smoke, velocity: Entries, boundary: Entries | None, target: Target) -> Launch:
    """Launch that prescribes the normal velocity at sides, 0 without a boundary."""
    work, to = work_of(model), target.entries
    enters, given = (_entering(model), boundary) if boundary else (work.get("none", 2 * model.dim**2), None)
    given = given or Entries(enters)
    loop = loops(work.form).prescribe
    arrays = enters, velocity.numbers, given.numbers, to.numbers
    moving = [(velocity, 0), (given, 0), (to, 0)]
    return KernelCall(loop, work.rounds, work.table, int(target.adds), *arrays, moving=moving)


def prescribe(model: Smoke, velocity: Entries, boundary_velocity: Entries, out: Out) -> Launch:
    """Prescribe the normal velocity at sides, by boundary_velocity [2 dim, dim] [m/s]."""
    return _prescribe(model, velocity, boundary_velocity, out["prescribed_velocity"])


def adj_prescribe(model: Smoke, adj_prescribed_velocity: Entries, out: Out) -> Launch:
    work, g = work_of(model), adj_prescribed_velocity
    makes = {
        "velocity": lambda target: _prescribe(model, g, None, target),
        "boundary_velocity": lambda target: add_sides(
            work, g, _entering(model), work.ones(), 1.0, target, masked=False
        ),
    }
    return Chain(*[makes[name](target) for name, target in out.items()])


def jvp_prescribe(model: Smoke, dvelocity: Entries, dboundary_velocity: Entries, out: Out) -> Launch:
    return _prescribe(model, dvelocity, dboundary_velocity, out["prescribed_velocity"])


ApplySides = launched(
    prescribe,
    adjoint=adj_prescribe,
    tangent=jvp_prescribe,
    results={"prescribed_velocity": "velocity"},
    name="ApplySides",
    is_cheap=True,
)
"""Velocity [dim, *faces] with normal components at sides prescribed by boundary_velocity [2 dim, dim]."""
