"""The kernels that are generated from the step of a scene, as text."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from simphys.autograd import runtime
from simphys.autograd.errors import InputError
from simphys.experiment.scene import Scene
from simphys.experiment.several import make_batch
from simphys.rollout.engine import GeneratedEngine, NestedEngine
from simphys.rollout.engine.choices import find_forms
from simphys.rollout.engine.forms import Form
from simphys.rollout.engine.show import show_kernels
from simphys.rollout.inputs import Inputs, read_inputs
from simphys.simulator import Engine

GPU = "gpu-"
FORMS = ("auto", "time", "launches", f"{GPU}time", f"{GPU}launches", f"{GPU}blocks")
"""Names of forms: that of the scene's own rollout; those of a processor; and those of a GPU, which needs none."""


def write_kernels(scene: Scene, form: str) -> str:
    """Write the kernels of a scene's rollout, in a form.

    Gradients go to the unknown parameters, or to all if nothing is unknown. Errors: InputError for a form that there is
    not, or that the step cannot have, and for a scene whose engine is written by hand.
    """
    if form not in FORMS:
        raise InputError("--form", f"it is one of {', '.join(FORMS)}", form, "Choose one of these.")
    scene.start_runtime()
    chosen = runtime.settings()
    if form != "auto":
        device = chosen.arch if chosen.on_gpu else "cuda"
        chosen = replace(chosen, arch=device if form.startswith(GPU) else "cpu")
    inputs = _read_inputs(scene)  # before the settings change: to compute a control puts the scene's own in force
    with runtime.writing_for(chosen):
        engine = _make_engine(scene, inputs)
        if not isinstance(engine, GeneratedEngine):
            raise _no_generated_engine(scene, engine)
        if form == "auto":
            return show_kernels(engine)
        prefix = GPU if form.startswith(GPU) else ""
        possible = [f"{prefix}{each}" for each in find_forms(engine.step_program)]
        if form not in possible:
            constraint = f"the loops of this step can have the form {' or '.join(possible)}"
            raise InputError("--form", constraint, form, "Choose one of these, or leave it out.")
        return show_kernels(engine, cast(Form, form.removeprefix(GPU)))


def _read_inputs(scene: Scene) -> Inputs:
    """Read the inputs of the scene's rollout: of all experiments, or of the first one if they do not run as a batch."""
    batch = make_batch(scene.experiments) if scene.experiments else None
    one = scene.parts[0]
    given = batch or {"params": one.params, "state": one.state, "steps": one.steps, "control": one.control()}
    return read_inputs(scene.model, **given)


def _make_engine(scene: Scene, inputs: Inputs) -> Engine:
    one = scene.parts[0]
    names = {*inputs.params.names(), *([] if inputs.control is None else ["control"])}
    unknown = {each.parameter for each in scene.config.unknowns.values()}
    if one.controls is not None and unknown & set(one.controls.names()):
        unknown.add("control")
    needs = frozenset(names & unknown if unknown else names)
    deterministic = scene.config.runtime.deterministic
    return scene.model.engine(*inputs.arrays(), batch=inputs.members, needs=needs, deterministic=deterministic)


def _no_generated_engine(scene: Scene, engine: Engine) -> InputError:
    name = type(engine).__name__
    if isinstance(engine, NestedEngine):
        found = "a step with Functions that are written by hand, which is run as it stands"
        remedy = "Declare its sub-steps (docs/patterns.md). `simphys graph` shows the step."
    else:
        found = f"{name} of {type(engine).__module__}, which is written by hand"
        remedy = f"Read it there. A GPU may take a generated one: pass --form {GPU}launches."
    return InputError(scene.config.simulator.name, "kernels are shown of an engine that is generated", found, remedy)
