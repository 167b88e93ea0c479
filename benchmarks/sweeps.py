"""`python -m benchmarks.sweeps PART`: what a sweep costs besides the work of its members.

fits: fits of the air track in two processes, and the time of the workers that is not spent in a fit.
batch: gradients of robots of the size of w1r in one process, and the same in batches that a script makes by hand.
members: the bookkeeping of members that do nothing, with its memory.
killed: long motions of a spring by processes of which one is killed every two seconds, and their parent once; their
table is compared with that of a quiet sweep.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from . import machine

ROOT = Path(__file__).resolve().parents[1]
AIR_TRACK = ROOT / "scenes" / "mass_spring" / "air_track.toml"
SPRING = ROOT / "docs" / "examples" / "spring.toml"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweeps", description=__doc__)
    parser.add_argument("part", choices=("fits", "batch", "members", "killed"))
    help = "1,000 fits, 10,000 robots, 100,000 members that do nothing, 200 motions whose workers are killed"
    parser.add_argument("--members", type=int, help=help)
    parser.add_argument("--workers", type=int, help="processes of the fits: 2, or 4 that are killed")
    options = parser.parse_args(arguments)
    if options.part == "fits":
        print(describe_fits(*measure_fits(options.members or 1000, options.workers or 2)))
    elif options.part == "batch":
        print(describe_batch(*measure_batch(options.members or 10_000)))
    elif options.part == "killed":
        print(describe_killed(*measure_killed(options.members or 200, options.workers or 4)))
    else:
        members = options.members or 100_000
        first, again, memory = measure_bookkeeping(members)
        print(f"{members} members that do nothing: {first:.1f} s, run again {again:.1f} s, {memory:.0f} MB.")


def measure_fits(fits: int, workers: int) -> tuple[int, float, float]:
    """Number of fits, the time of a sweep of them times its workers [s], and the time of the fits alone [s].

    Both are wall time on the same cores, so other work on the machine lengthens both. The difference is all else:
    starting the processes, reading scenes, handing out members, their locks and results, the table, and waiting for
    the last member.
    """
    import simphys
    from simphys.app.sweep.member import read_row

    spec = {
        "scene": str(AIR_TRACK),
        "grid": {"unknowns.stiffness.start": {"low": 4.0, "high": 7.0, "count": fits}},
        "engine": {"kind": "processes", "workers": workers},
    }
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        table = simphys.sweep({**spec, "folder": folder})
        seconds = time.perf_counter() - began
        rows = [read_row(each) for each in table.folders]
    assert table.count("done") == fits
    return fits, seconds * workers, sum([row.seconds or 0.0 for row in rows if row is not None])


def describe_fits(fits: int, workers: float, inside: float) -> str:
    """The result of `measure_fits` as a line."""
    return f"{fits} fits of {inside / fits * 1e3:.0f} ms: {workers / inside - 1:.1%} of their time on top."


def measure_batch(members: int, size: int = 256) -> tuple[int, float, float]:
    """Number of members, and the processor time of all of them in a sweep, and in batches made by hand [s].

    By turns, a piece of each at a time, so that both meet the same machine.
    """
    import simphys

    with tempfile.TemporaryDirectory() as folder:
        scene = Path(folder, "robot.toml")
        scene.write_text(robot_scene())
        by_hand, times = _robots_by_hand(scene, size), ([0.0], [0.0])
        drags = [10.0 + 10.0 * number / members for number in range(members)]

        def in_sweep(part: list[float]) -> None:
            spec = {"scene": str(scene), "do": "gradient", "engine": {"kind": "serial"}}
            table = simphys.sweep({**spec, "folder": f"{folder}/{part[0]}", "grid": {"material.drag": part}})
            assert table.count("done") == len(part)

        by_hand(drags[:size])
        in_sweep([9.0, 9.5])  # both have compiled now
        for first in range(0, members, size):
            part = drags[first : first + size]
            for seconds, way in zip(times, (in_sweep, by_hand), strict=True):
                began = time.process_time()
                way(part)
                seconds[0] += time.process_time() - began
    return members, times[0][0], times[1][0]


def describe_batch(members: int, in_sweep: float, by_hand: float) -> str:
    """The result of `measure_batch` as a line."""
    each = f"{in_sweep / members * 1e3:.2f} ms a member, by hand {by_hand / members * 1e3:.2f} ms"
    return f"{members} robots: {each}, {by_hand / in_sweep:.2f} of its throughput."


def _robots_by_hand(scene: Path, size: int) -> Callable[[list[float]], Any]:
    """A function that computes the gradients of robots with these drags, in one batch."""
    import numpy as np

    from simphys import load_scene
    from simphys.autograd import tensor
    from simphys.rollout import rollout

    one = load_scene(scene)
    wanted = ("hidden_weight", "hidden_bias", "output_weight", "output_bias")

    def gradients(drags: list[float]) -> list[Any]:
        def repeated(name: str) -> Any:
            return np.repeat(getattr(one.params, name).data[None], len(drags), axis=0)

        leaves = {name: tensor(repeated(name), requires_grad=True) for name in wanted}
        drag = tensor(np.array(drags)[:, None] * np.ones(one.params.drag.shape))
        params = one.params.replace(drag=drag, **leaves)
        final = rollout(one.model, params, one.state, steps=one.steps, control=one.control(), keep="final").final
        error = final.position[:, -1, 0] - 2.0
        (0.5 * (error * error)).sum().backward()
        return [leaf.grad for leaf in leaves.values()]

    return gradients


def robot_scene() -> str:
    """Scene of a robot of the size of w1r: 8 x 4 nodes, 94 springs that a network drives, 682 steps."""
    from .workloads.initial_data import lattice_nodes, lattice_springs
    from .workloads.robot import HIDDEN, NX, NY, SPACING, WAVES

    ends = lattice_springs(NX, NY).tolist()
    places = (0.1 + SPACING * lattice_nodes(NX, NY)).round(6).tolist()
    actuators = ", ".join([f"{{ springs = [{spring}] }}" for spring in range(len(ends))])
    unknowns = [
        f'[unknowns.{name}]\nparameter = "{name}"\nscale = 1.0\n'
        for name in ("hidden_weight", "hidden_bias", "output_weight", "output_bias")
    ]
    return f"""[simulator]
