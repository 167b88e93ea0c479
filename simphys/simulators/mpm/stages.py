"""The composition of stages, colliders and walls, that change the velocity u of a node: u_1 = f_1(u_0), u_2 = f_2(u_1).

Each stage has `velocity`, `adj` and `jvp`. The adjoint needs all u_k in reverse order. It recurses: a stage computes
u_k from u_{k-1}, calls the adjoint of the remaining stages, and receives the adjoint of u_k. Thus each velocity is
computed once.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti


@no_type_check
def compose(real: Any, dim: int, stages: list[SimpleNamespace]) -> SimpleNamespace:
    """Compose all stages into one."""
    *others, last = stages
    return functools.reduce(lambda rest, stage: _prepend(real, dim, stage, rest), reversed(others), last)


@no_type_check
def _prepend(real: Any, dim: int, stage: SimpleNamespace, rest: SimpleNamespace) -> SimpleNamespace:
    vec = ti.types.vector(dim, real)

    @ti.func
    def velocity(cell, u: vec, env: ti.template(), sizes: ti.template(), dx: real, skin: real) -> vec:
        return rest.velocity(cell, stage.velocity(cell, u, env, sizes, dx, skin), env, sizes, dx, skin)

    @ti.func
    def adj_velocity(
        cell, u: vec, g: vec, env: ti.template(), sizes: ti.template(), dx: real, skin: real,
        acc: ti.template(), wanted: ti.template(), atomic: ti.template(),
    ) -> vec:  # fmt: skip
        new = stage.velocity(cell, u, env, sizes, dx, skin)
        adj_new = rest.adj(cell, new, g, env, sizes, dx, skin, acc, wanted, atomic)
        return stage.adj(cell, u, adj_new, env, sizes, dx, skin, acc, wanted, atomic)

    @ti.func
    def jvp_velocity(
        cell, u: vec, du: vec, env: ti.template(), denv: ti.template(), sizes: ti.template(), dx: real, skin: real
    ) -> vec:
        new = stage.velocity(cell, u, env, sizes, dx, skin)
        dnew = stage.jvp(cell, u, du, env, denv, sizes, dx, skin)
        return rest.jvp(cell, new, dnew, env, denv, sizes, dx, skin)

    return SimpleNamespace(velocity=velocity, adj=adj_velocity, jvp=jvp_velocity)


@ti.func
@no_type_check
def accumulate(acc: ti.template(), first: ti.template(), width: ti.template(), x, atomic: ti.template()):
    """Add a vector of `width` entries to sums in memory; with `atomic`, other threads may add at the same time."""
    for j in ti.static(range(width)):
        if ti.static(atomic):
            ti.atomic_add(acc[first + j], x[j])
        else:
            acc[first + j] = acc[first + j] + x[j]
