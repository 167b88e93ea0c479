"""Checks within the section of controls, and between it and the simulator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from simphys.scenefile.control import (
    ControlSection,
    KnotsSection,
    PatternSection,
    RecordedSection,
    SinesSection,
    WaveletSection,
)
from simphys.scenefile.section import Key, Problem, Words

_SECTION: Key = ("control",)


def check_control(control: ControlSection, channels: int | None) -> Iterator[Problem]:
    """Collect all problems; `channels` values drive a step of the simulator, None if it takes no control."""
    inside = list(_check_inside(control))
    yield from inside
    found = Words(f"a section of kind {control.kind}")
    if channels is None:
        remedy = "Drop the section, or add what it is to drive, such as an actuator."
        yield Problem(key=_SECTION, constraint="needs a simulator that takes a control", found=found, remedy=remedy)
    elif not inside:
        if isinstance(control, KnotsSection):
            name, wanted, count = "value", f"must have rows of {channels} numbers", len(control.value[0])
        else:
            name = {"pattern": "waves", "recorded": "columns"}.get(control.kind, "channels")
            wanted, count = f"must be {channels}", control.channels
        if count != channels:
            if isinstance(control, RecordedSection):
                wanted = f"must name {channels}"
            constraint = f"{wanted}, which drive a step of this scene's simulator"
            remedy = f"Give {channels}, or change what is driven."
            yield Problem(key=(*_SECTION, name), constraint=constraint, found=count, remedy=remedy)


def _check_inside(control: ControlSection) -> Iterator[Problem]:
    if isinstance(control, PatternSection):
        return iter(())
    if isinstance(control, RecordedSection):
        return _check_recorded(control)
    if isinstance(control, SinesSection):
        return _check_sines(control)
    return _check_knots(control) if isinstance(control, KnotsSection) else _check_wavelet(control)


def _check_sines(control: SinesSection) -> Iterator[Problem]:
    channels = control.channels
    if isinstance(control.amplitude, list):
        yield from _check_length("amplitude", control.amplitude, channels, "channel")
    if control.bias is not None:
        yield from _check_length("bias", control.bias, channels, "channel")
    if control.weight is not None:
        yield from _check_length("weight", control.weight, channels, "channel")
        for channel, row in enumerate(control.weight):
            yield from _check_length("weight", row, control.waves, "wave", channel)


def _check_recorded(control: RecordedSection) -> Iterator[Problem]:
    for name in ("gain", "offset", "delay"):
        if isinstance(values := getattr(control, name), list):
            yield from _check_length(name, values, control.channels, "column")
    if (control.trials is None) != (control.trial is None):
        found = Words("trials" if control.trial is None else "trial")
        yield Problem(
            key=_SECTION, constraint="needs both trials and trial, or none", found=found, remedy="Give the other one."
        )


def _check_knots(control: KnotsSection) -> Iterator[Problem]:
    for knot, row in enumerate(control.value):
        yield from _check_length("value", row, len(control.value[0]), "channel of the first knot", knot)


def _check_wavelet(control: WaveletSection) -> Iterator[Problem]:
    if isinstance(control.amplitude, list):
        rows = [row for row in control.amplitude if isinstance(row, list)]
        for member, row in enumerate(rows):
            yield from _check_length("amplitude", row, control.channels, "channel", member)
        if not rows:
            yield from _check_length("amplitude", control.amplitude, control.channels, "channel")


def _check_length(name: str, value: Sequence[Any], count: int, what: str, *place: int) -> Iterator[Problem]:
    if len(value) != count:
        constraint = f"must have {count} elements, one for each {what}"
        remedy = f"It has {len(value)}: give {count}."
        yield Problem(key=(*_SECTION, name, *place), constraint=constraint, found=value, remedy=remedy)
