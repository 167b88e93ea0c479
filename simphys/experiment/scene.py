"""A scene ready to run: model, Tensors and observations from its file, and the chain from these to a loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from simphys import scenefile
from simphys.autograd import Tensor
from simphys.autograd.errors import InputError
from simphys.rollout import Mode, Trajectory
from simphys.rollout.run import Progress
from simphys.scenefile.body_names import NODES, name_bodies
from simphys.scenefile.entry_names import number_entries
from simphys.scenefile.sizes import numerical_errors_as_input_errors
from simphys.simulator.views import views

from . import misfits, observe
from .control import build_controls
from .hold_out import hold_out
from .lowpass import as_cutoff
from .objective import SceneObjective
from .observe_field import read_field_observations
from .sensors import build_sensor, count_steps
from .setup import Measurement, Setup, count_members
from .several import join_experiments
from .summary import describe_setup, setup_table
from .trajectory import compute_trajectory, stream_states, with_horizon
from .unknowns import Unknowns
from .values import with_values


@dataclass(frozen=True, repr=False)
class Scene(Setup):
    """A set-up with everything that is done with one: simulate, predict, compare, differentiate."""

    def __repr__(self) -> str:
        return describe_setup(self)

    def _repr_html_(self) -> str:
        return setup_table(self)

    def show(self) -> Any:
        """Simulate the scene in memory; a notebook shows the replay, and `.save(FILE)` writes it. Errors: BlowUp."""
        return views().show_scene(self)

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
    ) -> Any:
        """Simulate the horizon from the scene's own parameters and state, or from others; return a Trajectory.

        Of several experiments it returns a tuple, with the Trajectory of each.

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

    def losses(self, trajectory: Any) -> Tensor:
        """Compute the loss of each experiment, or of each member of a batch against the one measurement, [B]."""
        return misfits.losses_of_members(self, trajectory)

    def objective(self, unknowns: Mapping[str, Any] | None = None) -> SceneObjective[Scene]:
        """Return the loss as a function of the unknowns, for `optimize.minimize`.

        unknowns: sections by label, whose entries may be names as in a scene file; by default those of the scene.
        Errors: ConfigError, InputError.
        """
        chosen = self.config.unknowns if unknowns is None else number_entries(self.config, unknowns)
        if not chosen:
            raise InputError(
                "unknowns", "something must be unknown", "no [unknowns.NAME] section", "Name a parameter to identify."
            )
        if not self.measured and all(term.kind == "regularization" for term in self.config.loss.terms):
            raise misfits.nothing_to_minimize()
        values = [(part.name, part.values()) for part in self.experiments]
        return SceneObjective(self, Unknowns(chosen, self.values(), values))


def require_scene(source: str, scene: Any) -> None:
    """Raise InputError unless this is a scene, whose measurement, if it has one, fits its members.

    source: name of the function that takes the scene.
    """
    if not isinstance(scene, Scene):
        path = scene if isinstance(scene, str | Path) else "scene.toml"
        remedy = f"Pass simphys.load_scene({str(path)!r})."
        raise InputError(source, "takes a scene, not its path or its tables", repr(scene), remedy)
    for part in scene.parts:
        misfits.require_measured_members(part)


def load_scene(path: str | Path, overrides: Sequence[str] = ()) -> Scene:
    """Read a scene file with overrides such as `material.stiffness=5e3`, and start the runtime that it asks for.

    Errors: ConfigError with everything that is wrong in the file; InputError for observations that cannot be read, a
    time step beyond the stability limit, or a runtime that this machine cannot give.
    """
    return build_scene(scenefile.load(path, overrides))


def build_scene(config: Any) -> Scene:
    """Build a Scene from a validated config, see `load_scene`."""
    config.runtime.start()
    with numerical_errors_as_input_errors("scene"):
        return _build(config)


def _build(config: Any) -> Scene:
    if not config.experiments:
        return _build_one(config)
    each = [_build_one(config.of_experiment(place)) for place in range(len(config.experiments))]
    return join_experiments(config, each)


def _build_one(config: Any) -> Scene:
    model, params, state = config.build()
    members = count_members(model, params, state) or getattr(config.control, "members", None)
    observations = None if config.observations is None else _measurement(config, model, members)
    last = None if observations is None else float(observations.times[-1])
    steps = config.time.step_count(last_observation=last)
    if observations is not None:
        if not steps:
            constraint = "the recording must have a sample after the start of the motion, at 0"
            remedy = "Lower observations.every, widen observations.window, or correct observations.begin or time."
            raise InputError(str(observations.file), constraint, f"the last one at {last:g}", remedy)
        observations = hold_out(_within(observations, steps * config.time.dt), config.observations.validation)
    controls = None
    if config.control is not None:
        controls = build_controls(config.control, steps=steps, dt=config.time.dt, seen=config.observations)
    sensor = build_sensor(config.observations)
    scene = Scene(
        config, model, params, state, observations, steps, controls=controls, design=config.design(), sensor=sensor
    )
    if config.values:
        scene = with_values(scene)
    scene = replace(scene, steps=count_steps(scene, scene.sensor))
    filters = config.loss.lowpass or [0.0]
    misfits.require_filters(observations, filters)
    return replace(scene, targets=misfits.targets(scene), lowpass=as_cutoff(filters[-1]))


def _measurement(config: Any, model: Any, members: int | None) -> Measurement:
    """Read the measurement of a section. Errors: InputError for files that cannot be read or do not fit."""
    given, shapes = config.observations, model.state_shapes()
    names = name_bodies(config)
    if given.field is not None:
        field = read_field_observations(
            given.file,
            field=given.field,
            shapes=shapes,
            members=members,
            sigma=given.sigma or 1.0,
            unit=given.unit or "",
            missing=given.missing,
            part=given.part(),
            dt=config.time.dt,
        )
        return field
    lead = () if members is None else (members,)
    columns = observe.read(
        given.file,
        time=0 if given.time is None else given.time,
        channels=given.channels,
        missing=given.missing,
        shapes={name: (*lead, *shape) for name, shape in shapes.items()},
        markers=None if members else model.describe_markers(),
        names=NODES if members else names,
        part=given.part(),
        dt=config.time.dt,
        trial=None if given.trials is None else (given.trials, given.trial),
    )
    return columns


def _within(observations: Any, end: float) -> Any:
    """Keep the samples up to the end of the horizon [s]. Errors: InputError if there are none."""
    found = observations.until(end * (1 + 1e-9))
    if not len(found.times):
        text = f"the first sample at {observations.times[0]:g}, the end of the horizon at {end:g}"
        remedy = "Raise time.duration, leave it out, or set observations.window."
        raise InputError(f"observations of {observations.file}", "the horizon must reach a sample", text, remedy)
    return found
