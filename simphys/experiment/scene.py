"""A scene ready to run: model, Tensors and observations from its file, and the chain from these to a loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simphys import rollout
from simphys import scenefile as scene_files
from simphys.autograd import Tensor, runtime
from simphys.autograd.errors import InputError
from simphys.rollout import Mode, Trajectory
from simphys.rollout.run import Progress
from simphys.rollout.trajectory import Running
from simphys.simulator import Record
from simphys.simulator.bodies import Bodies
from simphys.simulator.grids import Grid

from . import losses, misfits, observe
from .control import Controls, build_controls
from .lowpass import as_cutoff
from .members import members_of
from .observe_field import FieldObservations, read_field_observations

if TYPE_CHECKING:
    from .objective import SceneObjective

Measurement = observe.Observations | FieldObservations


@dataclass(frozen=True)
class Scene:
    """A simulator with its parameters, initial state, horizon and, where there is one, a measurement.

    Parameters and state may have an axis of members in front, experiments that run at once in the same medium.
    """

    config: Any
    """The validated scene file."""
    model: Any
    """The simulator with all that no gradient flows to, a `simulator.Model`."""
    params: Any
    """Its Params."""
    state: Any
    """Its State at the start."""
    observations: Measurement | None
    steps: int
    """Length of the horizon in time steps."""
    partial: bool = False
    """Whether the horizon was cut short, so that terms about its end do not count."""
    controls: Controls | None = None
    """What drives the simulator along time, where the scene says so."""
    design: Record | None = None
    """Numbers that some of the parameters follow from, where the scene says so."""
    targets: Mapping[int, np.ndarray[Any, Any]] = field(default_factory=dict)
    """Targets of terms of the loss that come from files, by the term's place."""
    lowpass: float | None = None
    """Up to about such a frequency [Hz] misfits to a measured field count; None: all."""

    @property
    def dt(self) -> float:
        """Time step [s]."""
        return float(self.model.dt)

    @cached_property
    def members(self) -> int | None:
        """How many experiments run at once; None where the scene is one."""
        found = members_of(self.model, self.params, self.state)
        if found is None and self.controls is not None:
            signal = self.controls.signal(1)
            found = signal.shape[0] if signal.ndim > len(self.model.control_shape() or ()) + 1 else None
        return found

    def moving_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each field of the state as it moves: with the members in front, if there are any."""
        lead = () if self.members is None else (self.members,)
        return {name: (*lead, *shape) for name, shape in self.model.state_shapes().items()}

    @property
    def bodies(self) -> Bodies | None:
        """The bodies of a simulator whose state has some."""
        found: Bodies | None = self.model.describe_bodies(self.params.arrays())
        return found

    @property
    def grid(self) -> Grid | None:
        """The grid of a simulator whose state is fields on one."""
        found: Grid | None = self.model.describe_grid()
        return found

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
        only_seen: bool = False,
        on_progress: Progress | None = None,
    ) -> Trajectory:
        """Simulate the horizon, from the scene's own parameters and state or from others.

        With a limit on memory (runtime.memory) a fused trajectory holds the states that observations look at, and its
        `running` is what loss terms sum along time; otherwise it holds every state, or, with `only_seen`, those that
        the loss looks at. Errors: BlowUp.
        """
        chosen = self.config.runtime
        budget: dict[str, Any] = {}
        if mode == "fused" and (chosen.limited or (only_seen and not misfits.terms_of(self, "running_sum"))):
            budget = {
                "memory": chosen.memory,
                "keep": self.kept_steps(),
                "fields": misfits.seen_fields(self),
                "running": self._running(),
            }
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
        return misfits.kept_steps(self)

    def require_stable(self) -> None:
        """Raise InputError where the time step is beyond the stability limit with the scene's present values."""
        self.config.require_stable(self.model, self.params, self.state)

    def predict(self, trajectory: Trajectory) -> Tensor:
        """What the measurement would have seen at its times: of channels [N, C], of a field what `values` are."""
        return misfits.predicted(self, trajectory)

    def residuals(self, trajectory: Trajectory) -> list[Tensor]:
        """The whitened residuals of observations and loss terms; the loss is half the sum of all their squares.

        Errors: InputError for sums along time of a trajectory within a limit on memory, which holds only their value.
        """
        sums = misfits.terms_of(self, "running_sum")
        if sums and trajectory.running is not None:
            raise InputError(
                "loss",
                "residuals of sums along time need every state",
                f"runtime.memory = {self.config.runtime.memory!r}",
                'Use optimizer.method = "lbfgs" on the full horizon, or runtime.memory = "all".',
            )
        along = [misfits.along(self, trajectory.states, term, slice(1, None)) for term in sums]
        return [*misfits.of_observations_and_end(self, trajectory), *along]

    def loss(self, trajectory: Trajectory) -> Tensor:
        """The scalar that is minimized, without the terms about the unknowns themselves."""
        if trajectory.running is None:
            residuals = self.residuals(trajectory)
            if not residuals:
                raise _nothing_to_minimize()
            return losses.total(residuals)
        residuals = misfits.of_observations_and_end(self, trajectory)
        return losses.total(residuals) + trajectory.running if residuals else trajectory.running

    def _running(self) -> Running | None:
        """The terms that are sums along time as a function of states along time."""
        sums = misfits.terms_of(self, "running_sum")
        if not sums:
            return None
        return lambda states, steps: losses.total([misfits.along(self, states, term, slice(None)) for term in sums])

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
        """Every parameter field, state component, and part of a design and of the controls by name."""
        records = [self.params, self.state, self.design, self.controls]
        return {n: values for record in records if record is not None for n, values in record.arrays().items()}


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
    members = members_of(model, params, state)
    observations = None if config.observations is None else _measurement(config.observations, model, members)
    last = None if observations is None else float(observations.times[-1])
    steps = config.time.step_count(last_observation=last)
    controls = None if config.control is None else build_controls(config.control, steps=steps, dt=config.time.dt)
    scene = Scene(config, model, params, state, observations, steps, controls=controls, design=config.design())
    filters = config.loss.lowpass or [0.0]
    misfits.require_filters(observations, filters)
    return replace(scene, targets=misfits.targets(scene), lowpass=as_cutoff(filters[-1]))


def _measurement(given: Any, model: Any, members: int | None) -> Measurement:
    """The measurement of a section. Errors: InputError for what cannot be read or does not fit."""
    shapes = model.state_shapes()
    if given.field is not None:
        return read_field_observations(
            given.file,
            field=given.field,
            shapes=shapes,
            members=members,
            sigma=given.sigma or 1.0,
            unit=given.unit or "",
            missing=given.missing,
        )
    lead = () if members is None else (members,)
    return observe.read(
        given.file,
        time=0 if given.time is None else given.time,
        channels=given.channels,
        missing=given.missing,
        shapes={name: (*lead, *shape) for name, shape in shapes.items()},
    )


def _nothing_to_minimize() -> InputError:
    remedy = "Add [observations], or [[loss.terms]] about the motion."
    return InputError("loss", "a loss needs observations or terms", "neither", remedy)
