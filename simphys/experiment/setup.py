"""A set-up: the plain data of a scene, on which rollouts, misfits and objectives are functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from simphys.autograd import Tensor
from simphys.scenefile.body_names import given_names, name_bodies
from simphys.simulator import Record, Units
from simphys.simulator.bodies import Bodies
from simphys.simulator.grids import Grid

from .control import Controls
from .observe import Observations
from .observe_field import FieldObservations

Measurement = Observations | FieldObservations


@dataclass(frozen=True, repr=False)
class Setup:
    """A simulator with its parameters, initial state, horizon and measurement, if any: plain data.

    Parameters and state may have a leading axis of members: experiments in the same medium that run at once.
    """

    config: Any
    """The validated scene file."""
    model: Any
    """The simulator, a `simulator.Model`: everything without a gradient."""
    params: Any
    """Parameters, of the model's class Params."""
    state: Any
    """Initial state, of the model's class State."""
    observations: Measurement | None
    steps: int
    """Length of the horizon in time steps."""
    partial: bool = False
    """True if the horizon was cut short, so that terms about its end do not count."""
    controls: Controls | None = None
    """Control signals along time, if the scene has any."""
    design: Record | None = None
    """Numbers from which some parameters follow, if the scene has a design."""
    targets: Mapping[int, np.ndarray[Any, Any]] = field(default_factory=dict)
    """Targets of loss terms that come from files, by the index of the term."""
    lowpass: float | None = None
    """Cutoff frequency of misfits to a measured field [Hz]; None: no filter."""
    sensor: Any = None
    """Numbers of the measured channels that may be unknown."""
    experiments: tuple[Any, ...] = ()
    """The set-ups of several recordings, which this one joins; empty for a single one."""
    name: str = ""
    """Name of an experiment."""

    @property
    def parts(self) -> tuple[Any, ...]:
        """The set-ups with a motion and a measurement of their own: the experiments, or this one alone."""
        return self.experiments or (self,)

    @property
    def measured(self) -> bool:
        """True if there is a measurement."""
        return any(part.observations is not None for part in self.parts)

    def start_runtime(self) -> None:
        """Put the arch, precision and threads of the scene file in force, for which its Tensors were made.

        Simulating a scene does this by itself. Errors: InputError for an arch that this machine lacks.
        """
        self.config.runtime.start()

    @property
    def units(self) -> Units:
        """Units of length and time that the scene states."""
        return Units(self.config.units.length, self.config.units.time)

    @property
    def dt(self) -> float:
        """Time step [s]."""
        return float(self.model.dt)

    @cached_property
    def members(self) -> int | None:
        """Number of members; None for a single experiment."""
        found = count_members(self.model, self.params, self.state)
        if found is None and self.controls is not None:
            signal = self.controls.signal(1)
            found = signal.shape[0] if signal.ndim > len(self.model.control_shape() or ()) + 1 else None
        return found

    def moving_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each field of the moving state, with a leading axis of members if there are any."""
        lead = () if self.members is None else (self.members,)
        return {name: (*lead, *shape) for name, shape in self.model.state_shapes().items()}

    @property
    def bodies(self) -> Bodies | None:
        """The bodies of the state, if it consists of some."""
        found: Bodies | None = self.model.describe_bodies(self.params.arrays())
        if found is None:
            return None
        names = given_names(self.config) or found.names
        if name_bodies(self.config).given:  # names of bodies rather than of pieces of material
            names += (None,) * (len(found.pinned) - len(names))
        return replace(found, names=names)

    @property
    def grid(self) -> Grid | None:
        """The grid of the state, if it consists of fields on one."""
        found: Grid | None = self.model.describe_grid()
        return found

    def control(self) -> Tensor | None:
        """Compute the control of each step of the horizon, [T, A], from `controls`."""
        if self.controls is None:
            return None
        self.start_runtime()
        return self.controls.signal(self.steps)

    def values(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return all parameters, state fields, design numbers and control numbers by name."""
        records = [self.params, self.state, self.design, self.controls, self.sensor]
        return {n: values for record in records if record is not None for n, values in record.arrays().items()}


def count_members(model: Any, params: Any, state: Any) -> int | None:
    """Count the members that parameters and state have; None if no field has an axis of members."""
    for record, shapes in ((state, model.state_shapes()), (params, model.param_shapes())):
        for name, shape in shapes.items():
            if getattr(record, name).ndim > len(shape):
                return int(getattr(record, name).shape[0])
    return None
