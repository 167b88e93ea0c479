"""Checks between the generic sections, and between these and the simulator's fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from simphys.autograd.errors import InputError
from simphys.rollout.budget import parse
from simphys.scenefile.control import control_arrays
from simphys.scenefile.control_checks import check_control
from simphys.scenefile.demands import Demand, demands_of, value_refusals
from simphys.scenefile.experiments import MERGED, check_alternatives, check_each, check_names
from simphys.scenefile.fit_sections import CameraSection, OptimizerSection, sensor_arrays
from simphys.scenefile.loss_sections import (
    FinalDensitySection,
    FinalMeanSection,
    FinalStateSection,
    LossSection,
    RegularizationSection,
    RunningSumSection,
)
from simphys.scenefile.observation_checks import (
    check_lowpass,
    check_noise,
    check_observations,
    check_seen,
    unknown_field,
)
from simphys.scenefile.section import NOTHING, Fields, Indices, Key, Problem, Range, Words, rows_of
from simphys.scenefile.sections import OutputSection, RuntimeSection, TimeSection, sections_of_experiment
from simphys.scenefile.shared import check_index, check_length, check_one_of
from simphys.scenefile.unknown_entries import unknown_problems, value_problems, with_values
from simphys.scenefile.validate import did_you_mean

CAMERA_DEMANDS = demands_of(CameraSection, "scale", "focal", prefix="camera_")
"""Demands of a camera on its numbers."""


def check_sections(sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems between generic sections; a section that is itself invalid is absent, one that is not given is None."""
    if "experiments" not in sections:  # what they complete is not known
        yield from _check_generic({n: s for n, s in sections.items() if n not in ("time", "observations")})
        return
    experiments = sections["experiments"]
    if "unknowns" in sections:
        yield from check_each(sections["unknowns"], several=bool(experiments))
    if not experiments:
        yield from _check_generic(sections)
        return
    yield from check_names([each.name for each in experiments])
    for place, each in enumerate(experiments):
        yield from check_alternatives(each.steps, each.duration, ("experiments", place))
    yield from _of_each(sections, _check_generic)


def _of_each(sections: Mapping[str, Any], check: Callable[[Mapping[str, Any]], Iterable[Problem]]) -> Iterator[Problem]:
    """Find the problems of each experiment, and those of the sections that all of them share once."""
    seen: set[tuple[Key, str]] = set()
    for place, each in enumerate(sections["experiments"]):
        own = sections_of_experiment(each, sections["time"]) if "time" in sections else {}
        if each.steps is not None and each.duration is not None:
            continue
        for problem in check({**sections, **own}):
            if problem.key[0] in MERGED:
                problem = replace(problem, key=("experiments", place, *problem.key))
            if (problem.key, problem.constraint) not in seen:
                seen.add((problem.key, problem.constraint))
                yield problem


def _check_generic(sections: Mapping[str, Any]) -> Iterator[Problem]:
    if "runtime" in sections:
        yield from _check_memory(sections["runtime"])
    if "time" in sections and "observations" in sections:
        yield from _check_time(sections["time"], has_observations=sections["observations"] is not None)
    if sections.get("observations") is not None:
        yield from check_observations(sections["observations"])
    if "optimizer" in sections:
        yield from _check_smoothing(sections["optimizer"])
    if "loss" in sections:
        yield from _check_loss(sections["loss"], sections.get("unknowns"))
        if sections.get("observations") is not None:
            yield from check_noise(sections["observations"], sections["loss"])
        if "observations" in sections and "optimizer" in sections:
            growing = sections["optimizer"].horizon == "growing"
            yield from check_lowpass(sections["loss"], sections["observations"], growing=growing)


def check_against_fields(
    sections: Mapping[str, Any], fields: Fields, demands: Mapping[str, Demand]
) -> Iterator[Problem]:
    """Problems of controls, and of unknowns, loss terms and channels that name fields, nodes, entries or axes.

    Values also have to be what their sections demand of parameters.
    """
    if sections.get("experiments"):
        yield from _of_each(sections, lambda own: _check_against_fields(own, fields, demands))
    else:
        yield from _check_against_fields(sections, fields, demands)


