"""A scene ready to run: model, Tensors and observations from its file, and the chain from these to a loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import config as scene_files
from . import density, losses, observe, rollout, sampling, terms
from .autograd import Tensor, ops, runtime
from .autograd.errors import InputError
from .bodies import Bodies
from .control import Controls, build_controls
from .grids import Grid
from .rollout import Mode, Trajectory
from .rollout.run import Progress
from .rollout.trajectory import Running

if TYPE_CHECKING:
    from .objective import SceneObjective


@dataclass(frozen=True)
class Scene:
    """A simulator with its parameters, initial state, horizon and, where there is one, a measurement."""

    config: Any
    """The validated scene file."""
    model: Any
    """The simulator with all that no gradient flows to, a `simulator.Model`."""
    params: Any
    """Its Params."""
    state: Any
    """Its State at the start."""
    observations: observe.Observations | None
    steps: int
    """Length of the horizon in time steps."""
    partial: bool = False
    """Whether the horizon was cut short, so that terms about its end do not count."""
    controls: Controls | None = None
    """What drives the simulator along time, where the scene says so."""
    densities: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    """Targets of terms about the density at the end, [cells], by file."""

    @property
    def dt(self) -> float:
        """Time step [s]."""
        return float(self.model.dt)

    @property
    def bodies(self) -> Bodies | None:
        """The bodies of a simulator whose state has some."""
        bodies: Bodies | None = self.config.bodies_of(self.model)
        return bodies

    @property
    def grid(self) -> Grid | None:
        """The grid of a simulator whose state is fields on one."""
        grid: Grid | None = self.config.grid_of(self.model)
        return grid

    def control(self) -> Tensor | None:
        """The control of each step of the horizon [T, A], as a function of `controls`."""
        return None if self.controls is None else self.controls.signal(self.steps)

    def rollout(
        self,
        params: Any = None,
        state: Any = None,
        *,
        mode: Mode = "fused",
        keep_adjoint: bool = False,
        on_progress: Progress | None = None,
    ) -> Trajectory:
        """Simulate the horizon, from the scene's own parameters and state or from others.

        With a limit on memory (runtime.memory) a fused trajectory holds the states that observations look at, and its
        `running` is what loss terms sum along time; otherwise it holds every state. Errors: BlowUp.
        """
        chosen = self.config.runtime
        budget: dict[str, Any] = {}
        if mode == "fused" and chosen.limited:
            budget = {"memory": chosen.memory, "keep": self.kept_steps(), "running": self._running()}
        return rollout.rollout(
            self.model,
            params or self.params,
            state or self.state,
            steps=self.steps,
            control=self.control(),
            mode=mode,
            keep_adjoint=keep_adjoint,
            deterministic=chosen.deterministic,
            on_progress=on_progress,
            **budget,
        )

    def stream(self, *, block: int, on_progress: Progress | None = None) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Simulate the horizon without gradients, in blocks of steps: see `rollout.stream`."""
        return rollout.stream(
            self.model,
            self.params,
            self.state,
            steps=self.steps,
            block=block,
            control=self.control(),
            deterministic=self.config.runtime.deterministic,
            on_progress=on_progress,
        )

    def kept_steps(self) -> Any:
        """The steps whose states a trajectory needs for predictions; "final" where it needs none."""
        times = self.observations.times if self.observations is not None else np.zeros(0)
        needed = sampling.steps_around(times, dt=self.dt, steps=self.steps)
        return needed if len(needed) else "final"

    def sampling_plan(self, kept: np.ndarray[Any, Any] | None = None) -> sampling.SamplePlan:
        """How the channels see a motion of which these steps are kept; fields go by their place in the state."""
        seen = self.observations
        if seen is None:
            raise InputError("Scene.predict", "the scene needs observations", "none", "Add the section [observations].")
        names = self.state.names()
        components = [(names.index(channel.field), channel.component) for channel in seen.channels]
        return sampling.plan(seen.times, components, dt=self.dt, steps=self.steps, kept=kept)

    def require_stable(self) -> None:
        """Raise InputError where the time step is beyond the stability limit with the scene's present values."""
        self.config.require_stable(self.model, self.params, self.state)

    def predict(self, trajectory: Trajectory) -> Tensor:
        """What the measurement's channels would have seen at its times, [N, C]."""
        plan = self.sampling_plan(trajectory.steps)
        return sampling.Sample.apply(plan, *trajectory.states.tensors())

    def residuals(self, trajectory: Trajectory) -> list[Tensor]:
        """The whitened residuals of observations and loss terms; the loss is half the sum of all their squares.

        Errors: InputError for sums along time of a trajectory within a limit on memory, which holds only their value.
        """
        sums = self._terms("running_sum")
        if sums and trajectory.running is not None:
            raise InputError(
                "loss",
                "residuals of sums along time need every state",
                f"runtime.memory = {self.config.runtime.memory!r}",
                'Use optimizer.method = "lbfgs" on the full horizon, or runtime.memory = "all".',
            )
        return [*self._residuals(trajectory), *[self._sum_along(trajectory, term, slice(1, None)) for term in sums]]

    def loss(self, trajectory: Trajectory) -> Tensor:
        """The scalar that is minimized, without the terms about the unknowns themselves."""
        if trajectory.running is None:
            residuals = self.residuals(trajectory)
            if not residuals:
                raise _nothing_to_minimize()
            return losses.total(residuals)
        residuals = self._residuals(trajectory)
        return losses.total(residuals) + trajectory.running if residuals else trajectory.running

    def _residuals(self, trajectory: Trajectory) -> list[Tensor]:
        """Those of observations and of terms about the end."""
        made = []
        chosen = self.config.loss
        if self.observations is not None:
            misfit = losses.misfit(self.predict(trajectory), self.observations.values, self.observations.weights)
            made.append(losses.huber(misfit, chosen.delta) if chosen.kind == "huber" else misfit)
        for term in [] if self.partial else self._terms(*terms.AT_END):
            if term.kind == "final_density":
                made.append(self._density_misfit(trajectory.final, term))
                continue
            form = losses.square_of_mean if term.kind == "final_mean" else losses.mean_square
            made.append(form(*self._seen(trajectory.final, term), term.weight))
        return made

    def _density_misfit(self, state: Any, term: Any) -> Tensor:
        """Residuals of a term about the density, one for each cell."""
        cells = density.Cells(tuple(term.cells), term.spacing, tuple(term.origin or [0.0] * len(term.cells)))
        found = density.Density.apply(cells, state.position, self.params.mass)
        return losses.mean_square(ops.reshape(found, (-1, 1)), self.densities[term.file].reshape(-1, 1), term.weight)

    def _running(self) -> Running | None:
        """The terms that are sums along time as a function of states along time."""
        sums = self._terms("running_sum")
        if not sums:
            return None
        return lambda states, steps: losses.total([self._sum_along(states, term, slice(None)) for term in sums])

    def _sum_along(self, states: Any, term: Any, rows: slice) -> Tensor:
        """The residuals of a sum along time over some rows of states along time."""
        seen, target = self._seen(states, term)
        return losses.running_sum(seen[rows], target, term.weight, self.dt)

    def _terms(self, *kinds: str) -> list[Any]:
        return [term for term in self.config.loss.terms if term.kind in kinds]

    def objective(self, unknowns: Mapping[str, Any] | None = None) -> SceneObjective:
        """The loss as a function of the scene's unknowns, for `optimize.minimize`. Errors: ConfigError, InputError."""
        from .objective import SceneObjective
        from .unknowns import Unknowns

        chosen = self.config.unknowns if unknowns is None else unknowns
        if not chosen:
            raise InputError(
                "unknowns", "something must be unknown", "no [unknowns.NAME] section", "Name a parameter to identify."
            )
        if self.observations is None and all(term.kind == "regularization" for term in self.config.loss.terms):
            raise _nothing_to_minimize()
        return SceneObjective(self, Unknowns(chosen, self.values()))

    def values(self) -> dict[str, np.ndarray[Any, Any]]:
        """Every parameter field, state component and part of the controls by name."""
        records = [self.params, self.state, *([] if self.controls is None else [self.controls])]
        return {name: values for record in records for name, values in record.arrays().items()}

    def _seen(self, states: Any, term: Any) -> tuple[Tensor, Tensor | np.ndarray[Any, Any]]:
        """The part of a state, or of states along time, that a loss term looks at, and its target."""
        start = getattr(self.state, term.field)
        part = terms.part(term, start.shape, self.bodies)
        seen = part.of(getattr(states, term.field))
        if term.kind == "final_state" and term.target is None:
            # The start may be unknown itself: the gradient flows through it on this way, too.
            return seen, part.of(start) + part.target(term.target_offset)
        if term.kind == "final_mean":
            return seen, np.asarray(term.target, float)
        return seen, part.target(term.target)