name = "mass_spring"
[runtime]
threads = 1
[time]
dt = 4e-3
steps = 682
[geometry]
position = {places}
springs = {ends}
actuators = [{actuators}]
[material]
stiffness = 6000.0
drag = 15.0
amplitude = 0.1
[environment]
gravity = [0.0, -4.8]
ground = {{ height = 0.1, stiffness = 1e4, friction = 2.0 }}
[control]
kind = "pattern"
waves = {WAVES}
frequency = 10.0
[controller]
hidden = {HIDDEN}
goal = [0.9, 0.2]
[[loss.terms]]
kind = "final_state"
nodes = [{NX * NY - 1}]
axis = 0
target = 2.0
{"".join(unknowns)}"""


def measure_bookkeeping(members: int) -> tuple[float, float, float]:
    """Time [s] of members that do nothing, time when all are done already, and memory [MB]."""
    from simphys.app.sweep import member, sweep, work

    done = member.Row("done", values={"loss": 1.0, "stiffness": 40.0})
    with tempfile.TemporaryDirectory() as folder, patch.object(work, "do_jobs", lambda jobs: [(j, done) for j in jobs]):
        drags = [number / members for number in range(members)]
        spec = {"scene": str(SPRING), "folder": folder, "grid": {"material.drag": drags}, "engine": {"kind": "serial"}}
        before = machine.peak_mb()
        began = time.perf_counter()
        sweep(spec)
        middle = time.perf_counter()
        sweep(spec)
        return middle - began, time.perf_counter() - middle, machine.peak_mb() - before


def measure_killed(members: int, workers: int, every: float = 2.0) -> tuple[int, int, float, bool]:
    """Number of members, of workers that were killed, time until all members are done [s], and whether the table is
    that of a quiet sweep, bit by bit.

    Every `every` seconds a worker is killed (-9), whatever it does; the process that hands out members once half of
    them are done. It is then started again.
    """
    import simphys

    with tempfile.TemporaryDirectory() as folder:
        spec = {
            "scene": str(SPRING),
            "do": "run",
            "overrides": ["time.steps=1000000", "output.every=100"],
            "folder": f"{folder}/quiet",
            "grid": {"geometry.anchors.0.stiffness": {"low": 20.0, "high": 60.0, "count": members}},
            "attempts": 1000,
            "engine": {"kind": "processes", "workers": 2},
        }
        quiet = simphys.sweep(spec)
        assert quiet.count("done") == members
        began = time.perf_counter()
        kills = _kill_until_done({**spec, "folder": f"{folder}/killed"}, members, workers, every)
        seconds = time.perf_counter() - began
        tables = [Path(folder, name, "table.csv").read_text().replace(f"{folder}/{name}", "") for name in KILLED]
    return members, kills, seconds, tables[0] == tables[1]


KILLED = ("quiet", "killed")
"""Folders of the two sweeps."""
SWEEP_GIVEN = "import json, sys, simphys; simphys.sweep(json.loads(sys.argv[1]))"


def _kill_until_done(spec: dict[str, Any], members: int, workers: int, every: float) -> int:
    """Do a sweep in a process of its own, and kill its workers, and once that process; return the number of workers."""
    spec = {**spec, "engine": {"kind": "processes", "workers": workers}}
    command = [sys.executable, "-c", SWEEP_GIVEN, json.dumps(spec)]
    chosen, kills, killed = random.Random(0), 0, False
    sweep = subprocess.Popen(command)
    while sweep.poll() is None:
        time.sleep(every)
        if not killed and len(list(Path(spec["folder"]).glob("members/*/*/member.json"))) >= members / 2:
            sweep.kill()
            sweep.wait()
            killed, sweep = True, subprocess.Popen(command)
        elif found := _workers_of(sweep.pid):
            os.kill(chosen.choice(found), signal.SIGKILL)
            kills += 1
    assert sweep.returncode == 0
    return kills


def _workers_of(pid: int) -> list[int]:
    """Processes that a process has spawned to compute, by Linux's /proc."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]
    except FileNotFoundError:  # it has just ended
        return []


def describe_killed(members: int, kills: int, seconds: float, same: bool) -> str:
    """The result of `measure_killed` as a line."""
    table = "that" if same else "NOT that"
    killed = f"{members} motions in {seconds:.0f} s, {kills} workers and their parent killed"
    return f"{killed}: the table is {table} of a quiet sweep."


if __name__ == "__main__":
    main()
