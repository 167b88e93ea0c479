"""A scene ready to run: model, Tensors and observations from its file, and the chain from these to a loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from simphys import scenefile
from simphys.autograd import Tensor, runtime
from simphys.autograd.errors import InputError
from simphys.rollout import Mode, Trajectory
from simphys.rollout.run import Progress

from . import misfits, observe
from .control import build_controls
from .lowpass import as_cutoff
from .objective import SceneObjective
from .observe_field import read_field_observations
from .setup import Measurement, Setup, count_members
from .trajectory import compute_trajectory, stream_states, with_horizon
from .unknowns import Unknowns


@dataclass(frozen=True)
class Scene(Setup):
    """A set-up with everything that is done with one: simulate, predict, compare, differentiate."""

    def rollout(
        self,
        params: Any = None,
        state: Any = None,
        *,
        steps: int | None = None,
        mode: Mode = "fused",
        keep_adjoint: bool = False,
        only_seen: bool = False,
        on_progress: Progress | None = None,
    ) -> Trajectory:
        """Simulate the horizon from the scene's own parameters and state, or from others.

        `steps` is another horizon. Beyond the scene's own, a control of knots keeps its last value. The loss and
        predictions of such a trajectory exist only as far as it holds what they need, else they raise InputError.
        Within a memory limit (runtime.memory) a fused trajectory holds the states that observations need, and its
        `running` is the sum of loss terms along time. Otherwise it holds every state, or, with `only_seen`, those that
        the loss needs. Errors: BlowUp.
        """
        setup = self if steps is None else with_horizon(self, steps)
        return compute_trajectory(
            setup, params, state, mode=mode, keep_adjoint=keep_adjoint, only_seen=only_seen, on_progress=on_progress
        )

    def stream(self, *, block: int, on_progress: Progress | None = None) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Simulate the horizon without gradients, in blocks of steps: see `rollout.stream`."""
        return stream_states(self, block=block, on_progress=on_progress)

    def kept_steps(self) -> Any:
        """Return the steps whose states predictions need; "final" if they need none."""
        return misfits.kept_steps(self)

    def require_stable(self) -> None:
        """Raise InputError if the time step exceeds the stability limit with the scene's present values."""
        self.config.require_stable(self.model, self.params, self.state)

    def predict(self, trajectory: Trajectory) -> Tensor:
        """Predict the measurement at its times: channels as [N, C], a field in the shape of its `values`."""
        return misfits.predict(self, trajectory)

    def residuals(self, trajectory: Trajectory) -> list[Tensor]:
        """Compute the whitened residuals of observations and loss terms; the loss is half the sum of their squares.

        Errors: InputError for sums along time if the trajectory was computed within a memory limit.
        """
        return misfits.residuals(self, trajectory)

    def loss(self, trajectory: Trajectory) -> Tensor:
        """Compute the loss, a scalar, without the terms about the unknowns themselves."""
        return misfits.loss(self, trajectory)

    def objective(self, unknowns: Mapping[str, Any] | None = None) -> SceneObjective[Scene]:
        """Return the loss as a function of the unknowns, for `optimize.minimize`. Errors: ConfigError, InputError."""
        chosen = self.config.unknowns if unknowns is None else unknowns
        if not chosen:
            raise InputError(
                "unknowns", "something must be unknown", "no [unknowns.NAME] section", "Name a parameter to identify."
            )
        if self.observations is None and all(term.kind == "regularization" for term in self.config.loss.terms):
            raise misfits.nothing_to_minimize()
        return SceneObjective(self, Unknowns(chosen, self.values()))


def load_scene(path: str | Path, overrides: Sequence[str] = ()) -> Scene:
    """Read a scene file with overrides such as `material.stiffness=5e3`, and start the runtime that it asks for.

    Errors: ConfigError with everything that is wrong in the file; InputError for observations that cannot be read, a
    time step beyond the stability limit, or a runtime that this machine cannot give.
    """
    return build_scene(scenefile.load(path, overrides))


def build_scene(config: Any) -> Scene:
    """Build a Scene from a validated config, see `load_scene`."""
    chosen = config.runtime
    runtime.init(arch=chosen.arch, precision=chosen.precision, threads=chosen.threads)
    model, params, state = config.build()
    members = count_members(model, params, state)
    observations = None if config.observations is None else _measurement(config.observations, model, members)
    last = None if observations is None else float(observations.times[-1])
    steps = config.time.step_count(last_observation=last)
    controls = None if config.control is None else build_controls(config.control, steps=steps, dt=config.time.dt)
    scene = Scene(config, model, params, state, observations, steps, controls=controls, design=config.design())
    filters = config.loss.lowpass or [0.0]
    misfits.require_filters(observations, filters)
    return replace(scene, targets=misfits.targets(scene), lowpass=as_cutoff(filters[-1]))


def _measurement(given: Any, model: Any, members: int | None) -> Measurement:
    """Read the measurement of a section. Errors: InputError for files that cannot be read or do not fit."""
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
