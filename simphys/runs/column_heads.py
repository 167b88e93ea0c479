"""Heads of the columns of a run's numbers along time: what each number is, and its unit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from simphys.experiment.channels import component_name
from simphys.record import Recording
from simphys.scenefile.body_names import FIELDS_OF_BODIES, name_bodies

STATE = re.compile(r"(?:.*/)?(?P<group>particles/nodes|fields|adjoint)/(?P<field>\w+?)(?:/value)?")
SAMPLES = re.compile(r"(?P<before>.*/)?(?:observations/(?:value|weight|validation_weight)|fit/(?:predicted|residual))")


def head_columns(recording: Recording, path: str) -> list[str]:
    """Name each number of a dataset along time, such as 'position x of cart [m]', or a channel by its label."""
    shape = recording.shape(path)[1:]
    unit = str(recording.attrs(path).get("unit", ""))
    if (found := SAMPLES.fullmatch(path)) and len(shape) == 1:
        return list(_name_channels(recording, f"{found['before'] or ''}observations", path.endswith("weight")))
    if found := STATE.fullmatch(path):
        return [_with_unit(name, unit) for name in _name_components(recording, found["group"], found["field"], shape)]
    name = path.rpartition("/")[2]
    return [_with_unit(f"{name}{list(index) if index else ''}", unit) for index in np.ndindex(shape)]


def _name_channels(recording: Recording, group: str, is_weight: bool) -> Iterator[str]:
    about: Any = recording.attrs(group)
    for label, unit in zip(about["labels"], about["units"], strict=True):
        yield f"weight of {label}" if is_weight else _with_unit(str(label), str(unit))


def _name_components(recording: Recording, group: str, field: str, shape: tuple[int, ...]) -> Iterator[str]:
    bodies = name_bodies(recording.scene)
    of_bodies = group == "particles/nodes" or (group == "adjoint" and f"particles/nodes/{field}" in recording)
    if field in FIELDS_OF_BODIES.get(bodies.word, ()):
        of_bodies = bodies.word == "body" or len(shape) == 1  # links of several members have their axis first
    for index in np.ndindex(shape):
        yield component_name(field, index, shape, bodies if of_bodies else None)


def _with_unit(name: str, unit: str) -> str:
    return f"{name} [{unit}]" if unit else name