def _check_against_fields(
    sections: Mapping[str, Any], fields: Fields, demands: Mapping[str, Demand]
) -> Iterator[Problem]:
    control = sections.get("control")
    fields = replace(fields, driven=getattr(control, "members", None))
    of_control = list(check_control(control, fields.channels)) if control is not None else []
    yield from of_control
    if "unknowns" in sections and "control" in sections and not of_control:
        controls = {} if control is None else control_arrays(control)
        params = {name: values for name, values in fields.params.items() if name not in fields.designed}
        sensor = sensor_arrays(sections.get("observations"))
        values = {**params, **fields.design, **fields.state, **controls, **sensor}
        given, unknowns = sections.get("values", {}), sections["unknowns"]
        wrong = list(value_problems(given, values))
        yield from wrong
        if not wrong:
            wrong = unknown_problems(unknowns, with_values(given, values))
            yield from wrong or value_refusals(given, unknowns, values, {**demands, **CAMERA_DEMANDS})
    for position, term in enumerate(sections["loss"].terms if "loss" in sections else []):
        if isinstance(term, FinalDensitySection):
            yield from _check_density(("loss", "terms", position), term, fields)
        elif not isinstance(term, RegularizationSection):
            yield from _check_term(("loss", "terms", position), term, fields)
    if sections.get("observations") is not None:
        yield from check_seen(sections["observations"], fields)
    if "output" in sections:
        yield from _check_output(sections["output"], fields)


def _check_output(output: OutputSection, fields: Fields) -> Iterator[Problem]:
    for position, name in enumerate(output.fields or []):
        if name not in fields.state:
            yield unknown_field(("output", "fields", position), name, fields)


def _check_memory(runtime: RuntimeSection) -> Iterator[Problem]:
    try:
        parse(runtime.memory)
    except InputError as error:
        yield Problem(("runtime", "memory"), error.constraint, runtime.memory, error.remedy)


def _check_time(time: TimeSection, *, has_observations: bool) -> Iterator[Problem]:
    if time.steps is not None and time.duration is not None:
        found = {"steps": time.steps, "duration": time.duration}
        yield Problem(("time",), "needs only one of steps and duration", found, "Drop one.")
    if time.steps is None and time.duration is None and not has_observations:
        constraint = "needs steps or duration where there are no observations"
        yield Problem(("time",), constraint, NOTHING, "Add steps = 1000, for example.")


def _check_smoothing(optimizer: OptimizerSection) -> Iterator[Problem]:
    if optimizer.smoothing is not None and optimizer.method not in ("adam", "gradient_descent"):
        constraint = 'belongs to the methods "adam" and "gradient_descent"'
        found, remedy = Words(f'method = "{optimizer.method}"'), 'Use method = "adam", or drop smoothing.'
        yield Problem(("optimizer", "smoothing"), constraint, found, remedy)


def _check_loss(loss: LossSection, unknowns: Mapping[str, Any] | None) -> Iterator[Problem]:
    with_delta = ("huber", "soft_l1", "cauchy")
    if loss.kind in with_delta and loss.delta is None:
        remedy = "Add delta = 1.5, in standard deviations."
        yield Problem(("loss",), f"the {loss.kind} loss needs delta", NOTHING, remedy)
    if loss.kind not in with_delta and loss.delta is not None:
        remedy = 'Use kind = "huber" or drop delta.'
        yield Problem(("loss", "delta"), f"belongs to {', '.join(with_delta)}", loss.delta, remedy)
    for position, term in enumerate(loss.terms):
        key: Key = ("loss", "terms", position)
        if isinstance(term, RegularizationSection) and unknowns is not None and term.unknown not in unknowns:
            remedy = did_you_mean(term.unknown, list(unknowns))
            yield Problem((*key, "unknown"), "must be the label of an unknown", term.unknown, remedy)
        if isinstance(term, FinalStateSection):
            yield from check_one_of(key, term, "target", "target_offset")


