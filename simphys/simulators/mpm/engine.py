"""`MPMEngine`, the fused loops of one rollout over arrays; see `simphys.simulator.Engine`."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Array, Arrays
from simphys.simulator.actuators import extend_control
from simphys.simulator.array_engine import ArrayEngine

from . import actuate, fused, fused_adjoint, fused_tangent, grid
from .arrays import Boundary, Constants, Counts, Grid, Material, Particles, flatten
from .constitutive import adj_coefficients, coefficients, jvp_coefficients
from .environment import POSES, EnvironmentRows, environment_size
from .laws import LAW_PARAMETERS
from .model import MPM
from .segment import PARTICLE_FIELDS, RunningAdjoint, Segment

PIECES = 4
"""Number of pieces that particles are divided into if results must not depend on the number of threads."""
GPU_PIECES = 32
"""Number of pieces on a GPU if results must be reproducible. Each piece has one thread: slow, but sums in order."""

PARTS = 16
"""Number of parts that the lines of nodes are divided into."""

SPREAD = 512
"""Loop iterations for each piece of work, one of which does the work. With fewer iterations in all, a CPU would run the
loop on one thread."""

PARTICLE_US = {2: 0.015, 3: 0.06}
"""Serial cost [us] of a particle in the cheapest loop over particles, for each dimension."""

NODE_US = 0.004
"""Serial cost [us] of a node."""


class MPMEngine(ArrayEngine):
    """The rollout of a batch of material-point simulations, one batch member at a time; each uses all threads."""

    model: MPM

    def __init__(self, model: MPM, params: Arrays, control: Array | None, **options: Any) -> None:
        super().__init__(model, params, control, **options)
        self._pieces, self._variant = self._choose_variant()
        self._coefficients = np.stack(
            [coefficients(model, self._take_member(self.params, b)) for b in range(self.batch)]
        )
        self._materials = [
            self._upload_material(b, self.params, self._coefficients[b], self.control) for b in range(self.batch)
        ]
        self._adj_material = [self._zero_material() for _ in range(self.batch)]
        self._sizes = runtime.to_device(grid.collider_sizes(model))

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        model = self.model
        row = sum(math.prod(shape) for shape in model.state_shapes().values())
        grids = self._grid_count * model.nodes * (2 * model.dim + 1) + model.nodes * (2 * model.dim + 1)
        material = 2 * self.batch * model.particles * (2 + model.width)
        copies = self.batch * row * (steps + 1) if dense and runtime.settings().on_gpu else 0
        numbers = row + grids + material + copies + steps * (2 * environment_size(model) + self._control_width)
        return super().segment_bytes(steps, dense=dense) + numbers * runtime.real_dtype().itemsize

    def segment(self, steps: int) -> Segment:  # type: ignore[override]
        return Segment(self.model, self.batch, steps + 1)

    def load(self, segment: Segment, state: Arrays) -> None:  # type: ignore[override]
        segment.load(state)

    def read(  # type: ignore[override]
        self, segment: Segment, rows: slice | list[int], names: Collection[str] | None = None
    ) -> Arrays:
        return segment.read(rows, names)

    def advance(self, segment: Segment, *, first: int, start: int, steps: int) -> None:
        for b in range(self.batch):
            rows = self._environment_rows(b).move(self._take_poses(segment, b), first=first, start=start, steps=steps)
            step = self._bind_step(segment, b, rows)
            for row in range(steps):
                step(start + row, self._control_offset(first + start + row), row * rows.shape[1])

    def pull(self, segment: Segment, *, first: int, steps: int, adjoint: Arrays) -> None:
        for b in range(self.batch):
            env_rows, running = self._environment_rows(b), RunningAdjoint(adjoint, b)
            poses = self._take_poses(segment, b)
            rows = env_rows.build(poses, first=first, steps=steps)
            size, width = rows.shape[1], rows.shape[1] + self._control_width
            adj_rows = runtime.to_device(np.zeros(steps * width, rows.dtype))
            partial = np.zeros(PARTS * size + self._grid_count * self._control_width, rows.dtype)
            back = self._bind_adjoint_step(segment, b, rows, running, runtime.to_device(partial), adj_rows)
            for row in reversed(range(steps)):
                back(row, self._control_offset(first + row), row * size, row * width)
                running.add_loss_row(row)
            running.finish()
            totals = runtime.to_host(adj_rows, (steps, width))
            sums = {name: self.sums[name][b, ...] for name in self.needs}  # views, of scalars too
            adj_poses = {name: adjoint[name][b] for name in POSES}
            env_rows.pull(poses, totals[:, :size], adj_poses, sums, first=first, steps=steps)
            if self._variant.adj_control:
                sums["control"][first : first + steps, : self.model.actuators] += totals[:, size:-1]

    def push(self, segment: Segment, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        model, dsegment = self.model, self.segment(steps)
        dsegment.load(tangent)
        kernels = fused_tangent.kernels(replace(self._variant.forward, single=True))
        grid, k, n = self._workspace, self._constants, model.particles
        dG, dU = (runtime.device_array((model.nodes * width,)) for width in (model.dim + 1, model.dim))
        for b in range(self.batch):
            poses, env_rows = self._take_poses(segment, b), self._environment_rows(b)
            dparams = self._take_member(self.tangents, b)
            drows = env_rows.push(poses, self._take_poses(dsegment, b), dparams, first=first, steps=steps)
            rows = env_rows.build(poses, first=first, steps=steps)
            env, denv = (runtime.to_device(flatten(values)) for values in (rows, drows))
            dc = jvp_coefficients(model, self._take_member(self.params, b), dparams)
            dmass, dvolume, dc_, *_, dcontrol = self._upload_material(
                b, self.tangents, dc, None if self.control is None else self.tangents["control"]
            )
            states, dstates = Particles(*segment.particles[b]), Particles(*dsegment.particles[b])
            dmaterial = Material(dmass, dvolume, dc_, control=dcontrol)
            to_grid = kernels.to_grid.bind(
                states, self._materials[b], Grid(grid.G, span=grid.span), dstates, dmaterial, dG, k, n
            )
            boundary, velocities = Boundary(env, self._sizes), grid._replace(total=None)
            nodes = kernels.nodes.bind(boundary, denv, velocities, Grid(dG, U=dU), k)
            to_particles = kernels.to_particles.bind(states.x, grid.U, _moved(dstates), dU, k, n)
            for row in range(steps):
                to_grid(row, self._control_offset(first + row))
                nodes(row * rows.shape[1])
                to_particles(row)
        return dsegment.read(slice(steps + 1))

    def _bind_step(self, segment: Segment, b: int, rows: Array) -> Callable[[int, int, int], None]:
        """Bind step(now, control_at, env_at) of batch member b.

        The step leads from row `now` of its states to the next. control_at and env_at are the offsets of its controls
        and of its row of `rows`.
        """
        kernels, env = fused.kernels(self._variant.forward), runtime.to_device(flatten(rows))
        states, grid, k = Particles(*segment.particles[b]), self._workspace, self._constants
        n, pieces = self.model.particles, self._pieces
        to_grid = kernels.to_grid.bind(states, self._materials[b], Grid(grid.G, span=grid.span), k, n, pieces)
        nodes = kernels.nodes.bind(Boundary(env, self._sizes), grid, k, pieces, PARTS)
        to_particles = kernels.to_particles.bind(_moved(states), grid.U, k, math.nan, n, pieces)

        def step(now: int, control_at: int, env_at: int) -> None:
            to_grid(now, control_at)
            nodes(env_at)
            to_particles(now)

        return step

    def _bind_adjoint_step(
        self, segment: Segment, b: int, rows: Array, running: RunningAdjoint, partial: Any, adj_rows: Any
    ) -> Callable[[int, int, int, int], None]:
        """Bind the reverse of `step`; a fourth argument, adj_rows_at, is the offset of its results in `adj_rows`."""
        again, kernels = fused.kernels(self._variant.forward), fused_adjoint.kernels(self._variant)
        boundary, size = Boundary(runtime.to_device(flatten(rows)), self._sizes), rows.shape[1]
        states, grid, k = Particles(*segment.particles[b]), self._workspace, self._constants
        n, pieces, adj = self.model.particles, self._pieces, Particles(*running.arrays)
        counts = Counts(n, pieces, PARTS, size, self._control_width)
        velocities = Grid(U=grid.U, span=grid.span)
        to_grid = again.to_grid.bind(states, self._materials[b], Grid(grid.G, span=grid.span), k, n, pieces)
        nodes = again.nodes.bind(boundary, grid, k, pieces, PARTS)
        from_particles = kernels.from_particles.bind(
            _moved(states), velocities, self._adj_velocity, _moved(adj), k, n, pieces
        )
        adj_nodes = kernels.nodes.bind(
            boundary, grid._replace(G=None), self._adj_velocity, partial, k, pieces, PARTS, size
        )
        from_grid = kernels.from_grid.bind(
            states, self._materials[b], grid.total, adj, self._adj_material[b], partial, k, counts
        )
        reduce_partial_sums = kernels.reduce_partial_sums.bind(partial, adj_rows, counts)
        reduces = self._variant.adj_environment or self._variant.adj_control

        def back(now: int, control_at: int, env_at: int, adj_rows_at: int) -> None:
            to_grid(now, control_at)
            nodes(env_at)
            from_particles(now)
            adj_nodes(env_at)
            from_grid(now, control_at)
            if reduces:
                reduce_partial_sums(adj_rows_at)

        return back

    def gradients(self) -> Arrays:
        n, width = self.model.particles, self.model.width
        for b, (mass, volume, c, *_) in enumerate(self._adj_material):
            self.sums["mass"][b] += runtime.to_host(mass, (n,))
            self.sums["volume"][b] += runtime.to_host(volume, (n,))
            adj_c = runtime.to_host(c, (n, width))
            for name, adjoint in adj_coefficients(self.model, self._take_member(self.params, b), adj_c).items():
                self.sums[name][b] += adjoint
            self._adj_material[b] = self._zero_material()
        return super().gradients()

    def _choose_variant(self) -> tuple[int, fused.Variant]:
        """Choose the number of pieces and the variant of the kernels."""
        model, chosen, needs = self.model, runtime.settings(), self.needs
        work, light = PARTICLE_US[model.dim] * model.particles, NODE_US * model.nodes
        parallel, atomic = runtime.parallel(work), chosen.on_gpu and not self.deterministic
        pieces = chosen.threads if parallel else 1
        if self.deterministic:
            pieces = PIECES if work > runtime.PARALLEL_WORK_US else 1
        if chosen.on_gpu:
            pieces = model.particles if atomic else min(GPU_PIECES, model.particles)
        return pieces, fused.Variant(
            real=runtime.real(),
            cells=model.cells,
            laws=model.laws,
            width=model.width,
            has_hidden=model.is_plastic,
            actuated=self.control is not None and model.actuators > 0,
            margin=model.margin,
            walls=model.walls,
            shapes=tuple([collider.shape for collider in model.colliders]),
            contacts=tuple([collider.contact for collider in model.colliders]),
            single=atomic or pieces == 1,
            atomic=atomic,
            parallel_particles=parallel and pieces > 1,
            parallel_nodes=runtime.parallel(light),
            block=1 if chosen.on_gpu else fused.Variant.block,
            spread=SPREAD if parallel and not chosen.on_gpu else 1,
            adj_mass="mass" in needs,
            adj_volume="volume" in needs,
            adj_coefficients=bool(needs & set(LAW_PARAMETERS)),
            adj_control="control" in needs and model.actuators > 0,
            adj_environment=bool(model.colliders) or bool(needs & {"gravity", "wall_friction"}),
        )

    @property
    def _grid_count(self) -> int:
        """Number of grids that particles add to."""
        return 1 if self._variant.single else self._pieces

    @property
    def _control_width(self) -> int:
        """Number of actuator controls in a step, including the last one, which is 0."""
        return self.model.actuators + 1 if self._variant.actuated else 1

    @cached_property
    def _workspace(self) -> Grid:
        """Workspace: the grids of the pieces, their sum, the velocities of the nodes, the boxes of the pieces."""
        model = self.model
        grid = runtime.device_array((self._grid_count * model.nodes * (model.dim + 1),))
        total = grid if self._grid_count == 1 else runtime.device_array((model.nodes * (model.dim + 1),))
        span = runtime.to_device(np.zeros(self._grid_count * 2 * model.dim, np.int32))
        return Grid(grid, total, runtime.device_array((model.nodes * model.dim,)), span)

    @cached_property
    def _adj_velocity(self) -> Any:
        return runtime.device_array((self._grid_count * self.model.nodes * self.model.dim,))

    @property
    def _constants(self) -> Constants:
        return Constants(self.model.dt, self.model.spacing, self.model.skin, self.model.mass_floor)

    def _upload_material(self, b: int, params: Arrays, c: Array, control: Array | None) -> Material:
        """Copy to the device a batch member's masses, volumes, coefficients, laws, actuators, fibres and controls.

        Given tangents of mass, volume, coefficients and control, it copies these instead.
        """
        model, real = self.model, runtime.real_dtype()
        law = np.zeros(1, np.int32) if model.law is None else model.law.astype(np.int32)
        actuator, fibre, signals = np.zeros(1, np.int32), np.zeros(1, real), np.zeros((1, 1), real)
        if self._variant.actuated:
            assert control is not None, "the variant says so"
            actuator, fibre = actuate.control_columns(model), actuate.fibres(model)
            signals = extend_control(control[b][:, : model.actuators])
        taken = params["mass"][b], params["volume"][b], c, law, actuator, fibre, signals
        return Material(*[runtime.to_device(flatten(values)) for values in taken])

    def _zero_material(self) -> Material:
        n, real = self.model.particles, runtime.real_dtype()
        return Material(*[runtime.to_device(np.zeros(size, real)) for size in (n, n, n * self.model.width)])

    def _environment_rows(self, b: int) -> EnvironmentRows:
        control = None if self.control is None else self.control[b]
        return EnvironmentRows(self.model, self._take_member(self.params, b), control)

    def _take_member(self, arrays: Arrays, b: int) -> Arrays:
        return {name: values[b] for name, values in arrays.items()}

    def _take_poses(self, segment: Segment, b: int) -> Arrays:
        return {name: values[b] for name, values in segment.poses.items()}

    def _control_offset(self, time: int) -> int:
        """Return the offset of the controls of a step."""
        return time * self._control_width if self._variant.actuated else 0


def _moved(particles: Particles) -> Particles:
    """Return position, velocity and velocity gradient alone."""
    return Particles(particles.x, particles.v, particles.C)


assert set(PARTICLE_FIELDS) | set(POSES) == set(MPM.State.names()), "a segment holds the whole state"
