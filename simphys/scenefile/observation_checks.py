"""Checks within the section of observations, and between it and the state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from simphys.scenefile.fit_sections import CameraSection, ChannelSection, ObservationsSection, component_index
from simphys.scenefile.loss_sections import LossSection
from simphys.scenefile.section import DERIVED, NOTHING, Fields, Key, Problem, Words
from simphys.scenefile.shared import check_index
from simphys.scenefile.validate import did_you_mean
from simphys.simulator.markers import ENERGIES, Markers


def check_observations(observations: ObservationsSection) -> Iterator[Problem]:
    """Check the section by itself."""
    key: Key = ("observations",)
    if (observations.channels is None) == (observations.field is None):
        found = NOTHING if observations.field is None else Words("both")
        constraint = "needs channels, or the field that the file holds whole"
        yield Problem(key, constraint, found, "Give exactly one of channels and field.")
    elif observations.field is None:
        for name, given in (("sigma", observations.sigma), ("unit", observations.unit)):
            if given is not None:
                yield Problem((*key, name), "belongs to a whole field", given, "Give it in each channel.")
    elif observations.time is not None:
        remedy = "Drop it, and call the dataset of times `time`."
        yield Problem((*key, "time"), "belongs to channels", observations.time, remedy)
    if observations.camera is not None:
        yield from _check_kind(observations.camera)
    yield from _check_part(observations)


def _check_part(observations: ObservationsSection) -> Iterator[Problem]:
    """Check which samples of a file count."""
    key: Key = ("observations",)
    window = observations.window
    if window is not None and not window[0] < window[1]:
        constraint = "must be two times, the first one before the second"
        yield Problem((*key, "window"), constraint, window, "Exchange or correct them.")
    if (observations.trials is None) != (observations.trial is None):
        name, other = ("trial", "trials") if observations.trial is None else ("trials", "trial")
        remedy = f"Add observations.{name}, or drop observations.{other}."
        constraint = "trials, the column that numbers them, and trial, a number, go together"
        yield Problem((*key, name), constraint, NOTHING, remedy)
    elif observations.trials is not None and observations.field is not None:
        remedy = "Drop it, and give each experiment a file."
        yield Problem((*key, "trials"), "belongs to channels", observations.trials, remedy)


def check_noise(observations: ObservationsSection, loss: LossSection) -> Iterator[Problem]:
    """Check that the noise is stated, or that residuals tell it."""
    for position, channel in enumerate(observations.channels or []):
        if channel.relative and not isinstance(channel.sigma, float):
            constraint = "needs sigma, the noise of a sample of value 0, as a number"
            key: Key = ("observations", "channels", position, "relative")
            yield Problem(key, constraint, channel.relative, "State sigma, or drop it.")
        if channel.sigma == "unknown" and loss.kind != "squares":
            constraint = 'must be a number unless loss.kind is "squares"'
            remedy = "State the noise: robust losses need it to tell outliers."
            key = ("observations", "channels", position, "sigma")
            yield Problem(key, constraint, channel.sigma, remedy)
        if channel.correlation_time == "unknown" and loss.kind != "squares":
            constraint = 'must be a number unless loss.kind is "squares"'
            remedy = "State it, or drop it: the likelihood that it is estimated by is that of a normal noise."
            key = ("observations", "channels", position, "correlation_time")
            yield Problem(key, constraint, channel.correlation_time, remedy)


def check_lowpass(loss: LossSection, observations: ObservationsSection | None, *, growing: bool) -> Iterator[Problem]:
    """Check stages by frequency; `growing` is true if there are stages by horizon."""
    stages = loss.lowpass
    if stages is None:
        return
    key: Key = ("loss", "lowpass")
    filters = stages[:-1] if stages[-1] in (0.0, np.inf) else stages
    if not all(0 < low < high for low, high in pairwise((*filters, np.inf))):
        constraint = "must be frequencies that increase; the last one may be 0 or inf, for no filter"
        yield Problem(key, constraint, stages, "Sort them, low ones first.")
    if observations is None or observations.field is None:
        yield Problem(key, "needs observations of a whole field", stages, "Drop it, or give observations.field.")
    if growing:
        remedy = 'Use optimizer.horizon = "full", or drop this.'
        yield Problem(key, "must not go with a growing horizon, which makes stages of its own", stages, remedy)


def check_seen(observations: ObservationsSection, fields: Fields) -> Iterator[Problem]:
    """Check that the state has the measured components."""
    if observations.field is not None:
        if observations.field not in fields.state:
            yield unknown_field(("observations", "field"), observations.field, fields)
        return
    for position, channel in enumerate(observations.channels or []):
        key: Key = ("observations", "channels", position)
        if channel.field in ENERGIES:
            yield from _check_energy(key, channel, fields)
            continue
        shape = fields.seen_shape(channel.field)
        if shape is None:
            places = fields.places()
            if fields.members is not None and channel.field in DERIVED:
                constraint = "must be a component of the state, or an energy, where a scene has several members"
                remedy = "Write the members as [[experiments]], each with its control and its observations."
                yield Problem((*key, "field"), constraint, channel.field, remedy)
                continue
            also = (*DERIVED, *places.energies) if places else ()
            yield unknown_field((*key, "field"), channel.field, fields, also=also)
            continue
        yield from _check_place(key, channel, fields)
        if channel.node == [] and shape:
            yield Problem(
                key=(*key, "node"), constraint="is missing", found=NOTHING, remedy="Name a node by its index."
            )
            continue
        if channel.kind in ("difference", "sum"):
            yield from _check_pair(key, channel, shape)
            continue
        if channel.kind != "component":
            yield from _check_geometry(key, channel, observations.camera, shape, fields.places())
            continue
        index = component_index(channel.node, channel.axis, shape)
        if len(index) != len(shape):
            constraint = f"must be the indices of a component of {channel.field}, which has the shape {list(shape)}"
            yield Problem((*key, "node"), constraint, channel.node, "Give as many indices as it has axes.")
            continue
        for place, (at, size) in enumerate(zip(index, shape, strict=True)):
            is_axis = place == len(shape) - 1 and len(shape) > np.size(channel.node)
            yield from check_index((*key, "axis" if is_axis else "node"), at, "axis" if is_axis else "node", size)


def _check_place(key: Key, channel: ChannelSection, fields: Fields) -> Iterator[Problem]:
    """Check the place of a marker on its body."""
    place, markers = channel.place, fields.places()
    if place is None or markers is None:
        if place is not None:
            yield Problem((*key, "place"), "needs bodies", place, "Drop it, and name a node.")
        return
    if channel.field not in DERIVED:
        constraint = 'belongs to the field "marker" or "acceleration"'
        yield Problem((*key, "place"), constraint, place, "Name one of these, or drop it.")
    elif not markers.place_sizes:
        constraint = "needs bodies that turn, or links; these bodies are points"
        yield Problem((*key, "place"), constraint, place, "Drop it, and name a node.")
    elif len(place) not in markers.place_sizes:
        sizes = " or ".join(map(str, markers.place_sizes))
        plural = "" if sizes == "1" else "s"
        constraint = f"must be {sizes} coordinate{plural} in the frame of the body or link"
        yield Problem((*key, "place"), constraint, place, f"Give a list of {sizes}.")


def _check_energy(key: Key, channel: ChannelSection, fields: Fields) -> Iterator[Problem]:
    """Check a channel that sees an energy of all bodies together, in a scene of several members of those of one."""
    markers = fields.marked_bodies()
    if markers is None or channel.field not in markers.energies:
        yield _unknown_energy((*key, "field"), channel.field, markers)
        return
    yield from _check_place(key, channel, fields)
    if channel.kind != "component":
        constraint, remedy = "an energy is a number, of all bodies together", "Drop kind."
        yield Problem(key=(*key, "kind"), constraint=constraint, found=channel.kind, remedy=remedy)
    if fields.members is not None and not isinstance(channel.node, int):
        constraint = f"must be one of the {fields.members} members, whose bodies have the energy"
        found = NOTHING if channel.node == [] else channel.node
        yield Problem((*key, "node"), constraint, found, f"Give an index from 0 to {fields.members - 1}.")
    elif fields.members is not None and isinstance(channel.node, int):
        yield from check_index((*key, "node"), channel.node, "member", fields.members)
    elif channel.node != []:
        constraint, remedy = "an energy is that of all bodies together", "Drop node."
        yield Problem(key=(*key, "node"), constraint=constraint, found=channel.node, remedy=remedy)
    for name, unused in (("axis", 0), ("to", None), ("point", None), ("modulo", None)):
        if (given := getattr(channel, name)) != unused:
            constraint = "has no meaning for an energy, which is a number, of all bodies together"
            yield Problem(key=(*key, name), constraint=constraint, found=given, remedy=f"Drop {name}.")


def _unknown_energy(key: Key, name: str, markers: Markers | None) -> Problem:
    """Report an energy that the scene does not have, and tell which ones it has."""
    if markers is not None and markers.in_moving_frame:
        constraint = "needs the velocity of the pivot, of which the control gives the acceleration alone"
        return Problem(key, constraint, name, "Name a component of the state, or a marker.")
    known = markers.energies if markers else ()
    remedy = f"Name {' or '.join(known)}." if known else "Name a component of the state."
    return Problem(key, "an energy that is known of the bodies of this scene", name, remedy)


def _check_pair(key: Key, channel: ChannelSection, shape: tuple[int, ...]) -> Iterator[Problem]:
    """Check a channel that sees a component of two nodes."""
    if len(shape) not in (1, 2) or not isinstance(channel.node, int):
        constraint = f"of the kind {channel.kind} needs a number or a vector of each node"
        found = Words(f"{channel.field} of the shape {list(shape)}")
        yield Problem((*key, "field"), constraint, found, "Name another field or kind.")
        return
    if channel.to is None:
        constraint = f"of the kind {channel.kind} needs the other node"
        yield Problem((*key, "to"), constraint, NOTHING, "Add to, the index of a node.")
    for name in ("node", "to"):
        if (node := getattr(channel, name)) is not None:
            yield from check_index((*key, name), node, "node", shape[0])
    if channel.point is not None:
        yield Problem((*key, "point"), "has no meaning here", channel.point, "Drop it.")
    if len(shape) == 2:
        yield from check_index((*key, "axis"), channel.axis, "axis", shape[1])


def _check_geometry(
    key: Key, channel: ChannelSection, camera: CameraSection | None, shape: tuple[int, ...], places: Markers | None
) -> Iterator[Problem]:
    """Check a channel that sees the vector of a node."""
    if len(shape) != 2 or not isinstance(channel.node, int) or (channel.kind != "distance" and shape[1] < 2):
        constraint = f"of the kind {channel.kind} needs a vector of each node, in the plane or in space"
        found = Words(f"{channel.field} of the shape {list(shape)}")
        remedy = (
            "Name another field or kind." if places is None else 'Name field = "marker", a place on a body or link.'
        )
        yield Problem((*key, "field"), constraint, found, remedy)
        return
    for name in ("node", "to"):
        if (node := getattr(channel, name)) is not None:
            yield from check_index((*key, name), node, "node", shape[0])
    if channel.point is not None and (channel.to is not None or len(channel.point) != shape[1]):
        constraint, remedy = f"must be {shape[1]} numbers, in place of a node", "Correct it, or drop to or point."
        yield Problem((*key, "point"), constraint, channel.point, remedy)
    if channel.kind != "pixel":
        return
    if camera is None:
        remedy = "Add [observations.camera] with scale, rotation and origin."
        yield Problem(key, "a pixel needs a camera", NOTHING, remedy)
    else:
        yield from _check_camera(camera, 3 if camera.kind == "pinhole" else shape[1])
    yield from check_index((*key, "axis"), channel.axis, "axis", 2)


def _check_camera(camera: CameraSection, dim: int) -> Iterator[Problem]:
    """Check that a camera has what its kind needs, for positions of so many components."""
    key: Key = ("observations", "camera")
    turns = camera.rotation
    if turns is not None and (isinstance(turns, float) != (dim == 2) or np.size(turns) != (1 if dim == 2 else 3)):
        constraint = "must be an angle" if dim == 2 else "must be three angles"
        reason = "A pinhole camera is in space" if camera.kind == "pinhole" else f"Positions have {dim} components"
        remedy = f"{reason}: give {'one number' if dim == 2 else 'a list of 3'}."
        yield Problem((*key, "rotation"), constraint, turns, remedy)
    elif turns is None and camera.kind == "orthographic" and dim == 3:
        remedy = "Add observations.camera.rotation, a list of 3."
        yield Problem((*key, "rotation"), "must be three angles", NOTHING, remedy)


def _check_kind(camera: CameraSection) -> Iterator[Problem]:
    """Check that a camera has the numbers of its kind."""
    key: Key = ("observations", "camera")
    own = {"orthographic": {"scale"}, "pinhole": {"focal", "position"}}
    for name in ("scale", "focal", "position"):
        given = getattr(camera, name)
        if given is None and camera.kind == "pinhole" and name in own["pinhole"]:
            yield Problem((*key, name), "a pinhole camera needs it", NOTHING, f"Add observations.camera.{name}.")
        elif given is not None and name not in own[camera.kind]:
            constraint = f"belongs to the other kind of camera; this one is {camera.kind}"
            yield Problem((*key, name), constraint, given, "Drop it, or change observations.camera.kind.")


def unknown_field(key: Key, field: str, fields: Fields, *, also: Iterable[str] = ()) -> Problem:
    """Report a name that is no field of the state, and none of `also`."""
    known = [*fields.state, *also]
    remedy = 'A speed is kind = "distance" of a velocity. ' * (field == "speed") + did_you_mean(field, known)
    return Problem(key, "must be a component of the state", field, remedy)
