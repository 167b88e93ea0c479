"""Numbers of the model, of the sensors and of the start that a fit omits, and that would explain its misfit.

Of a number a, with the residuals r of the fit, their derivatives J by its unknowns and c by a, the optimum with a
unknown as well has to first order

    chi^2 = |r|^2 - (c' . r)^2 / |c'|^2,    c' = c - J J^+ c

This is the score test, or test of Lagrange multipliers, for omitted variables: it says which numbers are worth a fit.
Source: Rao 1948; Breusch and Pagan 1980.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simphys import optimize
from simphys.autograd import tensor
from simphys.autograd.errors import InputError
from simphys.experiment.objective import SceneObjective
from simphys.experiment.observe import Observations
from simphys.experiment.setup import Setup
from simphys.experiment.unknowns import Unknowns
from simphys.scenefile import UnknownSection, flat_entries

from .bounds import explain_by_bounds
from .criteria import Criterion
from .dissipation import gives_energy
from .lags import describe_lags
from .misfit import is_too_small, list_misfits
from .optimum import ITERATIONS, NAMED, describe_local_optimum, most_left, part_left
from .pace import describe_rest, describe_size
from .resolution import describe_late
from .uncertainty import Uncertainty

Array = np.ndarray[Any, Any]

SHORT = 10_000_000
"""Numbers in a motion, over all of its steps, up to which a fit looks for what it omits without being asked."""
EACH = 6
"""Entries of a field up to which each is tried by itself; more are tried as one, if they are alike."""
MOST = 40
"""Numbers that are tried at most: each takes a tangent of the motion."""
FITTED = 5
"""Numbers with which a fit is made, those that promise most."""
LITTLE = 0.05
"""Part of chi^2 that a number must promise to explain to be worth a fit."""
ALIKE = 2.0
"""Factor of the least chi^2 left within which other numbers explain the misfit as well."""
SENSOR = {"channel_gain": "gain of", "channel_offset": "offset of", "channel_delay": "delay of"}


@dataclass(frozen=True)
class Omitted:
    """A number that explains much of the misfit once it is unknown, too."""

    label: str
    parameter: str
    """The field, as [unknowns] names it."""
    value: float
    """Its value in the scene."""
    found: float
    """Its value where the misfit is least."""
    left: float
    """Part of chi^2 that is left there."""
    others: Array
    """Theta of the unknowns of the scene there [p]."""


def is_short(objective: SceneObjective[Any]) -> bool:
    """Return True if the motion is so short that a fit may look for what it omits without being asked."""
    sizes = [part.steps * sum([each.size for each in part.state.tensors()]) for part in objective.scene.parts]
    return sum(sizes) <= SHORT


def explain_misfit(
    objective: SceneObjective[Any], uncertainty: Uncertainty, criteria: Sequence[Criterion]
) -> list[Criterion]:
    """Say of a misfit that is too large which numbers would explain it; other criteria stay.

    A misfit that passes is too large if residuals are alike, and larger than stated noise. Bounds that hold the fit
    back are tried first. Of a search that failed a wrong unit alone is said, and nothing at all where residuals are
    independent, as noise is, but for those of a few samples.
    """
    by_name = {each.name: each for each in criteria}
    misfit, white = by_name["misfit"], by_name["white residuals"]
    few = any(each.has_outliers for each in list_misfits(objective.scene, uncertainty))
    if white.verdict == "passed" and not few:
        return list(criteria)
    if misfit.verdict == "passed" and "stated noise" in white.remedy:
        told = white
    elif misfit.verdict != "passed" and not is_too_small(objective.scene, misfit):
        told = misfit
    else:
        return list(criteria)
    if by_name["bounds"].verdict != "passed":
        criteria, explained = explain_by_bounds(objective, uncertainty, criteria, told)
        if explained:
            return list(criteria)
    if by_name["search"].verdict == "failed":
        words = describe_size(objective)
        return [replace(each, remedy=words or each.remedy) if each.name == told.name else each for each in criteria]
    words = describe_rest(objective) or describe_late(objective.scene)
    if not words:
        found = find_omitted(objective, uncertainty)
        words = _describe_optimum(objective, uncertainty, found[0]) if found else ""
        lags = describe_lags(objective, uncertainty.theta, least=1 - found[0].left if found else 0.0)
        words = words or f"{lags} {_describe(found)}".strip()
    if told is white:
        words = f"{white.remedy} {words}".rstrip()
    return [replace(each, remedy=words or each.remedy) if each.name == told.name else each for each in criteria]


def find_omitted(objective: SceneObjective[Any], uncertainty: Uncertainty) -> list[Omitted]:
    """Find the numbers that explain the misfit of a fit best, the best one first; empty if none halves chi^2.

    Those that promise most to first order are fitted, from the end of the fit.
    """
    sought, wider = objective.scene.config.unknowns, _with_forces(objective)
    known = objective.scene.parts[0].params
    sections = dict(_list_sections(wider.scene_at(uncertainty.theta), sought, known))
    promising = _rank(wider, uncertainty, sections)
    fits = [_fit_also(wider, uncertainty, {label: sections[label]}) for label in promising]
    most = most_left(objective.scene, uncertainty)
    some = [
        each for each in fits if each is not None and each.left < most and not gives_energy(each.parameter, each.found)
    ]
    found = sorted(some, key=lambda each: each.left)
    return [each for each in found if each.left <= ALIKE * found[0].left][:NAMED]


def _with_forces(objective: SceneObjective[Any]) -> SceneObjective[Any]:
    """Return the same objective of a model that has the forces that the simulator has on demand, with no effect yet."""
    scene = objective.scene
    names = [name for name in scene.config.ON_DEMAND if not _has(scene.parts[0].params, name)]
    config = scene.config.with_forces(names) if names else scene.config
    if not any(config.fields.params.get(name, np.zeros(0)).size for name in names):
        return objective
    model = config.build_model()
    fresh = {name: tensor(values) for name, values in config.fields.params.items()}

    def changed(part: Any) -> Any:
        own = {name: getattr(part.params, name) for name in model.Params.names() if _has(part.params, name)}
        return replace(part, model=model, params=model.Params(**{**fresh, **own}))

    scene = replace(changed(scene), experiments=tuple([changed(part) for part in scene.experiments]))
    return SceneObjective(scene, objective.unknowns)


def _has(params: Any, name: str) -> bool:
    """Return True if a model has numbers of this name."""
    return name in params.names() and getattr(params, name).size > 0


def _list_sections(
    fitted: Setup, sought: Mapping[str, UnknownSection], known: Any
) -> Iterator[tuple[str, UnknownSection]]:
    """List what could be unknown, too, up to MOST numbers; recordings share numbers of the model, and no others.

    Of the model these are what it has had before, as `known`, and its forces on demand.
    """
    part, count = fitted.parts[0], 0
    for record in (part.params, part.design, part.sensor, part.state):
        own = len(fitted.parts) > 1 and record is not part.params
        for name, values in ({} if record is None else record.arrays()).items():
            if name == "channel_delay" and part.config.runtime.limited:
                continue  # a late channel needs all states
            if record is part.params and not _has(known, name) and name not in part.config.ON_DEMAND:
                continue  # such as the rates of a friction that there is not
            for label, section in _divide(name, values, sought):
                if record is part.state and not _may_be_unknown(part.config, label, section):
                    continue
                count += len(fitted.parts) if own else 1
                if count > MOST:
                    return
                yield label, section.model_copy(update={"experiments": "each" if own else "shared"})


def _may_be_unknown(config: Any, label: str, section: UnknownSection) -> bool:
    """Return True if a scene may seek this part of its start: that of a jointed body, for example, it may not."""
    sections = {**dict(config), "unknowns": {**config.unknowns, _label(label): section}}
    return not list(config.find_problems(sections))


def _divide(name: str, values: Array, sought: Mapping[str, UnknownSection]) -> Iterator[tuple[str, UnknownSection]]:
    """Divide a field into what is not sought yet: its entries, or all as one number if they are many and alike."""
    taken = [flat_entries(each, values.shape) for each in sought.values() if each.parameter == name]
    free = np.setdiff1d(np.arange(values.size), np.concatenate([np.zeros(0, int), *taken]))
    if values.size == free.size and (values.size == 1 or (values.size > EACH and np.ptp(values) == 0)):
        yield name, UnknownSection(parameter=name, tied=values.size > 1)
    elif 0 < free.size <= EACH:
        for index in zip(*np.unravel_index(free, values.shape), strict=True):
            entry: list[int | str] = [int(i) for i in index]
            yield f"{name}{entry}", UnknownSection(parameter=name, entries=[entry])


def _with_unknowns(objective: SceneObjective[Any], sections: Mapping[str, UnknownSection]) -> SceneObjective[Any]:
    """Return the same objective with further unknowns behind its own."""
    scene = objective.scene
    together = {**scene.config.unknowns, **{_label(label): section for label, section in sections.items()}}

    def changed(part: Any) -> Any:
        return replace(part, config=part.config.model_copy(update={"unknowns": together}))

    scene = replace(changed(scene), experiments=tuple([changed(part) for part in scene.experiments]))
    values = [(part.name, part.values()) for part in scene.experiments]
    return SceneObjective(scene, Unknowns(together, scene.values(), values))


def _label(label: str) -> str:
    """Return a label that no unknown of the scene has."""
    return f"{label}, also"


def _rank(
    objective: SceneObjective[Any], uncertainty: Uncertainty, sections: Mapping[str, UnknownSection]
) -> list[str]:
    """Rank numbers by the chi^2 that they explain to first order, without those that explain little.

    The first FITTED are returned, and as many forces on demand: to first order all friction does the same, and mass and
    length of a pendulum with damping leave no room for it otherwise.
    """
    wider, own = _with_unknowns(objective, sections), len(uncertainty.theta)
    try:
        columns = wider.jacobian(np.concatenate([uncertainty.theta, wider.start[own:]]))[:, own:]
    except (InputError, optimize.FailedTrial):
        return []
    columns = np.where(np.isfinite(columns).all(axis=0), columns, 0.0)
    residuals, known = uncertainty.residuals, uncertainty.jacobian[:, ~(uncertainty.at_lower | uncertainty.at_upper)]
    columns = columns - known @ np.linalg.lstsq(known, columns, rcond=None)[0]
    squares = np.sum(columns**2, axis=0)
    parts = (columns.T @ residuals) ** 2 / np.where(squares > 0, squares, 1.0) / float(residuals @ residuals)
    blocks = [block for block in wider.unknowns.blocks if block.where.start >= own]
    explained = {
        label: max([parts[block.where.start - own] for block in blocks if block.unknown == _label(label)])
        for label in sections
    }
    ranked = sorted([label for label in sections if explained[label] > LITTLE], key=lambda label: -explained[label])
    forces = [label for label in ranked if sections[label].parameter in objective.scene.config.ON_DEMAND]
    return list(dict.fromkeys([*ranked[:FITTED], *forces[:FITTED]]))


def _fit_also(
    objective: SceneObjective[Any], uncertainty: Uncertainty, section: Mapping[str, UnknownSection]
) -> Omitted | None:
    """Fit with one more unknown, from the end of the fit; None where that leads to what is not physical.

    Where each recording has one of its own, the one that moves farthest is returned.
    """
    wider, own = _with_unknowns(objective, section), len(uncertainty.theta)
    start = np.concatenate([uncertainty.theta, wider.start[own:]])
    try:
        with np.errstate(divide="ignore", invalid="ignore"):  # a number without an optimum wanders far away
            result = optimize.minimize(wider.with_start(start), iterations=ITERATIONS)
    except InputError:
        return None
    place = own + int(np.argmax(np.abs(result.theta - start)[own:]))
    value, found = (float(wider.unknowns.natural(theta)[place]) for theta in (start, result.theta))
    left = part_left(uncertainty, result.loss)
    (parameter,) = {each.parameter for each in section.values()}
    return Omitted(_name(wider, place, *section), parameter, value, found, left, result.theta[:own])


def _name(objective: SceneObjective[Any], place: int, label: str) -> str:
    """Name a number by its channel or by its label, and the recording that it belongs to."""
    block = next(each for each in objective.unknowns.blocks if each.where.start == place)
    part = objective.scene.parts[block.experiment or 0]
    if block.parameter in SENSOR and isinstance(part.observations, Observations):
        label = (
            f"{SENSOR[block.parameter]} {part.observations.channels[int(block.entries[0])].label} ({block.parameter})"
        )
    return label if block.experiment is None else f"{label}, {part.name}"


def _describe_optimum(objective: SceneObjective[Any], uncertainty: Uncertainty, best: Omitted) -> str:
    """Describe another optimum of the same unknowns, where the way with one more has led; empty if there is none."""
    try:
        result = optimize.minimize(objective.with_start(best.others), iterations=ITERATIONS)
    except InputError:
        return ""
    left = part_left(uncertainty, result.loss)
    return describe_local_optimum(uncertainty, result.theta, left) * (left <= ALIKE * best.left)


def _describe(found: Sequence[Omitted]) -> str:
    """Describe what explains a misfit; empty if nothing does."""
    words = [
        f"{each.label} {each.value:.5g} -> {each.found:.5g} leaves {100 * np.sqrt(each.left):.2g} %" for each in found
    ]
    return f"Set, or make unknown, what explains it: {', or '.join(words)} of it. Look at fit.png." * bool(words)
