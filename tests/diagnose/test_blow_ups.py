"""Motions that blow up are errors with the step and a remedy, failed trials of a fit, and never a success."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys import optimize
from simphys.autograd.errors import InputError
from simphys.experiment.scene import load_scene
from simphys.record import Recording
from simphys.rollout import stability

from ..helpers import oscillator
from ..helpers.oscillator import SCENE, simphys

ROOT = Path(__file__).resolve().parents[2]
FAST = """\
[simulator]
name = "mass_spring"
integrator = "semi_implicit_euler"

[time]
dt = 0.19
steps = 1000

[geometry]
position = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
springs = [[0, 1], [0, 2]]
pinned = [1, 2]

[material]
stiffness = 100.0

[state]
velocity = [[1000.0, 1000.0], [0.0, 0.0], [0.0, 0.0]]

[unknowns.rate]
parameter = "stiffness"
entries = [0]

[[loss.terms]]
kind = "final_state"
nodes = [0]
target = [1.0, 1.0]
"""
"""Scene that is stable at the start, where each spring acts in one direction: dt < 0.2. Stretched far, dt < 0.1414."""


@pytest.fixture(autouse=True)
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("simphys.plot.all_figures", lambda recording, folder: [])
    return oscillator.write(tmp_path)


def test_a_run_that_blows_up_reports_the_step_and_a_stable_dt_and_is_recorded(scene: Path) -> None:
    scene.write_text(FAST)
    result = simphys("run", scene)
    assert (result.exit_code, result.stdout) == (2, "")
    told = re.match(
        r"simulation: the motion must stay finite; found a blow-up at step (\d+) \(t = \S+\), first in "
        r"\w+\[0, \d\] = \S+\. Lower time.dt below 0.141, .* `simphys plot runs/scene` draws it.\n$",
        result.stderr,
    )
    assert told
    found = Recording("runs/scene")
    position = found["particles/nodes/position/value"]
    assert len(position) == int(told[1]) and (np.abs(position) < 1e100).all()
    assert found.attrs("motion")["status"] == "blown up" and found.attrs("motion")["steps"] == int(told[1]) - 1
    assert simphys("run", scene, "time.dt=0.14", "--overwrite").exit_code == 0


@pytest.mark.parametrize(("command", "who"), [("optimize", "start of the unknowns"), ("check", "check")])
def test_a_start_that_blows_up_is_an_error_before_anything_is_done(scene: Path, command: str, who: str) -> None:
    scene.write_text(FAST)
    result = simphys(command, scene)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"{who}: the motion must stay finite; found a blow-up at step ")
    assert not Path("runs").exists()


def test_unknowns_that_start_beyond_the_stability_limit_are_an_error(scene: Path) -> None:
    result = simphys("optimize", scene, "unknowns.rate.start=1e7")
    assert result.exit_code == 2
    assert result.stderr.startswith("time.dt: the largest stable time step of this scene is 0.000632")


@pytest.mark.parametrize("method", ["adam", "gradient_descent"])
def test_trials_that_blow_up_are_survived_and_counted(scene: Path, method: str) -> None:
    # The first step leads to a stiffness e^12 times that at the start.
    result = simphys("optimize", scene, f"optimizer.method={method}", "optimizer.learning_rate=12", "time.dt=5e-3")
    trials = re.search(r"; (\d+) failed trials? \(not finite\) survived", result.stdout)
    assert trials and int(trials[1]) > 0
    assert result.exit_code == (0 if "\nconverged: " in result.stdout else 1)
    found = Recording("runs/scene")
    assert np.isfinite(found["unknowns/value"]).all() and np.isfinite(found["fit/predicted"]).all()
    assert found.attrs("unknowns")["failed_trials"] == int(trials[1])
    assert found.attrs("unknowns")["loss"] <= found["iterations/loss"][0]


def test_a_fit_that_ends_beyond_the_stability_limit_is_no_success(scene: Path) -> None:
    """Fit five samples of the unstable recursion itself: the loss has its minimum, zero, where dt is too long."""
    dt, stiffness, position, velocity, lines = 0.05, 2000.0, 0.2, 0.0, ["0 0.2"]
    for step in range(1, 6):
        velocity -= dt * stiffness * position
        position += dt * velocity
        lines.append(f"{step * dt} {position!r}")
    Path("data.txt").write_text("\n".join(lines))
    text = re.sub(r"\[unknowns.drag\].*?\n\n", "", SCENE, flags=re.DOTALL)
    text = text.replace("velocity_verlet", "semi_implicit_euler")
    scene.write_text(text.replace("drag = 0.2", "").replace("dt = 2e-3", f"dt = {dt}").replace("30.0", "1500.0"))
    result = simphys("optimize", scene)
    assert result.exit_code == 1
    assert "failed: the fit leads to values without a sound motion." in result.stdout
    assert "the largest stable time step of this scene is 0.04472" in result.stdout
    assert Recording("runs/scene")["unknowns/value"] == pytest.approx(stiffness)
    assert Recording("runs/scene").attrs("unknowns")["status"] == "failed"


def test_a_fit_that_ends_where_the_motion_blows_up_is_recorded_as_far_as_it_goes(
    scene: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fit as if the optimum on a part of the horizon blew up on the whole."""
    honest = optimize.minimize

    def astray(*arguments: Any, **options: Any) -> optimize.Result:
        result = honest(*arguments, **options)
        return replace(result, theta=np.array([18.0, 0.0]), status="failed", message="led astray")

    monkeypatch.setattr("simphys.optimize.minimize", astray)
    result = simphys("optimize", scene)
    assert result.exit_code == 1
    assert "failed: the fit leads to values without a sound motion." in result.stdout
    found = Recording("runs/scene")
    assert found.attrs("motion")["status"] == "blown up" and "blow-up at step" in str(found.attrs("motion")["message"])
    reached = int(np.sum(np.isfinite(found["fit/predicted"])))
    assert 1 <= reached < 100 and np.isfinite(found["fit/predicted"][:reached]).all()
    assert "adjoint/position" not in found


def test_a_time_step_far_beyond_the_limit_is_refused_after_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of a cloth takes seconds to find; for a time step of 2,000 s nobody needs it."""
    looks: list[Any] = []
    compute = stability.compute_overshoot

    def counted(*given: Any) -> float:
        looks.append(given)
        return compute(*given)

    monkeypatch.setattr(stability, "compute_overshoot", counted)
    with pytest.raises(InputError, match=r"a stable time step of this scene is 0\.005\d+, by springs") as caught:
        load_scene(ROOT / "scenes" / "mass_spring" / "cloth.toml", ["time.dt=2000.0"])
    assert len(looks) == 1 and "Set time.dt to 0.0052 or less" in caught.value.remedy
