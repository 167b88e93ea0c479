"""`MPMEngine`, the fused loops of one rollout over arrays; see `simphys.simulator.Engine`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Array, Arrays
from simphys.simulator.actuators import extend_control
from simphys.simulator.array_engine import ArrayEngine

from . import actuate, environment, fused, fused_adjoint, fused_tangent, grid
from .arrays import flat
from .constitutive import OF_LAWS, adj_coefficients, coefficients, jvp_coefficients
from .model import MPM
from .segment import OF_PARTICLES, POSES, Running, Segment
from .surroundings import Surroundings

PIECES = 4
"""Number of pieces that particles are divided into if results must not depend on the number of threads."""
GPU_PIECES = 32
"""Number of pieces on a GPU if results must be reproducible. Each piece has one thread: slow, but sums in order."""

PARTS = 16
"""Number of parts that the lines of nodes are divided into."""

SPREAD = 512
"""Loop iterations for each piece of work. A CPU runs a parallel loop of at most 512 iterations on one thread, so each
piece has this many iterations, one of which does the work."""

PARTICLE_US = {2: 0.015, 3: 0.06}
"""Serial cost [us] of a particle in the cheapest loop over particles, for each dimension."""

NODE_US = 0.004
"""Serial cost [us] of a node."""


class MPMEngine(ArrayEngine):
    """The rollout of a batch of material-point simulations, one batch member at a time; each uses all threads."""

    model: MPM

    def __init__(self, model: MPM, params: Arrays, control: Array | None, **options: Any) -> None:
        super().__init__(model, params, control, **options)
        self._pieces, self._variant = self._plan()
        self._coefficients = np.stack([coefficients(model, self._member(self.params, b)) for b in range(self.batch)])
        self._members = [self._material(b, self.params, self._coefficients[b], self.control) for b in range(self.batch)]
        self._adj_material = [self._zero_material() for _ in range(self.batch)]
        self._sizes = runtime.to_device(grid.sizes(model))

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        model = self.model
        row = sum(math.prod(shape) for shape in model.state_shapes().values())
        grids = self._grids * model.nodes * (2 * model.dim + 1) + model.nodes * (2 * model.dim + 1)
        material = 2 * self.batch * model.particles * (2 + model.width)
        copies = self.batch * row * (steps + 1) if dense and runtime.settings().on_gpu else 0
        numbers = row + grids + material + copies + steps * (2 * environment.size(model) + self._controls)
        return super().segment_bytes(steps, dense=dense) + numbers * runtime.real_dtype().itemsize

    def segment(self, steps: int) -> Segment:  # type: ignore[override]
        return Segment(self.model, self.batch, steps + 1)

    def load(self, segment: Segment, state: Arrays) -> None:  # type: ignore[override]
        segment.load(state)

    def read(self, segment: Segment, rows: slice | list[int]) -> Arrays:  # type: ignore[override]
        return segment.read(rows)

    def advance(self, segment: Segment, *, first: int, start: int, steps: int) -> None:
        for b in range(self.batch):
            rows = self._surroundings(b).move(self._poses(segment, b), first=first, start=start, steps=steps)
            step = self._step(segment, b, rows)
            for row in range(steps):
                step(start + row, self._signal_at(first + start + row), row * rows.shape[1])

    def pull(self, segment: Segment, *, first: int, steps: int, adjoint: Arrays) -> None:
        for b in range(self.batch):
            around, poses, running = self._surroundings(b), self._poses(segment, b), Running(adjoint, b)
            rows = around.rows(poses, first=first, steps=steps)
            size, width = rows.shape[1], rows.shape[1] + self._controls
            found = runtime.to_device(np.zeros(steps * width, rows.dtype))
            partial = np.zeros(PARTS * size + self._grids * self._controls, rows.dtype)
            back = self._back(segment, b, rows, running, runtime.to_device(partial), found)
            for row in reversed(range(steps)):
                back(row, self._signal_at(first + row), row * size, row * width)
                running.reach(row)
            running.finish()
            told = runtime.to_host(found, (steps, width))
            sums = {name: self.sums[name][b, ...] for name in self.needs}  # views, of scalars too
            of_poses = {name: adjoint[name][b] for name in POSES}
            around.pull(poses, told[:, :size], of_poses, sums, first=first, steps=steps)
            if self._variant.adj_control:
                sums["control"][first : first + steps, : self.model.actuators] += told[:, size:-1]

    def push(self, segment: Segment, *, first: int, steps: int, tangent: Arrays) -> Arrays:  # type: ignore[override]
        model, moved = self.model, self.segment(steps)
        moved.load(tangent)
        kernels = fused_tangent.kernels(replace(self._variant.forward, single=True))
        G, _, U, span = self._working
        dG, dU = (runtime.device_array((model.nodes * width,)) for width in (model.dim + 1, model.dim))
        h, dx, skin, floor = self._constants
        n = model.particles
        for b in range(self.batch):
            poses, around = self._poses(segment, b), self._surroundings(b)
            given = self._member(self.tangents, b)
            drows = around.push(poses, self._poses(moved, b), given, first=first, steps=steps)
            rows = around.rows(poses, first=first, steps=steps)
            env, denv = (runtime.to_device(flat(values)) for values in (rows, drows))
            dc = jvp_coefficients(model, self._member(self.params, b), given)
            dmass, dvolume, dc_, *_, dcontrol = self._material(
                b, self.tangents, dc, None if self.control is None else self.tangents["control"]
            )
            x, v, C, F, q = segment.particles[b]
            tx, tv, tC, tF, tq = moved.particles[b]
            to_grid = kernels.to_grid.bind(
                x, v, C, F, q, *self._members[b], G, span, tx, tv, tC, tF, tq, dmass, dvolume, dc_, dcontrol, dG,
                h, dx, n,
            )  # fmt: skip
            nodes = kernels.nodes.bind(env, denv, self._sizes, G, dG, U, dU, span, h, dx, skin, floor)
            to_particles = kernels.to_particles.bind(x, U, tx, tv, tC, dU, h, dx, n)
            for row in range(steps):
                to_grid(row, self._signal_at(first + row))
                nodes(row * rows.shape[1])
                to_particles(row)
        return moved.read(slice(steps + 1))

    def _step(self, segment: Segment, b: int, rows: Array) -> Callable[[int, int, int], None]:
        """Bind step(now, control_at, env_at) of batch member b.

        The step leads from row `now` of its states to the next. control_at and env_at are the offsets of its controls
        and of its row of `rows`.
        """
        kernels, around = fused.kernels(self._variant.forward), runtime.to_device(flat(rows))
        x, v, C, F, q = segment.particles[b]
        G, total, U, span = self._working
        h, dx, skin, floor = self._constants
        n, pieces = self.model.particles, self._pieces
        to_grid = kernels.to_grid.bind(x, v, C, F, q, *self._members[b], G, span, h, dx, n, pieces)
        nodes = kernels.nodes.bind(around, self._sizes, G, total, U, span, h, dx, skin, floor, pieces, PARTS)
        to_particles = kernels.to_particles.bind(x, v, C, U, h, dx, math.nan, n, pieces)

        def step(now: int, control_at: int, env_at: int) -> None:
            to_grid(now, control_at)
            nodes(env_at)
            to_particles(now)

        return step

    def _back(
        self, segment: Segment, b: int, rows: Array, running: Running, partial: Any, found: Any
    ) -> Callable[[int, int, int, int], None]:
        """Bind the reverse of `step`; a fourth argument, found_at, is the offset of its results in `found`."""
        again, kernels = fused.kernels(self._variant.forward), fused_adjoint.kernels(self._variant)
        around, size = runtime.to_device(flat(rows)), rows.shape[1]
        x, v, C, F, q = segment.particles[b]
        G, total, U, span = self._working
        h, dx, skin, floor = self._constants
        n, pieces = self.model.particles, self._pieces
        to_grid = again.to_grid.bind(x, v, C, F, q, *self._members[b], G, span, h, dx, n, pieces)
        nodes = again.nodes.bind(around, self._sizes, G, total, U, span, h, dx, skin, floor, pieces, PARTS)
        from_particles = kernels.from_particles.bind(
            x, U, span, self._adj_velocity, *running.arrays[:3], h, dx, n, pieces
        )
        adj_nodes = kernels.nodes.bind(
            around, self._sizes, total, U, span, self._adj_velocity, partial, h, dx, skin, floor, pieces, PARTS, size
        )
        from_grid = kernels.from_grid.bind(
            x, v, C, F, q, *self._members[b], total, *running.arrays, *self._adj_material[b], partial,
            h, dx, n, pieces, PARTS, size, self._controls,
        )  # fmt: skip
        tell = kernels.tell.bind(partial, found, pieces, PARTS, size, self._controls)
        tells = self._variant.adj_environment or self._variant.adj_control

        def back(now: int, control_at: int, env_at: int, found_at: int) -> None:
            to_grid(now, control_at)
            nodes(env_at)
            from_particles(now)
            adj_nodes(env_at)
            from_grid(now, control_at)
            if tells:
                tell(found_at)

        return back

    def gradients(self) -> Arrays:
        n, width = self.model.particles, self.model.width
        for b, (mass, volume, c) in enumerate(self._adj_material):
            self.sums["mass"][b] += runtime.to_host(mass, (n,))
            self.sums["volume"][b] += runtime.to_host(volume, (n,))
            adj_c = runtime.to_host(c, (n, width))
            for name, found in adj_coefficients(self.model, self._member(self.params, b), adj_c).items():
                self.sums[name][b] += found
            self._adj_material[b] = self._zero_material()
        return super().gradients()

    def _plan(self) -> tuple[int, fused.Variant]:
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
            hidden=model.is_plastic,
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
            adj_coefficients=bool(needs & set(OF_LAWS)),
            adj_control="control" in needs and model.actuators > 0,
            adj_environment=bool(model.colliders) or bool(needs & {"gravity", "wall_friction"}),
        )

    @property
    def _grids(self) -> int:
        """Number of grids that particles add to."""
        return 1 if self._variant.single else self._pieces

    @property
    def _controls(self) -> int:
        """Number of actuator controls in a step, including the last one, which is 0."""
        return self.model.actuators + 1 if self._variant.actuated else 1

    @cached_property
    def _working(self) -> tuple[Any, Any, Any, Any]:
        """Workspace: the grids of the pieces, their sum, the velocities of the nodes, the boxes of the pieces."""
        model = self.model
        grid = runtime.device_array((self._grids * model.nodes * (model.dim + 1),))
        total = grid if self._grids == 1 else runtime.device_array((model.nodes * (model.dim + 1),))
        span = runtime.to_device(np.zeros(self._grids * 2 * model.dim, np.int32))
        return grid, total, runtime.device_array((model.nodes * model.dim,)), span

    @cached_property
    def _adj_velocity(self) -> Any:
        return runtime.device_array((self._grids * self.model.nodes * self.model.dim,))

    @property
    def _constants(self) -> tuple[float, ...]:
        return self.model.dt, self.model.spacing, self.model.skin, self.model.mass_floor

    def _material(self, b: int, params: Arrays, c: Array, control: Array | None) -> list[Any]:
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
        return [runtime.to_device(flat(values)) for values in taken]

    def _zero_material(self) -> list[Any]:
        n, real = self.model.particles, runtime.real_dtype()
        return [runtime.to_device(np.zeros(size, real)) for size in (n, n, n * self.model.width)]

    def _surroundings(self, b: int) -> Surroundings:
        return Surroundings(self.model, self._member(self.params, b), None if self.control is None else self.control[b])

    def _member(self, arrays: Arrays, b: int) -> Arrays:
        return {name: values[b] for name, values in arrays.items()}

    def _poses(self, segment: Segment, b: int) -> Arrays:
        return {name: values[b] for name, values in segment.poses.items()}

    def _signal_at(self, time: int) -> int:
        """Return the offset of the controls of a step."""
        return time * self._controls if self._variant.actuated else 0


assert set(OF_PARTICLES) | set(POSES) == set(MPM.State.names()), "a segment holds the whole state"
