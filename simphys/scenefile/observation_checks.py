"""Checks within the section of observations, and between it and the state."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simphys.scenefile.fit_sections import ObservationsSection, component_index
from simphys.scenefile.loss_sections import LossSection
from simphys.scenefile.section import NOTHING, Fields, Key, Problem, Words
from simphys.scenefile.validate import did_you_mean


def check_observations(observations: ObservationsSection) -> Iterator[Problem]:
    """Check the section by itself."""
    key: Key = ("observations",)
    if (observations.channels is None) == (observations.field is None):
        found = NOTHING if observations.field is None else Words("both")
        constraint = "needs channels, or the field that the file holds whole"
        yield Problem(key=key, constraint=constraint, found=found, remedy="Give exactly one of channels and field.")
    elif observations.field is None:
        for name, given in (("sigma", observations.sigma), ("unit", observations.unit)):
            if given is not None:
                remedy = "Give it in each channel."
                yield Problem(key=(*key, name), constraint="belongs to a whole field", found=given, remedy=remedy)
    elif observations.time is not None:
        remedy = "Drop it, and call the dataset of times `time`."
        yield Problem(key=(*key, "time"), constraint="belongs to channels", found=observations.time, remedy=remedy)


def check_lowpass(loss: LossSection, observations: ObservationsSection | None, *, growing: bool) -> Iterator[Problem]:
    """Check stages by frequency; `growing` is true if there are stages by horizon."""
    stages = loss.lowpass
    if stages is None:
        return
    key: Key = ("loss", "lowpass")
    filters = stages if 0 < stages[-1] < np.inf else stages[:-1]
    if not all(0 < low < high for low, high in zip(filters, [*filters[1:], np.inf], strict=True)):
        constraint = "must be frequencies that increase; the last one may be 0 or inf, for no filter"
        yield Problem(key=key, constraint=constraint, found=stages, remedy="Sort them, low ones first.")
    if observations is None or observations.field is None:
        remedy = "Drop it, or give observations.field."
        yield Problem(key=key, constraint="needs observations of a whole field", found=stages, remedy=remedy)
    if growing:
        remedy = 'Use optimizer.horizon = "full", or drop this.'
        constraint = "must not go with a growing horizon, which makes stages of its own"
        yield Problem(key=key, constraint=constraint, found=stages, remedy=remedy)


def check_seen(observations: ObservationsSection, fields: Fields) -> Iterator[Problem]:
    """Check that the state has the measured components."""
    if observations.field is not None:
        if observations.field not in fields.state:
            yield unknown_field(("observations", "field"), observations.field, fields)
        return
    for position, channel in enumerate(observations.channels or []):
        key: Key = ("observations", "channels", position)
        if channel.field not in fields.state:
            yield unknown_field((*key, "field"), channel.field, fields)
            continue
        shape = fields.moving_shape(channel.field)
        index = component_index(channel.node, channel.axis, shape)
        if len(index) != len(shape):
            constraint = f"must be the indices of a component of {channel.field}, which has the shape {list(shape)}"
            remedy = "Give as many indices as it has axes."
            yield Problem(key=(*key, "node"), constraint=constraint, found=channel.node, remedy=remedy)
            continue
        for place, (at, size) in enumerate(zip(index, shape, strict=True)):
            is_axis = place == len(shape) - 1 and len(shape) > np.size(channel.node)
            yield from check_index((*key, "axis" if is_axis else "node"), at, "axis" if is_axis else "node", size)


def check_index(key: Key, index: int, what: str, count: int) -> Iterator[Problem]:
    """Check that a node, or an axis, of this index exists."""
    if index >= count:
        constraint = f"must be the index of one of {count} {'axes' if what == 'axis' else what + 's'}, counted from 0"
        remedy = f"Give an index from 0 to {count - 1}."
        yield Problem(key=key, constraint=constraint, found=index, remedy=remedy)


def unknown_field(key: Key, field: str, fields: Fields) -> Problem:
    """Report a name that is no field of the state."""
    remedy = did_you_mean(field, list(fields.state))
    return Problem(key=key, constraint="must be a component of the state", found=field, remedy=remedy)
