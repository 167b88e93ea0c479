"""`simphys kernels` prints what rollouts launch, as Python with comments that name all sub-steps."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from simphys.app.kernel_text import write_kernels
from simphys.autograd import linearize, runtime
from simphys.experiment.scene import Scene, load_scene
from simphys.rollout.engine import generated_engine
from simphys.rollout.engine.kernels import Loops
from simphys.rollout.engine.show import DERIVED
from simphys.simulator.memo import memo

from ..helpers import oscillator
from ..helpers.oscillator import simphys

SCENES = Path(__file__).resolve().parents[2] / "scenes"
NAMES = (
    "mass_spring/air_track",
    "mass_spring/three_trials",
    "heat/conductivity",
    "pendulum/swing",
    "charges/find_charges",
    "smoke/cavity",
    "molecular/argon",
    "mpm/press",
)
HEAT = SCENES / "heat" / "conductivity.toml"


def load(name: str) -> Scene:
    return load_scene(SCENES / f"{name}.toml")


def read_functions(text: str) -> set[str]:
    """List the kernels of a text, without its comments and its layout."""
    return {ast.unparse(node) for node in ast.parse(text.partition(DERIVED)[0]).body}


def launch(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Run a scene forward, backward and in tangent mode, and list the kernels that its engines launch."""
    launched: set[str] = set()

    class Noted(generated_engine.StepLaunch):
        def __init__(self, loops: Loops, arguments: tuple[object, ...], *, often: bool) -> None:
            launched.update(read_functions(loops.kernel.text))
            super().__init__(loops, arguments, often=often)

    monkeypatch.setattr(generated_engine, "StepLaunch", Noted)
    fields = dict(zip(scene.params.names(), scene.params.tensors(), strict=True))
    if scene.controls is not None:
        fields |= zip(scene.controls.names(), scene.controls.tensors(), strict=True)
    unknown = {each.parameter for each in scene.config.unknowns.values()} or set(scene.params.names())
    leaves = [field.requires_grad_() for name, field in fields.items() if name in unknown]
    found = scene.rollout(steps=2)
    states = [one.states for one in (found if isinstance(found, tuple) else (found,))]
    ends = [field.sum() for state in states for field in state.tensors() if field.size]
    linearize(ends, leaves)(*[np.ones(leaf.shape) for leaf in leaves])
    sum(ends[1:], ends[0]).backward()
    return launched


@pytest.mark.parametrize("name", [name for name in NAMES if name != "mass_spring/three_trials"])
def test_the_kernels_that_are_printed_are_those_that_a_rollout_launches(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched = launch(load(name), monkeypatch)
    assert read_functions(write_kernels(load(name), "auto")) == launched


@pytest.mark.parametrize("name", NAMES)
def test_all_sub_steps_are_named_with_their_formulas_and_the_launches_that_they_are_in(name: str) -> None:
    scene = load(name)
    text = write_kernels(scene, "auto")
    (step_program,) = memo(scene.model)["programs of steps"].values()
    head, _, kernels = text.partition("\n\n")
    zeros = [step_program.program.params[each] for key in step_program.plans for each in key.zeros]
    needed = {op.label for op in step_program.program.without_idle(zeros).ops}
    for number, op in enumerate(step_program.program.ops, 1):
        row = re.search(rf"^# {number} +{op.pattern.name} +{op.outputs[0].name} +(.*)$", head, re.MULTILINE)
        assert row and row[1].startswith(op.pattern.formula)
        assert (re.search(r" \d", row[1]) is not None) == (op.label in needed)
        assert (op.label in " ".join(kernels.replace("\n#", "").split())) == (op.label in needed)
    for op in step_program.prologue.ops:
        assert op.label in " ".join(head.replace("\n#", "").split())
    assert max(len(line) for line in text.splitlines() if line.startswith("# over")) <= 120


@pytest.mark.parametrize("form", ["time", "launches", "gpu-time", "gpu-launches", "gpu-blocks"])
def test_each_form_is_written_without_a_gpu_and_leaves_the_settings_as_they_are(form: str) -> None:
    text = simphys("kernels", HEAT, "--form", form).stdout
    assert f"\n# form {form.removeprefix('gpu-')}: " in text
    assert text.startswith(f"# Heat on {'cuda' if form.startswith('gpu-') else 'cpu'}, f64, threads: ")
    forward = text.partition("==== forward")[2].partition("==== adjoint")[0]
    assert ("for t in range(begin, end)" in forward) == (form not in ("launches", "gpu-launches"))
    assert ("ti.simt.block.sync()" in text) == (form == "gpu-blocks")
    assert ("packed_integers" in text) == form.startswith("gpu-")
    assert len(read_functions(text)) == 3
    assert not runtime.settings().on_gpu
    assert (read_functions(text) == read_functions(simphys("kernels", HEAT).stdout)) == (form == "time")


def test_so_are_those_of_a_scene_with_a_control() -> None:
    """To compute a control puts the settings of the scene in force: kernels for a GPU were those of the processor."""
    text = write_kernels(load("mass_spring/crawler"), "gpu-launches")
    assert text.startswith("# MassSpring on cuda, f64") and "packed_integers" in text
    assert not runtime.settings().on_gpu


def test_a_scene_that_was_shown_for_a_gpu_runs_as_before() -> None:
    scene = load("mass_spring/air_track")
    write_kernels(scene, "gpu-blocks")
    scene.params.stiffness.requires_grad_()
    shown, fresh = scene.rollout(steps=3), load("mass_spring/air_track").rollout(steps=3)
    assert (shown.final.position.data == fresh.final.position.data).all()
    shown.final.position.sum().backward()
    assert np.isfinite(scene.params.stiffness.grad.data).all()


@pytest.mark.parametrize(
    ("scene", "options", "message"),
    [
        ("heat/conductivity", ["--form", "vector"], "--form: it is one of auto, time, "),
        ("smoke/cavity", ["--form", "gpu-blocks"], "step can have the form gpu-launches; found gpu-blocks. Choose one"),
        ("elastic/section", ["--form", "time"], "the loops of this step can have the form launches; found time. "),
        ("wave/drop", [], "simphys.simulators.wave.fused.engine, which is written by hand. Read it there. A GPU may"),
    ],
)
def test_what_cannot_be_shown_is_told_with_a_remedy(scene: str, options: list[str], message: str) -> None:
    result = simphys("kernels", SCENES / f"{scene}.toml", *options)
    assert result.exit_code == 2 and not result.stdout
    assert message in result.stderr


def test_waves_on_a_gpu_have_a_generated_engine() -> None:
    assert "Laplacian (laplacian)" in simphys("kernels", SCENES / "wave" / "drop.toml", "--form", "gpu-launches").stdout


def test_a_terminal_gets_colours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = oscillator.write(tmp_path)
    plain = simphys("kernels", scene).stdout
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    monkeypatch.setenv("TERM", "xterm-256color")
    coloured = simphys("kernels", scene).stdout
    assert "\x1b[" in coloured
    lines = re.sub(r"\x1b\[[\d;]*m", "", coloured).splitlines()
    assert [line.rstrip() for line in lines] == [line.rstrip() for line in plain.splitlines()]


def test_tangents_that_follow_from_formulas_are_printed() -> None:
    """Those that another one calls come before it."""
    derived = write_kernels(load("mass_spring/jelly"), "auto").partition(DERIVED)[2]
    names = [node.name for node in ast.parse(derived).body if isinstance(node, ast.FunctionDef)]
    assert names.index("jvp_press") < names.index("jvp_rub")
    assert "dk * _1 + k * ti.select(_0 > 0, dh - dy, 0.0 * 0)" in derived