def load_scene(path: str | Path, overrides: Sequence[str] = ()) -> Scene:
    """Read a scene file with overrides such as `material.stiffness=5e3`, and start the runtime that it asks for.

    Errors: ConfigError with everything that is wrong in the file; InputError for observations that cannot be read, a
    time step beyond the stability limit, or a runtime that this process or machine cannot give.
    """
    return build_scene(scene_files.load(path, overrides))


def build_scene(config: Any) -> Scene:
    """A Scene from a validated config, see `load_scene`."""
    chosen = config.runtime
    runtime.init(arch=chosen.arch, precision=chosen.precision, threads=chosen.threads)
    model, params, state = config.build()
    observations = None
    if (given := config.observations) is not None:
        observations = observe.read(
            given.file,
            time=given.time,
            channels=given.channels,
            missing=given.missing,
            shapes=model.state_shapes(),
        )
    last = None if observations is None else float(observations.times[-1])
    steps = config.time.step_count(last_observation=last)
    controls = None if config.control is None else build_controls(config.control, steps=steps, dt=config.time.dt)
    targets = {
        term.file: density.read(term.file, tuple(term.cells))
        for term in config.loss.terms
        if term.kind == "final_density"
    }
    return Scene(config, model, params, state, observations, steps, controls=controls, densities=targets)


def _nothing_to_minimize() -> InputError:
    remedy = "Add [observations], or [[loss.terms]] about the motion."
    return InputError("loss", "a loss needs observations or terms", "neither", remedy)
