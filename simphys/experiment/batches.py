"""Set-ups of one shape in one launch, in which each has the bits that it has alone.

A launch takes the state, every parameter and the control with an axis of members, even of one. So its kernels do not
depend on how many members it has, nor on the values that they share: the numbers of a member are computed by the same
instructions, whoever is beside it.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np

from simphys import rollout
from simphys.autograd import Tensor, no_grad, ops, runtime, tensor
from simphys.rollout.run import Progress
from simphys.simulator.memo import memo

from . import misfits
from .objective import SceneObjective
from .setup import Setup
from .several import Trajectories, split_batch

Array = np.ndarray[Any, Any]
S = TypeVar("S", bound=Setup)

MOST_MODELS = 8
"""Number of models that `share_model` remembers."""
_models: dict[bytes, Any] = {}


def share_model(setup: S) -> S:
    """Give a set-up the model of an earlier one that is equal, so that its step is recorded, and its kernels are
    chosen, once."""
    model = setup.model
    try:
        content = pickle.dumps([type(model), *[getattr(model, each.name) for each in fields(model)]])
    except (pickle.PicklingError, AttributeError, TypeError):  # of a simulator of someone else
        return setup
    key = hashlib.sha256(content).digest()
    shared = _models.pop(key, model)
    _models[key] = shared  # the last one
    while len(_models) > MOST_MODELS:
        del _models[next(iter(_models))]
    return replace(setup, model=shared)


def is_batchable(setup: Setup) -> bool:
    """Return True for one motion, without a limit of memory."""
    return not setup.experiments and setup.members is None and not setup.config.runtime.limited


def shape_key(setup: Setup) -> Hashable:
    """Make a key that set-ups have in common if they can share a launch, see `share_model`.

    On several threads engines may choose another order of sums for many members, unless `runtime.deterministic` is set.
    """
    setup.start_runtime()
    kept, signal = misfits.kept_steps(setup), _signal(setup)
    params, chosen = setup.params.arrays(), setup.config.runtime
    return (
        id(setup.model) if runtime.settings().threads == 1 or chosen.deterministic else id(setup),
        setup.steps,
        _text(chosen),
        _text(setup.config.loss),
        kept if isinstance(kept, str) else kept.tobytes(),
        None if signal is None else signal.shape,
        tuple([(name, values.shape) for name, values in params.items()]),
        tuple([name for name, values in params.items() if not values.any()]),  # kernels leave out what is zero
    )


def _text(section: Any) -> str:
    """A section as text, which set-ups that share it make once."""
    table = memo(section)
    if "text" not in table:
        table["text"] = section.model_dump_json()
    return str(table["text"])


def _signal(setup: Setup) -> Tensor | None:
    """The control of a set-up, which those that share its numbers compute once."""
    controls = setup.controls
    if controls is None or any([values.requires_grad for values in controls.tensors()]):
        return setup.control()
    table, key = memo(controls), (setup.steps, runtime.settings())
    if key not in table:
        table[key] = setup.control()
    found: Tensor = table[key]
    return found


def stack(setups: Sequence[Setup]) -> dict[str, Any]:
    """Make the inputs of a launch: model, parameters, state, steps and control, each with an axis of members."""

    def stacked(records: Sequence[Any]) -> Any:
        return records[0].replace(**{n: ops.stack([getattr(each, n) for each in records]) for n in records[0].names()})

    signals = [signal for each in setups if (signal := _signal(each)) is not None]
    return {
        "model": setups[0].model,
        "params": stacked([each.params for each in setups]),
        "state": stacked([each.state for each in setups]),
        "steps": setups[0].steps,
        "control": ops.stack(signals) if signals else None,
        "deterministic": setups[0].config.runtime.deterministic,
    }


def compute_trajectories(setups: Sequence[Setup]) -> Trajectories:
    """Simulate set-ups of one key in one launch, with the states that their losses need. Errors: BlowUp."""
    first = setups[0]
    first.start_runtime()
    kept: dict[str, Any] = {}
    if not misfits.terms_of(first, "running_sum"):
        kept = {"keep": misfits.kept_steps(first), "fields": misfits.seen_fields(first)}
    return split_batch(rollout.rollout(**stack(setups), **kept), setups)


def make_objectives(scenes: Sequence[Any]) -> list[SceneObjective[Any]]:
    """Make the objectives of scenes; those with the same fields share their unknowns. Errors: those of `objective`."""
    made: list[SceneObjective[Any]] = []
    for scene in scenes:
        if made and _same_unknowns(made[0].scene, scene):
            made.append(SceneObjective(scene, made[0].unknowns))
        else:
            made.append(scene.objective())
    return made


def _same_unknowns(one: Setup, other: Setup) -> bool:
    """True if two set-ups have the same unknowns, in the same fields: the same objects, not only equal ones."""
    if one.config.unknowns is not other.config.unknowns or one.experiments or other.experiments:
        return False
    records = [
        (getattr(one, part), getattr(other, part)) for part in ("params", "state", "design", "controls", "sensor")
    ]
    names = {unknown.parameter for unknown in one.config.unknowns.values()}
    return all([getattr(mine, name, None) is getattr(its, name, None) for mine, its in records for name in names])


def values_and_gradients(objectives: Sequence[SceneObjective[Any]]) -> list[tuple[float, Array]]:
    """Compute the loss and the gradient [p] of each objective at its start, in one launch. Errors: BlowUp."""
    objectives[0].scene.start_runtime()
    leaves = [tensor(each.start, requires_grad=True) for each in objectives]
    scenes = [each.scene_at(leaf) for each, leaf in zip(objectives, leaves, strict=True)]
    motions = compute_trajectories(scenes)
    losses = [
        each.loss_of(scene, motion, leaf)
        for each, scene, motion, leaf in zip(objectives, scenes, motions, leaves, strict=True)
    ]
    ops.stack(losses).sum().backward()
    zero = [np.zeros(leaf.shape) if leaf.grad is None else leaf.grad.data for leaf in leaves]
    return [(float(loss), np.asarray(slope, np.float64)) for loss, slope in zip(losses, zero, strict=True)]


def stream_states(
    setups: Sequence[Setup], *, block: int, on_progress: Progress | None = None
) -> Iterator[tuple[Array, list[dict[str, Array]]]]:
    """Simulate in one launch without gradients; yield the steps [rows] of a block, and each member's states there.

    Errors: BlowUp.
    """
    setups[0].start_runtime()
    with no_grad():
        blocks = rollout.stream(**stack(setups), block=block, on_progress=on_progress)
    for steps, states in blocks:
        yield steps, [{name: values[at] for name, values in states.items()} for at in range(len(setups))]


def launch_bytes(setup: Setup) -> int:
    """Predict the memory of a member of a launch with its gradient [B]."""
    inputs = stack([setup])
    keep = misfits.kept_steps(setup)
    return int(rollout.plan(**inputs, keep="all" if misfits.terms_of(setup, "running_sum") else keep).predicted_bytes)
