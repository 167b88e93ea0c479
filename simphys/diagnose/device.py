"""The first gradient of a scene on a GPU beside the processor's, once for each scene and device.

Drivers and compilers of GPUs have faults that no error shows: they end loops, drop what is written, bind too few
arrays. What a fit then finds is wrong without a word. `simphys check` proves a whole scene; here its first steps are
compared, before a run or a fit.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

from simphys import scenefile as scene_files
from simphys.autograd import InputError, runtime
from simphys.autograd.kernels import cuda, vulkan
from simphys.experiment.members import control_of, stack_members, take_members
from simphys.experiment.scene import Scene
from simphys.rollout import BlowUp

from .check import make_case
from .check.asked import compare_asked
from .check.case import Case
from .check.certificate import Statement
from .check.scene import in_f64

STEPS = 8
"""Number of steps that are compared."""


def _print(line: str) -> None:
    print(line, file=sys.stderr)


def verify_device(scene: Scene, *, tell: Callable[[str], None] = _print) -> None:
    """Compare the gradient of a random combination of states, over the first steps, with the processor's in f64.

    Nothing is done on the processor, with `runtime.verify = false`, or for a scene that agreed before, with the same
    device, compiler and sources. `tell` gets a line on what was found, and how long it took.
    Errors: InputError if they differ by more than rounding explains.
    """
    first = scene.parts[0]
    first.start_runtime()
    if not (runtime.settings().on_gpu and scene.config.runtime.verify):
        return
    arch, known = runtime.settings().arch, _place(first)
    if known.exists():
        return
    began = time.perf_counter()
    try:
        statements, finding = compare_first_steps(first)
    except BlowUp:  # which the run or the fit tells, with more
        first.start_runtime()
        return
    spent = time.perf_counter() - began
    if not all(statement.passed for statement in statements):
        remedy = 'Use runtime.arch = "cpu", or another driver or compiler; runtime.verify = false leaves this out.'
        constraint = f"a device computes the gradient that the processor computes, over {STEPS} steps"
        raise InputError(f"runtime.arch {arch}", constraint, finding.rstrip("."), remedy)
    tell(f"{finding.rstrip('.')} ({STEPS} steps, {spent:.1f} s; runtime.verify = false leaves this out)")
    try:
        known.parent.mkdir(parents=True, exist_ok=True)
        known.write_text(finding)
    except OSError:  # it is compared again next time
        pass


def compare_first_steps(scene: Scene, steps: int = STEPS) -> tuple[list[Statement], str]:
    """Compare the gradient of a random combination of states with the processor's in f64; see `compare_asked`."""

    def make_for(chosen: Scene) -> Callable[[], Case]:
        def make() -> Case:
            chosen.start_runtime()
            one = stack_members(take_members(chosen, chosen.config.check.members))
            few, control = min(steps, one.steps), control_of(one)
            signal = None if control is None else control[:few]
            return make_case(one.model, one.params, one.state, few, signal, None, None, 0)

        return make

    return compare_asked(make_for(in_f64(scene)), make_for(scene), seed=0)


def _place(scene: Scene) -> Path:
    """The file that says that a scene agreed: its name is a hash of all that the result depends on."""
    tables = {name: table for name, table in scene_files.to_dict(scene.config).items() if name != "output"}
    values = [record.arrays() for record in (scene.params, scene.state)]
    numbers = hashlib.sha256(b"".join([array.tobytes() for arrays in values for array in arrays.values()])).hexdigest()
    own = Path(__file__).parents[1], Path(runtime.__file__).parents[1], Path(inspect.getfile(type(scene.model))).parent
    files = sorted({file.resolve() for folder in own for file in folder.rglob("*.py")})
    sources = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    devices = {"cuda": cuda.devices, "vulkan": vulkan.devices}.get(runtime.settings().arch, platform.uname)()
    whole = json.dumps([tables, numbers, sources, devices, runtime.info()], default=str)
    folder = Path(runtime.ti.lang.impl.current_cfg().offline_cache_file_path)
    return folder / "verified" / hashlib.sha256(whole.encode()).hexdigest()
