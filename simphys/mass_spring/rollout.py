"""`Rollout`: the whole horizon as one node of the graph; the fused step is a rollout of one step."""

import functools
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ..autograd import Context, Function, Tensor, runtime
from ..autograd.errors import InputError
from . import fused, integrate
from .external import NODE_US, pack
from .model import Params, State, StateAdjoint, Topology, Trajectory
from .spring import SPRING_US

Array = np.ndarray[Any, Any]

PARAMETERS = tuple(field.name for field in fields(Params))
OF_SPRINGS = ("stiffness", "damping", "rest_length")

BLOCK = 4
"""Springs in a block of the fused kernels: enough for the compiler to vectorize, few enough for the registers."""


def rollout(topology: Topology, params: Params, state: State, *, steps: int, keep_adjoint: bool = False) -> Trajectory:
    """Advance `state` by `steps` steps as one node of the graph.

    With `keep_adjoint`, backward also stores the gradient with respect to the state along time.
    Errors: InputError for fewer than one step.
    """
    if steps < 1:
        raise InputError("rollout", "steps is at least 1", steps, "Ask for one step or more.")
    adjoint = StateAdjoint() if keep_adjoint else None
    position, velocity, last_position, last_velocity = Rollout.apply(
        topology, steps, adjoint, state.position, state.velocity, *params.tensors()
    )
    return Trajectory(position, velocity, State(last_position, last_velocity), adjoint)


def step(topology: Topology, params: Params, state: State) -> State:
    """The fused step: the same as `step.step`, as one node of the graph."""
    return rollout(topology, params, state, steps=1).final


