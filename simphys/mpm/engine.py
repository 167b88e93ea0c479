"""`MPMEngine`: the fused loops of one rollout over arrays, see `simphys.simulator.Engine`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ..array_engine import ArrayEngine
from ..autograd import runtime
from ..simulator import Array, Arrays
from . import actuate, environment, fused, fused_adjoint
from .arrays import flat, flat_or_one
from .constitutive import OF_LAWS, adj_coefficients, coefficients
from .model import MPM

PIECES = 4
"""Into how many pieces particles are shared out where results must not depend on the number of threads."""

PARTS = 16
"""Into how many parts the lines of nodes are."""

SPREAD = 512
"""A parallel loop of so many iterations or fewer stays on one thread of a CPU: loops take as many for each piece."""

PARTICLE_US = {2: 0.015, 3: 0.06}
"""Serial cost [us] of a particle in the lightest loop over particles, by dimension."""

NODE_US = 0.004
"""Serial cost [us] of a node."""

POSES = ("collider_position", "collider_rotation")


class MPMEngine(ArrayEngine):
    """The rollout of a batch of material-point simulations, member by member: each fills the threads by itself."""

    model: MPM

    def __init__(self, model: MPM, params: Arrays, control: Array | None, **options: Any) -> None:
        super().__init__(model, params, control, **options)
        real, chosen = runtime.real_dtype(), runtime.settings()
        self._coefficients = np.stack([coefficients(model, self._member(self.params, b)) for b in range(self.batch)])
        self._adj_coefficients = np.zeros_like(self._coefficients)
        self._pieces, self._variant = self._plan()
        self._law = np.zeros(1, np.int32) if model.law is None else model.law.astype(np.int32)
        self._actuator, self._fibre = np.zeros(1, np.int32), np.zeros(1, real)
        self._signals = np.zeros((self.batch, 1, 1), real)
        if self._variant.actuated:
            assert self.control is not None, "the variant says so"
            self._actuator, self._fibre = actuate.columns(model), flat(actuate.fibres(model))
            self._signals = np.ascontiguousarray(actuate.extended(self.control[..., : model.actuators]))
        grids = 1 if chosen.on_gpu else self._pieces
        self._grid = np.zeros(grids * model.nodes * (model.dim + 1), real)
        self._total = self._grid if grids == 1 else np.zeros(model.nodes * (model.dim + 1), real)
        self._velocity = np.zeros(model.nodes * model.dim, real)
        self._adj_velocity = np.zeros(grids * model.nodes * model.dim, real)
        self._span = np.zeros(grids * 2 * model.dim, np.int32)

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        """See `Engine`: states, sums and grids, the running adjoint, surroundings and what `found` holds."""
        model = self.model
        row = sum(math.prod(shape) for shape in model.state_shapes().values())
        grids = (self._grid, self._velocity, self._adj_velocity, *([] if self._total is self._grid else [self._total]))
        numbers = row + steps * (2 * environment.size(model) + model.actuators + 1)
        fixed = sum(array.nbytes for array in (*grids, self._coefficients, self._adj_coefficients))
        return super().segment_bytes(steps, dense=dense) + numbers * runtime.real_dtype().itemsize + fixed

    def advance(self, segment: Arrays, *, first: int, start: int, steps: int) -> None:
        """See `Engine`."""
        model = self.model
        for b in range(self.batch):
            rows, _, _ = self._surroundings(segment, b, first=first, start=start, steps=steps)
            kernel = fused.forward_kernel(self._variant)
            launch = kernel.bind(
                *self._states(segment, b), *self._material(b), flat(rows), *self._grids(), *self._constants(), math.nan,
                model.particles, self._pieces, PARTS, b * model.particles,
            )  # fmt: skip
            for row in range(steps):
                launch(start + row, self._signal_at(b, first + start + row), row * rows.shape[1])

    def pull(self, segment: Arrays, *, first: int, steps: int, adjoint: Arrays) -> None:
        """See `Engine`."""
        for b in range(self.batch):
            self._pull_member(segment, b, first, steps, adjoint)

    def gradients(self) -> Arrays:
        """See `Engine`."""
        for b in range(self.batch):
            found = adj_coefficients(self.model, self._member(self.params, b), self._adj_coefficients[b])
            for name in OF_LAWS:
                self.sums[name][b] += found[name]
        self._adj_coefficients[:] = 0
        return super().gradients()

    def _pull_member(self, segment: Arrays, b: int, first: int, steps: int, adjoint: Arrays) -> None:
        model, dense = self.model, adjoint["position"].shape[1] > 1
        rows, velocity, spin = self._surroundings(segment, b, first=first, start=0, steps=steps)
        running = {name: np.ascontiguousarray(values[b, -1]) for name, values in adjoint.items()}
        of_particles = [flat_or_one(running[name]) for name in running if name not in POSES]
        variant, size, controls = self._variant, rows.shape[1], self._signals.shape[-1]
        found = np.zeros((steps, size + controls), rows.dtype)
        partial = np.zeros(PARTS * size + self._pieces_or_one * controls, rows.dtype)
        launch = fused_adjoint.adjoint_kernel(variant).bind(
            *self._states(segment, b), *self._material(b), flat(rows), *self._grids(), self._adj_velocity,
            *of_particles, flat(self.sums["mass"]), flat(self.sums["volume"]), flat(self._adj_coefficients),
            partial, flat(found), *self._constants(), model.particles, self._pieces, PARTS, size, controls,
            b * model.particles,
        )  # fmt: skip
        for row in reversed(range(steps)):
            launch(row, self._signal_at(b, first + row), row * size, row * found.shape[1])
            if dense:
                for name, values in running.items():
                    if name not in POSES:
                        values += adjoint[name][b, row]
                        adjoint[name][b, row] = values
        if not dense:
            for name, values in running.items():
                adjoint[name][b, 0] = values
        self._add(found, b, first, steps)

    def _surroundings(
        self, segment: Arrays, b: int, *, first: int, start: int, steps: int
    ) -> tuple[Array, Array, Array]:
        """See `environment.along`."""
        poses = {name: segment[name][b, start : start + steps] for name in POSES}
        control = None if self.control is None else self.control[b]
        params = self._member(self.params, b)
        return environment.along(self.model, params, poses, control, first=first + start, steps=steps)

    def _add(self, found: Array, b: int, first: int, steps: int) -> None:
        """What reached surroundings and controls of the steps, last to first, to the sums."""
        where = environment.parts(self.model)
        for row in reversed(range(steps)):
            for name in ("gravity", "wall_friction", "collider_friction"):
                if name in self.needs:
                    self.sums[name][b] += found[row, where[name]].reshape(self.sums[name][b].shape)
        if self._variant.adj_control:
            size = environment.size(self.model)
            self.sums["control"][b, first : first + steps, : self.model.actuators] += found[:, size:-1]

    def _plan(self) -> tuple[int, fused.Variant]:
        """How many pieces, and the variant of the kernels."""
        model, chosen, needs = self.model, runtime.settings(), self.needs
        work, light = PARTICLE_US[model.dim] * model.particles, NODE_US * model.nodes
        parallel = runtime.parallel(work)
        pieces = chosen.threads if parallel else 1
        if self.deterministic:
            pieces = PIECES if work > runtime.PARALLEL_WORK_US else 1
        if chosen.on_gpu:
            pieces = model.particles
        adj_environment = bool(needs & {"gravity", "wall_friction", "collider_friction"}) or bool(model.colliders)
        return pieces, fused.Variant(
            real=runtime.real(),
            cells=model.cells,
            laws=model.laws,
            width=model.width,
            hidden=model.is_plastic,
            actuated=self.control is not None and model.actuators > 0,
            margin=model.margin,
            walls=model.walls,
            shapes=tuple(collider.shape for collider in model.colliders),
            contacts=tuple(collider.contact for collider in model.colliders),
            single=chosen.on_gpu or pieces == 1,
            atomic=chosen.on_gpu,
            parallel_particles=parallel and pieces > 1,
            parallel_nodes=runtime.parallel(light),
            block=1 if chosen.on_gpu else fused.Variant.block,
            spread=SPREAD if parallel and not chosen.on_gpu else 1,
            adj_mass="mass" in needs,
            adj_volume="volume" in needs,
            adj_coefficients=bool(needs & set(OF_LAWS)),
            adj_control="control" in needs and model.actuators > 0,
            adj_environment=adj_environment,
        )

    @property
    def _pieces_or_one(self) -> int:
        return 1 if self._variant.atomic else self._pieces

    def _member(self, arrays: Arrays, b: int) -> Arrays:
        return {name: values[b] for name, values in arrays.items()}

    def _states(self, segment: Arrays, b: int) -> list[Array]:
        """What kernels take of the states of particles."""
        return [flat_or_one(values[b]) for name, values in segment.items() if name not in POSES]

    def _material(self, b: int) -> list[Array]:
        return [
            flat(self.params["mass"]), flat(self.params["volume"]), flat(self._coefficients), self._law,
            self._actuator, self._fibre, flat(self._signals),
        ]  # fmt: skip

    def _grids(self) -> list[Array]:
        sizes = np.asarray(environment.sizes(self.model), runtime.real_dtype())
        return [sizes, self._grid, self._total, self._velocity, self._span]

    def _constants(self) -> tuple[float, ...]:
        return self.model.dt, self.model.spacing, self.model.skin, self.model.mass_floor

    def _signal_at(self, b: int, time: int) -> int:
        """Where the controls of a step begin."""
        _, steps, width = self._signals.shape
        return (b * steps + time) * width if self._variant.actuated else 0