def _check_term(
    key: Key, term: FinalStateSection | FinalMeanSection | RunningSumSection, fields: Fields
) -> Iterator[Problem]:
    if term.field not in fields.state:
        yield unknown_field((*key, "field"), term.field, fields)
        return
    shape = fields.moving_shape(term.field)
    nodes = fields.nodes if fields.members is None else None
    vectors = nodes is not None and len(shape) == 2
    wrong = list(_check_nodes((*key, "nodes"), term.nodes, shape[0] if shape else 0))
    wrong += _check_axis((*key, "axis"), term.axis, shape if vectors else ())
    yield from wrong
    if wrong:
        return
    seen = shape
    if shape:
        count = shape[0] if nodes is None else nodes
        seen = (count if term.nodes is None else len(np.arange(shape[0])[rows_of(term.nodes)]), *shape[1:])
    each = seen[1:] if vectors else ()
    if term.axis is not None:
        seen, each = seen[:1], ()
    if not isinstance(term, FinalMeanSection) and term.target_range is not None and not isinstance(term.target, str):
        remedy = "Drop it, or name a picture as target."
        yield Problem((*key, "target_range"), "belongs to a target that is a picture", term.target_range, remedy)
    if isinstance(term, FinalMeanSection):
        yield from _check_target((*key, "target"), term.target, [each])
    elif term.target is not None and not isinstance(term.target, str):  # a file is looked at when it is read
        yield from _check_target((*key, "target"), term.target, [each, seen])
    if isinstance(term, FinalStateSection) and term.target_offset is not None:
        yield from _check_target((*key, "target_offset"), term.target_offset, [each])


def _check_density(key: Key, term: FinalDensitySection, fields: Fields) -> Iterator[Problem]:
    position, mass = fields.state.get("position"), fields.params.get("mass")
    if position is None or mass is None or position.shape != (*mass.shape, position.shape[-1]):
        found = Words(f"a state of {', '.join(fields.state)}")
        yield Problem(key, "needs bodies with positions and masses", found, "Take a term of another kind.")
        return
    dim = position.shape[-1]
    for name in ("cells", "origin"):
        yield from check_length((*key, name), getattr(term, name), dim, "axis")


def _check_nodes(key: Key, nodes: Indices | None, count: int) -> Iterator[Problem]:
    if isinstance(nodes, Range):
        yield from check_index((*key, "last"), nodes.last, "node", count)
        if nodes.first > nodes.last:
            yield Problem((*key, "first"), f"must not be beyond last = {nodes.last}", nodes.first, "Exchange them.")
        return
    for position, node in enumerate(nodes or []):
        yield from check_index((*key, position), node, "node", count)


def _check_axis(key: Key, axis: int | None, shape: tuple[int, ...]) -> Iterator[Problem]:
    """`shape` of a field of vectors, one for each node; () where it is none."""
    if axis is not None and not shape:
        yield Problem(key, "belongs to fields of vectors, one for each node", axis, "Drop it, or name another field.")
    elif axis is not None:
        yield from check_index(key, axis, "axis", shape[1])


def _check_target(key: Key, target: Any, wanted: list[tuple[int, ...]]) -> Iterator[Problem]:
    """Check that a target has one of the allowed shapes: one value for all nodes, or one for each."""
    try:
        if np.shape(target) in wanted:
            return
    except ValueError:  # rows of different lengths
        pass
    (*each,), seen = wanted[0], wanted[-1]
    constraint = f"must be a vector of {each[0]} numbers" if each else "must be a number"
    if len(wanted) > 1 and seen:
        constraint += f" or {seen[0] if each else list(seen)} of them"
    remedy = "Give a number for each axis" if each else "Give a number"
    if len(wanted) > 1:
        remedy += f"{', and a row' if each else ', or one'} for each node where they differ"
    yield Problem(key, constraint, target, f"{remedy}.")