class Rollout(Function):
    """Position and velocity at all steps [steps + 1, n, dim], and at the last [n, dim].

    Saved: the parameters and the states of all stages, which are the results where a step is one stage.
    """

    @staticmethod
    def forward(
        ctx: Context, topology: Topology, steps: int, adjoint: StateAdjoint | None, *inputs: Tensor
    ) -> tuple[Any, ...]:
        position, velocity, *params = inputs
        ctx.topology, ctx.adjoint, ctx.stages = topology, adjoint, len(topology.stages)
        ctx.last = steps * ctx.stages
        ctx.set_materialize_grads(False)
        width = BLOCK if topology.springs >= 4 * BLOCK else 1
        ctx.count = -(-topology.springs // width) * width
        given, needs = Params(*params), _needs(ctx)
        ctx.variant = fused.Variant(
            real=runtime.real(),
            dim=topology.dim,
            serial=not runtime.parallel(SPRING_US * topology.springs + NODE_US * topology.nodes),
            damped=bool(given.damping.data.any()) or needs["damping"],
            ground=bool(given.ground_stiffness.data.any()) or needs["ground_stiffness"],
            width=width,
        )
        shape = (ctx.last + 1, topology.nodes, topology.dim)
        x, v = np.empty(shape, position.dtype), np.empty(shape, position.dtype)
        x[0], v[0] = position.data, velocity.data
        ctx.coefficients = _coefficients(topology, given)
        held = runtime.device_array((max(ctx.count, topology.nodes),), components=topology.dim)
        x_, v_ = _flat(x), _flat(v)
        launch = fused.forward_kernel(ctx.variant).bind(x_, v_, *_arguments(ctx, params, ctx.count), held)
        for first, last in _launches(ctx):
            launch(first, last)
        x, v = _fetch(x_, x), _fetch(v_, v)
        x_stages, v_stages = Tensor(x), Tensor(v)
        ctx.save_for_backward(*params, x_stages, v_stages)
        if ctx.stages > 1:
            return _whole_steps(x, ctx.stages), _whole_steps(v, ctx.stages), x[-1].copy(), v[-1].copy()
        return x_stages, v_stages, x[-1].copy(), v[-1].copy()

    @staticmethod
    def backward(
        ctx: Context, adj_x: Tensor | None, adj_v: Tensor | None, adj_x_last: Tensor | None, adj_v_last: Tensor | None
    ) -> tuple[Any, ...]:
        topology: Topology = ctx.topology
        *params, x, v = ctx.saved_tensors
        n, S, dim, given, needs = topology.nodes, ctx.count, topology.dim, Params(*params), _needs(ctx)
        dense = adj_x is not None or adj_v is not None or ctx.adjoint is not None
        variant = replace(
            ctx.variant,
            dense=dense,
            decay=needs["drag"],
            impulse=needs["mass"] or (needs["drag"] and any(stage.fade for stage in topology.stages)),
            weight=needs["mass"] or needs["gravity"],
            floor=needs["ground_height"] or needs["ground_stiffness"] or needs["ground_friction"],
            **{name: needs[name] for name in OF_SPRINGS},
        )
        gx, gv = _seeds(ctx, adj_x, adj_x_last, dense), _seeds(ctx, adj_v, adj_v_last, dense)
        grads = _accumulators(ctx, variant)
        device = {name: runtime.to_device(value, vector=value.ndim > 1) for name, value in grads.items()}
        gx_, gv_ = _flat(gx), _flat(gv)
        work = [runtime.device_array((size,), components=dim) for size in (n, n, *(1 if variant.serial else S,) * 3)]
        launch = fused.adjoint_kernel(variant).bind(
            _flat(x.data), _flat(v.data), *_arguments(ctx, params, ctx.count), *work, gx_, gv_, *device.values()
        )
        for first, last in reversed(_launches(ctx)):
            launch(first, last)
        gx, gv = _fetch(gx_, gx), _fetch(gv_, gv)
        grads = {name: _fetch(value, grads[name]) for name, value in device.items()}
        if ctx.adjoint is not None:
            ctx.adjoint.position, ctx.adjoint.velocity = gx[:: ctx.stages], gv[:: ctx.stages]
        adj_drag = np.zeros(n, x.dtype)
        if variant.decay or variant.impulse:
            _adj_coefficients(topology, given, grads["a"], grads["b"], adj_drag, grads["m"])
        return (
            None,
            None,
            None,
            gx[0].copy(),
            gv[0].copy(),
            *(grads[name][: topology.springs] for name in "kcL"),
            grads["m"],
            adj_drag,
            grads["g"].sum(axis=0),
            *grads["floor"].sum(axis=0),
        )

    @staticmethod
    def jvp(ctx: Context, _topology: None, _steps: None, _adjoint: None, *tangents: Any) -> tuple[Any, ...]:
        topology: Topology = ctx.topology
        *params, x, v = ctx.saved_tensors
        given = Params(*params)
        dx, dv = np.zeros_like(x.data), np.zeros_like(v.data)
        for target, tangent in zip((dx, dv), tangents[:2], strict=True):
            if tangent is not None:
                target[0] = tangent
        dk, dc, dL, dm, ddrag, dg, *dfloor = (
            np.zeros_like(p.data) if d is None else d for d, p in zip(tangents[2:], params, strict=True)
        )
        da, db = (np.empty(ctx.stages * topology.nodes, x.dtype) for _ in range(2))
        for stage, rows in zip(topology.stages, _rows(topology), strict=True):
            integrate.coefficient_kernels(runtime.real()).tangent(
                given.drag,
                given.mass,
                topology.free,
                stage.kick,
                stage.fade,
                topology.nodes,
                ddrag,
                dm,
                da[rows],
                db[rows],
            )
        f, df = (np.empty((topology.nodes, topology.dim), x.dtype) for _ in range(2))
        variant = replace(ctx.variant, damped=True, ground=True, serial=True, width=1)
        fused.tangent_kernel(variant)(
            _host(x.data),
            _host(v.data),
            *_arguments(ctx, params, topology.springs),
            f,
            df,
            _host(dx),
            _host(dv),
            dk,
            dc,
            dL,
            da,
            db,
            dm,
            dg[None],
            pack(*dfloor),
            ctx.last,
        )
        return _whole_steps(dx, ctx.stages), _whole_steps(dv, ctx.stages), dx[-1].copy(), dv[-1].copy()


def _host(array: Array) -> Array:
    """[stages, n, dim] as the flat array of vectors that kernels take."""
    return array.reshape(-1, array.shape[-1])


def _flat(array: Array) -> Any:
    return runtime.to_device(_host(array), vector=True)


def _fetch(kernel_array: Any, host: Array) -> Array:
    """What kernels wrote, in memory of its own: on the CPU that is `host`, which the kernel's array is a view of."""
    return runtime.to_host(kernel_array, host.shape).copy() if runtime.settings().on_gpu else host


def _rows(topology: Topology) -> list[slice]:
    n = topology.nodes
    return [slice(q * n, (q + 1) * n) for q in range(len(topology.stages))]


def _needs(ctx: Context) -> dict[str, bool]:
    """Whether a gradient is wanted, for each parameter by name."""
    return dict(zip(PARAMETERS, ctx.needs_input_grad[-len(PARAMETERS) :], strict=True))


def _coefficients(topology: Topology, given: Params) -> tuple[Array, Array]:
    """Kick coefficients a, b of all stages, [stages * n]."""
    launch = integrate.coefficient_kernels(runtime.real()).forward
    a, b = (np.empty(len(topology.stages) * topology.nodes, given.mass.dtype) for _ in range(2))
    for stage, rows in zip(topology.stages, _rows(topology), strict=True):
        launch(given.drag, given.mass, topology.free, stage.kick, stage.fade, topology.nodes, a[rows], b[rows])
    return a, b


def _adj_coefficients(
    topology: Topology, given: Params, adj_a: Array, adj_b: Array, adj_drag: Array, adj_m: Array
) -> None:
    """Add to adj_drag and adj_m what reaches them through the kick coefficients."""
    launch = integrate.coefficient_kernels(runtime.real()).adjoint
    for stage, rows in zip(topology.stages, _rows(topology), strict=True):
        launch(
            given.drag,
            given.mass,
            topology.free,
            stage.kick,
            stage.fade,
            topology.nodes,
            adj_a[rows],
            adj_b[rows],
            adj_drag,
            adj_m,
        )


def _arguments(ctx: Context, params: list[Tensor], count: int) -> list[Any]:
    """The arguments that forward, adjoint and tangent kernels share, behind x and v, for `count` springs."""
    k, c, L, m, _, g, *ground = (p.data for p in params)
    topology: Topology = ctx.topology
    ends, start, incidence, n, S = topology.lists
    # Springs that fill the last block join node 0 with itself and have no force.
    k, c, L, ends = (
        np.pad(array, [(0, count - S)] + [(0, 0)] * (array.ndim - 1)) if count > S else array
        for array in (k, c, L, ends)
    )
    drifts = np.array([stage.drift for stage in topology.stages], k.dtype)
    put = runtime.to_device
    return [
        put(k),
        put(c),
        put(L),
        put(ends, vector=True),
        put(start),
        put(incidence),
        n,
        count,
        *map(put, ctx.coefficients),
        put(m),
        put(g[None], vector=True),
        put(pack(*ground), vector=True),
        put(drifts),
        ctx.stages,
    ]


def _whole_steps(states: Array, stages: int) -> Array:
    """A copy of every `stages`-th state."""
    steps = np.empty(((len(states) - 1) // stages + 1, *states.shape[1:]), states.dtype)
    _items(steps)[:] = _items(states)[::stages]
    return steps


def _items(states: Array) -> Array:
    """States as one item each, which NumPy moves with a stride ten times as fast as their numbers."""
    return states.reshape(len(states), -1).view(np.dtype((np.void, states[0].nbytes)))[:, 0]


def _launches(ctx: Context) -> list[tuple[int, int]]:
    """Stage intervals of the launches: the whole horizon, or one stage each."""
    return [(0, ctx.last)] if ctx.variant.serial else [(j, j + 1) for j in range(ctx.last)]


def _seeds(ctx: Context, along: Tensor | None, last: Tensor | None, dense: bool) -> Array:
    """The given adjoint of the state: at every stage, or at the last one only."""
    topology: Topology = ctx.topology
    seeds = np.zeros(((ctx.last if dense else 0) + 1, topology.nodes, topology.dim), runtime.real_dtype())
    if along is not None:
        _items(seeds)[:: ctx.stages] = _items(along.data)
    if last is not None:
        seeds[-1] += last.data
    return seeds


def _accumulators(ctx: Context, variant: fused.Variant) -> dict[str, Array]:
    """Zeroed adjoints of the parameters, one entry a spring or a node; the order is that of the kernel's arguments."""
    n, S, dim = ctx.topology.nodes, ctx.count, ctx.topology.dim
    zeros = functools.partial(np.zeros, dtype=runtime.real_dtype())
    return {
        "k": zeros(S),
        "c": zeros(S),
        "L": zeros(S),
        "a": zeros(ctx.stages * n),
        "b": zeros(ctx.stages * n),
        "m": zeros(n),
        "g": zeros((n, dim)),
        "floor": zeros((n, 3)),
    }
