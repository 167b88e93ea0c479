"""Certificates of all scenes that ship, in the size that each scene states for it; `--full` makes all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from simphys.autograd import runtime
from simphys.autograd.errors import MissingJvp
from simphys.autograd.proof import gradcheck
from simphys.diagnose.check import Certificate, compare_modes
from simphys.diagnose.check.derivatives import COARSE
from simphys.diagnose.check.modes import ModeComparison
from simphys.diagnose.check.scene import _check_each as check_each
from simphys.diagnose.check.scene import check_file
from simphys.experiment.scene import Scene
from simphys.scenefile import load

from .helpers.compilers import OTHER, needs_other
from .helpers.small_scenes import soft_square

ROOT = Path(__file__).parents[1]
SCENES = sorted((ROOT / "scenes").rglob("*.toml"))
WHOLE = {
    "billiards/carom",
    "charges/find_charges",
    "elastic/section",
    "heat/source",
    "mass_spring/throw",
    "molecular/argon",
    "mpm/throw",
    "pendulum/swing_up",
    "rigid/rolling_disc",
    "shallow_water/harbour",
    "smoke/taylor_green",
    "sph/dam",
    "wave/drop",
}
"""Scenes whose certificate also compares batches, memory budgets, tangents over the horizon, and the precision that the
scene asks for: one of each simulator, since their kernels take longer to compile than all others. Each simulator's
contract (simulators/test_contract.py) compares more, and the tangents of sub-steps belong to all certificates."""


EACH = "mass_spring/three_trials"
"""Scene of which each experiment has a certificate; those of others differ by values alone."""


KINKED = {"Stop", "Collide", "AdvectVelocity", "AdvectSmoke"}
"""Sub-steps of which some elements lie at a kink, such as nodes without velocity or traces that end on a border of
cells: there tangents decide, and tests of these simulators take differences beside the kinks."""


def check_first(experiments: Sequence[Scene], *options: Any) -> dict[str, Certificate]:
    return check_each(experiments[:1], *options)


def has_no_tangent(self: object, random: object) -> float:
    raise MissingJvp


@pytest.mark.parametrize("path", SCENES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_gradient_of_a_scene_is_proven(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"{path.parent.name}/{path.stem}"
    if name != EACH:
        monkeypatch.setattr("simphys.diagnose.check.scene._check_each", check_first)
    if name not in WHOLE:
        for method in ("compare_batch", "compare_budgets"):
            monkeypatch.setattr(ModeComparison, method, lambda self: None)
        monkeypatch.setattr(gradcheck._Problem, "dot_product_error", has_no_tangent)
        monkeypatch.setattr("simphys.diagnose.check.scene.compare_asked", lambda *makes, seed: ([], ""))
    found = check_file(path)
    assert [statement.title for statement in found.statements if not statement.passed] == []
    compared = [statement for statement in found.statements if statement.claim == "adjoint = finite difference"]
    sub_steps = [statement for statement in compared if statement.name not in found.sizes]
    kinked = {statement.name for statement in sub_steps if statement.tolerance > COARSE}
    assert kinked <= KINKED
    assert kinked <= {statement.name for statement in found.statements if statement.claim == "tangent = adjoint"}
    proven = {statement.name.rpartition(": ")[2] for statement in compared}  # behind the name of an experiment
    sizes = {name.rpartition(": ")[2] for name in found.sizes}
    _, _, start = load(path).build()
    state = {name for name, values in start.arrays().items() if values.size}
    assert sizes >= state and proven & state


@pytest.mark.parametrize("path", SCENES, ids=lambda path: path.stem)
def test_the_size_that_a_scene_states_for_its_check_keeps_its_horizon(path: Path) -> None:
    whole = load(path)
    smaller = load(path, whole.check.overrides)
    assert (smaller.time.duration, smaller.observations) == (whole.time.duration, whole.observations)
    if whole.time.steps is not None:
        assert smaller.time.step_count() * smaller.time.dt == pytest.approx(whole.time.steps * whole.time.dt)


def test_one_scene_of_each_simulator_has_a_whole_certificate() -> None:
    assert {f"{path.parent.name}/{path.stem}" for path in SCENES} >= WHOLE
    assert sorted(name.partition("/")[0] for name in WHOLE) == sorted({path.parent.name for path in SCENES})


def modes_of_a_square() -> Certificate:
    """Compare the modes of a soft square, in the precision and on the arch of this process."""
    chosen = runtime.settings()
    scene = soft_square(runtime={"arch": chosen.arch, "precision": chosen.precision, "threads": chosen.threads})
    return compare_modes(scene.model, scene.params, scene.state, steps=scene.steps)


@pytest.mark.gpu
def test_all_modes_agree_on_every_arch() -> None:
    found = modes_of_a_square()
    assert [statement.title for statement in found.statements if not statement.passed] == []
    statements = {statement.claim for statement in found.statements}
    assert {"nested = fused", "segments = stored", "binomial = stored", "batch = single"} <= statements


@needs_other
def test_all_modes_agree_under_the_other_compiler() -> None:
    program = (
        "from simphys.autograd import runtime; runtime.init(); from tests.test_certificates import modes_of_a_square;"
        "print(runtime.info()['compiler'], modes_of_a_square().passed)"
    )
    environment: dict[str, Any] = {**os.environ, "SIMPHYS_COMPILER": OTHER, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"{OTHER} True"
