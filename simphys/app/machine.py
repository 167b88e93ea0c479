"""`simphys info`: what computes here, and what a scene's work asks of a GPU."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata

import typer

from simphys._version import __version__
from simphys.autograd import InputError, runtime
from simphys.autograd.kernels import width
from simphys.autograd.kernels.counters import Counters
from simphys.autograd.kernels.vulkan import software_driver
from simphys.experiment.scene import Scene

from .report import print_table

PACKAGES = ("scipy", "h5py", "matplotlib", "pydantic")


def describe_machine() -> tuple[dict[str, str], str | None]:
    """Return settings, compiler, registers, versions and archs by name; and a complaint about narrow kernels."""
    found = {name: "yes" if runtime.available(name) else "no" for name in runtime.ARCHS}
    if driver := software_driver():
        found["vulkan"] = f"in software, by {driver}"
    versions = {name: metadata.version(name) for name in PACKAGES}
    present = {f"{name} here": value for name, value in found.items()}
    here, used = width.processor_bits(), width.kernel_bits()
    registers = {"registers": f"{here or 'unknown'} bits in this processor, {used or 'unknown'} in kernels"}
    described = {"simphys": __version__, **runtime.info(), **registers, **versions, **present}
    return described, width.complaint(here, used)


def count_work(scene: Scene) -> dict[str, Counters]:
    """Count launches, and what travels, of a simulation and of a gradient; each was done before, which compiles.

    Errors: InputError on the CPU, where nothing travels.
    """
    if not runtime.settings().on_gpu:
        constraint = "it counts launches on a GPU, and what travels between the host and it"
        raise InputError("info --counters", constraint, "runtime.arch = cpu", "Add runtime.arch=gpu to the command.")

    works: dict[str, Callable[[], object]] = {"simulation": lambda: scene.rollout(only_seen=True)}
    if scene.config.unknowns:
        objective = scene.objective()
        works["gradient"] = lambda: objective.value_and_gradient(objective.start)
    found = {}
    for name, work in works.items():
        work()
        before = runtime.counters.now()
        work()
        found[name] = runtime.counters.now() - before
    return found


def print_work(scene: Scene) -> None:
    """Print the counts of a scene's work, each for a step. Errors: InputError on the CPU."""
    found, steps = count_work(scene), scene.steps
    rows = [
        (
            name,
            f"{count.launches / steps:.2f}",
            f"{count.tasks / steps:.1f}" if count.tasks else "not told",
            f"{count.uploads / steps:.2f}",
            f"{count.downloads / steps:.2f}",
            f"{count.bytes_up / steps / 1e3:.3f}",
            f"{count.bytes_down / steps / 1e3:.3f}",
        )
        for name, count in found.items()
    ]
    heads = ("work", "launches", "loops", "arrays up", "arrays down", "kB up", "kB down")
    print_table(f"A step of {steps}, on {runtime.settings().arch}", heads, rows, numbers=range(1, 7))
    peak = runtime.counters.peak_bytes / 2**20
    typer.echo(f"Arrays of the device took {peak:.1f} MiB at most.")
