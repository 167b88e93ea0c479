"""Values that a run used, beside the tables of its scene: a script may have given the scene others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.autograd.errors import InputError
from simphys.experiment.control import build_controls
from simphys.experiment.scene import Scene
from simphys.experiment.sensors import build_sensor
from simphys.experiment.setup import Setup
from simphys.experiment.summary import find_units
from simphys.experiment.values import with_values
from simphys.record import AnyRecorder, Recording, RunRecorder
from simphys.record.recording import PARAMETERS, START
from simphys.scenefile import ValueSection, flat_entries
from simphys.simulator.summary import describe_briefly

Array = np.ndarray[Any, Any]

OTHERS = "used_values"
"""Group whose attributes tell the values that are not those of the scene's tables."""


@dataclass(frozen=True)
class Departure:
    """A field whose values a run used in place of those of the scene's tables."""

    name: str
    used: Array
    told: Array | None
    """The values of the tables; None where these make no scene, or a field of another shape."""
    unit: str = ""
    experiment: int | None = None
    """Number of the experiment; None for a single one."""

    def __str__(self) -> str:
        used = describe_briefly(self.name, self.used, self.unit)
        if self.told is None:
            return used
        return f"{used} (in the tables {describe_briefly('', self.told, self.unit).strip()})"


def write_values(recorder: AnyRecorder, scene: Scene) -> None:
    """Record the parameters of a motion and its start, with the units that are known."""
    units = find_units(scene)
    for group, record in ((PARAMETERS, scene.params), (START, scene.state)):
        arrays = {name: values for name, values in record.arrays().items() if values.size}
        recorder.write(group, units={name: units[name] for name in arrays if units.get(name)}, **arrays)


def find_departures(scene: Scene) -> list[Departure]:
    """Find what a scene simulates with that its tables do not tell: parameters, start, design, controls, sensor."""
    found: list[Departure] = []
    for place, part in enumerate(scene.parts):
        own = place if scene.experiments else None
        config = scene.config if own is None else scene.config.of_experiment(own)
        found += _departures_of(part, config, own)
    return found


def _departures_of(part: Setup, config: Any, experiment: int | None) -> Iterator[Departure]:
    units, used = find_units(part), part.values()
    told = _values_of_tables(part, config)
    for name, values in used.items():
        before = told.get(name)
        if before is None or before.shape != values.shape:
            yield Departure(name, values, None, units.get(name, ""), experiment)
        elif not np.array_equal(before, values, equal_nan=True):
            yield Departure(name, values, before, units.get(name, ""), experiment)


def _values_of_tables(part: Setup, config: Any) -> dict[str, Array]:
    """Build the values anew from the tables; {} where these make no scene, such as one that a script has mended."""
    try:
        model, params, state = config.build()
        controls = None
        if config.control is not None:
            controls = build_controls(config.control, steps=part.steps, dt=config.time.dt, seen=config.observations)
        sensor = build_sensor(config.observations)
        built = Setup(
            config, model, params, state, None, part.steps, controls=controls, design=config.design(), sensor=sensor
        )
        return (with_values(built) if config.values else built).values()
    except InputError:
        return {}


def write_departures(recorder: RunRecorder, scene: Scene, departures: Sequence[Departure]) -> None:
    """Record in words which values are not those of the tables; nothing where there are none."""
    if departures:
        recorder.write(OTHERS, attrs={"values": describe_departures(scene, departures)})


def describe_departures(scene: Scene, departures: Sequence[Departure]) -> str:
    """Describe in one line what a scene simulates with that its tables do not tell; '' if that is nothing."""
    names = [part.name for part in scene.parts]
    listed = [str(each) if each.experiment is None else f"{names[each.experiment]}: {each}" for each in departures]
    return "; ".join(listed)


def read_departures(recording: Recording) -> str:
    """Read which values of a run are not those of the tables of its scene; '' if all are."""
    return str(recording.attrs(OTHERS)["values"]) if OTHERS in recording else ""


def in_words(others: str) -> str:
    """Tell values that are not those of the tables."""
    return f"Used in place of the values of the scene's tables: {others}."


def carry(departure: Departure, sections: dict[str, Any], unknown: Array) -> dict[str, Any] | None:
    """Make the section of [values] that gives a field the values that were used; None where it needs none.

    `sections`, those of [values], are overruled where they are about this field; `unknown` are the flat entries that
    a fit has found, and that have a section of their own.
    """
    shape = departure.used.shape
    told = departure.told
    chosen = np.ones(shape, bool) if told is None else np.array(told != departure.used, bool)
    for section in sections.values():
        if section["parameter"] == departure.name:
            other = ValueSection.model_validate(section).as_unknown()
            chosen.reshape(-1)[flat_entries(other, shape)] = True
    flat = chosen.reshape(-1)
    flat[unknown] = False
    if not flat.any():
        return None
    places = np.argwhere(chosen)
    entries = {} if flat.all() else {"entries": places.tolist() if len(shape) > 1 else places[:, 0].tolist()}
    return {"parameter": departure.name, **entries, "value": departure.used.reshape(-1)[flat].astype(float).tolist()}
