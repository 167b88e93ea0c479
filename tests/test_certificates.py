"""Certificates of all scenes that ship, in the size that each scene states for it; `--full` makes all of them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from simphys.autograd import runtime
from simphys.diagnose.check import Certificate, compare_modes
from simphys.diagnose.check.scene import check_file
from simphys.scenefile import load

from .helpers.small_scenes import soft_square

ROOT = Path(__file__).parents[1]
SCENES = sorted((ROOT / "scenes").rglob("*.toml"))
LONGEST = {2: 60.0, 3: 150.0}
"""Largest processor time of a certificate [s] by dimension, most of it to compile kernels, larger ones in space."""


@pytest.mark.parametrize("path", SCENES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_gradient_of_a_scene_is_proven(path: Path) -> None:
    began = time.process_time()
    found = check_file(path)
    taken = time.process_time() - began
    assert [statement.title for statement in found.statements if not statement.passed] == []
    proven = {statement.name for statement in found.statements if statement.claim == "adjoint = finite difference"}
    config = load(path)
    model, params, start = config.build()
    arrays, grid = start.arrays(), model.describe_grid()
    state = {name for name, values in arrays.items() if values.size}
    dim = 2  # also where there are neither bodies nor a grid
    if grid is not None:
        dim = len(grid.cells)
    elif model.describe_bodies(params.arrays()) is not None:
        dim = arrays["position"].shape[1]
    assert taken < LONGEST[max(dim, 2)]
    assert set(found.sizes) >= set(state) and proven & set(state)


@pytest.mark.parametrize("path", SCENES, ids=lambda path: path.stem)
def test_the_size_that_a_scene_states_for_its_check_keeps_its_horizon(path: Path) -> None:
    whole = load(path)
    smaller = load(path, whole.check.overrides)
    assert (smaller.time.duration, smaller.observations) == (whole.time.duration, whole.observations)
    if whole.time.steps is not None:
        assert smaller.time.step_count() * smaller.time.dt == pytest.approx(whole.time.steps * whole.time.dt)


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


needs_quadrants = pytest.mark.skipif(find_spec("quadrants") is None, reason="the extra `quadrants` is not installed")


@needs_quadrants
def test_all_modes_agree_under_the_other_compiler() -> None:
    program = (
        "from simphys.autograd import runtime; runtime.init(); from tests.test_certificates import modes_of_a_square;"
        "print(runtime.info()['compiler'], modes_of_a_square().passed)"
    )
    environment: dict[str, Any] = {**os.environ, "SIMPHYS_COMPILER": "quadrants", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "quadrants True"
