"""A scene ready to run: topology, Tensors and observations from its file, and the chain from these to a loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import config as scene_files
from . import losses, mass_spring, observe, rollout, sampling
from .autograd import Tensor, runtime
from .autograd.errors import InputError
from .mass_spring import Params, State, Topology, Trajectory

if TYPE_CHECKING:
    from .objective import SceneObjective

STATE_FIELDS = ("position", "velocity")


@dataclass(frozen=True)
class Scene:
    """A simulator with its parameters, initial state, horizon and, where there is one, a measurement."""

    config: Any
    """The validated scene file."""
    topology: Topology
    params: Params
    state: State
    observations: observe.Observations | None
    steps: int
    """Length of the horizon in time steps."""
    partial: bool = False
    """Whether the horizon was cut short, so that terms about its end do not count."""

    @property
    def dt(self) -> float:
        """Time step [s]."""
        return self.topology.dt

    def rollout(
        self,
        params: Params | None = None,
        state: State | None = None,
        *,
        mode: rollout.Mode = "fused",
        keep_adjoint: bool = False,
    ) -> Trajectory:
        """Simulate the horizon, from the scene's own parameters and state or from others."""
        return rollout.rollout(
            self.topology,
            params or self.params,
            state or self.state,
            steps=self.steps,
            mode=mode,
            keep_adjoint=keep_adjoint,
        )

    def predict(self, trajectory: Trajectory) -> Tensor:
        """What the measurement's channels would have seen at its times, [N, C]."""
        seen = self.observations
        if seen is None:
            raise InputError("Scene.predict", "the scene needs observations", "none", "Add the section [observations].")
        components = [(STATE_FIELDS.index(c.field), c.node, c.axis) for c in seen.channels]
        plan = sampling.plan(seen.times, components, dt=self.dt, steps=self.steps)
        return sampling.Sample.apply(plan, trajectory.position, trajectory.velocity)

    def residuals(self, trajectory: Trajectory) -> list[Tensor]:
        """The whitened residuals of observations and loss terms; the loss is half the sum of all their squares."""
        made = []
        chosen = self.config.loss
        if self.observations is not None:
            misfit = losses.misfit(self.predict(trajectory), self.observations.values, self.observations.weights)
            made.append(losses.huber(misfit, chosen.delta) if chosen.kind == "huber" else misfit)
        for term in chosen.terms:
            if term.kind == "final_state" and not self.partial:
                made.append(
                    losses.mean_square(
                        self._nodes(getattr(trajectory.final, term.field), term), self._target(term), term.weight
                    )
                )
            elif term.kind == "running_sum":
                states = self._nodes(getattr(trajectory, term.field), term)
                made.append(losses.running_sum(states[1:], np.asarray(term.target), term.weight, self.dt))
        return made

    def loss(self, trajectory: Trajectory) -> Tensor:
        """The scalar that is minimized, without the terms about the unknowns themselves."""
        residuals = self.residuals(trajectory)
        if not residuals:
            raise _nothing_to_minimize()
        return losses.total(residuals)

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
        """Every parameter field and state component by name."""
        return {name: value.data for part in (self.params, self.state) for name, value in vars(part).items()}

    def _nodes(self, states: Tensor, term: Any) -> Tensor:
        return states[..., self._rows(term), :]

    def _target(self, term: Any) -> Tensor | np.ndarray[Any, Any]:
        if term.target is not None:
            return np.asarray(term.target, float)
        # The start may be unknown itself: the gradient flows through it on this way, too.
        return self._nodes(self.state.position, term) + np.asarray(term.target_offset, float)

    def _rows(self, term: Any) -> Any:
        """The nodes of a loss term; by default all but the fixed points of anchors."""
        return slice(0, self.topology.nodes - self.topology.anchors) if term.nodes is None else np.asarray(term.nodes)


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
    observations = None
    if (given := config.observations) is not None:
        observations = observe.read(given.file, time=given.time, channels=given.channels, missing=given.missing)
    topology, params, state = mass_spring.build(config)
    last = None if observations is None else float(observations.times[-1])
    steps = config.time.step_count(last_observation=last)
    scene = Scene(config, topology, params, state, observations, steps)
    _check_channels(scene)
    return scene


def _nothing_to_minimize() -> InputError:
    remedy = "Add [observations], or [[loss.terms]] about the motion."
    return InputError("loss", "a loss needs observations or terms", "neither", remedy)


def _check_channels(scene: Scene) -> None:
    for position, channel in enumerate(scene.observations.channels if scene.observations else ()):
        who = f"observations.channels.{position}"
        if channel.field not in STATE_FIELDS:
            raise InputError(
                f"{who}.field", f"a channel sees one of {STATE_FIELDS}", channel.field, "Choose one of these."
            )
        shape = scene.state.position.shape
        if channel.node >= shape[0] or channel.axis >= shape[1]:
            raise InputError(
                who,
                f"node is below {shape[0]} and axis below {shape[1]}",
                f"node {channel.node}, axis {channel.axis}",
                "Correct the channel.",
            )
