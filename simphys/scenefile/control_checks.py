"""Checks within the section of controls, and between it and the simulator."""

from __future__ import annotations

from collections.abc import Iterator

from simphys.scenefile.control import (
    ControlSection,
    KnotsSection,
    PatternSection,
    RecordedSection,
    SinesSection,
    WaveletSection,
)
from simphys.scenefile.section import Key, Problem, Words
from simphys.scenefile.shared import check_length

_SECTION: Key = ("control",)


def check_control(control: ControlSection, channels: int | None) -> Iterator[Problem]:
    """Collect all problems; `channels` values drive a step of the simulator, None if it takes no control."""
    inside = list(_check_inside(control))
    yield from inside
    found = Words(f"a section of kind {control.kind}")
    if channels is None:
        remedy = "Drop the section, or add what it is to drive, such as an actuator."
        yield Problem(_SECTION, "needs a simulator that takes a control", found, remedy)
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
            yield Problem((*_SECTION, name), constraint, count, f"Give {channels}, or change what is driven.")


def _check_inside(control: ControlSection) -> Iterator[Problem]:
    if isinstance(control, PatternSection):
        return iter(())
    if isinstance(control, RecordedSection):
        return _check_recorded(control)
    if isinstance(control, SinesSection):
        return _check_sines(control)
    return _check_knots(control) if isinstance(control, KnotsSection) else _check_wavelet(control)


def _check_sines(control: SinesSection) -> Iterator[Problem]:
    for name in ("amplitude", "bias", "weight"):
        yield from check_length((*_SECTION, name), getattr(control, name), control.channels, "channel")
    for channel, row in enumerate(control.weight or []):
        yield from check_length((*_SECTION, "weight", channel), row, control.waves, "wave")


def _check_recorded(control: RecordedSection) -> Iterator[Problem]:
    for name in ("gain", "offset", "delay"):
        yield from check_length((*_SECTION, name), getattr(control, name), control.channels, "column")
    if (control.trials is None) != (control.trial is None):
        found = Words("trials" if control.trial is None else "trial")
        yield Problem(_SECTION, "needs both trials and trial, or none", found, "Give the other one.")


def _check_knots(control: KnotsSection) -> Iterator[Problem]:
    for knot, row in enumerate(control.value):
        yield from check_length((*_SECTION, "value", knot), row, len(control.value[0]), "channel of the first knot")


def _check_wavelet(control: WaveletSection) -> Iterator[Problem]:
    if isinstance(control.amplitude, list):
        rows = [row for row in control.amplitude if isinstance(row, list)]
        for member, row in enumerate(rows):
            yield from check_length((*_SECTION, "amplitude", member), row, control.channels, "channel")
        if not rows:
            yield from check_length((*_SECTION, "amplitude"), control.amplitude, control.channels, "channel")
