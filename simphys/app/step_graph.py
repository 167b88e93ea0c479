"""The autograd graph of one nested step of a scene."""

from __future__ import annotations

from pathlib import Path

from simphys.autograd import Tensor, tensor
from simphys.autograd.graph import ancestors
from simphys.autograd.look.draw import draw, to_text
from simphys.experiment.scene import Scene
from simphys.plot import style
from simphys.runs.run_files import make_output_folder
from simphys.simulator import Record


def draw_step(scene: Scene) -> tuple[str, Path]:
    """Return the graph of one nested step as text, and draw it to graph.png in the scene's output folder.

    Its leaves are the state, the control and the unknown parameters, or all parameters if nothing is unknown.
    """
    scene.start_runtime()
    wanted = {unknown.parameter for unknown in scene.config.unknowns.values()} or set(scene.params.names())
    params, state = _detached(scene.params), _detached(scene.state)
    leaves = {**{name: params[name] for name in params if name in wanted and params[name].size}, **state}
    signal = scene.control()
    control = None if signal is None else leaves.setdefault("control", tensor(signal.data[0]))
    names = {leaf.requires_grad_(): name for name, leaf in leaves.items()}
    after = scene.model.step(scene.params.replace(**params), scene.state.replace(**state), control)
    last = max(after.tensors(), key=lambda field: len(ancestors([field])))  # the field that shows most of the step
    folder = make_output_folder(scene)
    style.save(draw(last, names=names), folder / "graph.png")
    return to_text(last, names=names), folder / "graph.png"


def _detached(record: Record) -> dict[str, Tensor]:
    """Return the fields of Params or a State by name, without their graph."""
    return {name: value.detach() for name, value in zip(record.names(), record.tensors(), strict=True)}
