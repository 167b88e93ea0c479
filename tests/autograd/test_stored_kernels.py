"""Compiled kernels are found on disk by fingerprints, which tell apart all that the compiler reads."""

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels import stored
from simphys.autograd.kernels.fingerprint import fingerprint
from simphys.autograd.kernels.runtime import ti

quadrants_alone = pytest.mark.skipif(runtime.compiler != "quadrants", reason="Taichi's cache has no names for kernels")

FACTOR = 2.0
LIMITS = SimpleNamespace(low=0.0, high=(1.0, 2.0))
shapes = ModuleType("shapes")
vars(shapes).update(side=3, area=lambda side: side * side)


@ti.func
def helper(x):
    return FACTOR * x


@no_type_check
def make(*, power=2, real=ti.f64, limits=LIMITS, helped=helper):
    """Return a function as kernels are: with a closure, global names and types."""

    def scale(x: ti.types.ndarray(dtype=real, ndim=1)):
        for i in range(3):
            x[i] = helped(x[i]) ** power + limits.high[1] * shapes.area(shapes.side)

    return scale


@quadrants_alone
def test_what_is_the_same_has_the_same_fingerprint() -> None:
    assert fingerprint(make()) == fingerprint(make()) is not None
    assert fingerprint(make(), "f64") != fingerprint(make(), "f32")


def test_a_source_that_was_written_since_it_was_imported_has_no_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler reads the file, where other lines may stand by now."""
    monkeypatch.setattr("simphys.autograd.kernels.fingerprint._STARTED", 0.0)
    assert fingerprint(make()) is None


@no_type_check
def variants() -> dict[str, Callable[..., Any]]:
    @ti.func
    def other(x):
        return FACTOR + x

    def negated(x: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        for i in range(3):
            x[i] = -x[i]

    return {
        "a number in the closure": make(power=3),
        "a type": make(real=ti.f32),
        "a value in a namespace": make(limits=SimpleNamespace(low=0.0, high=(1.0, 3.0))),
        "a helper": make(helped=other),
        "the body": negated,
    }


@quadrants_alone
def test_what_differs_has_another_fingerprint() -> None:
    marks = {name: fingerprint(each) for name, each in variants().items()}
    assert None not in marks.values()
    assert len({*marks.values(), fingerprint(make())}) == len(marks) + 1


@quadrants_alone
@pytest.mark.parametrize(
    ("place", "name", "value"),
    [(sys.modules[__name__], "FACTOR", 3.0), (shapes, "side", 4), (shapes, "area", lambda side: 4 * side)],
)
def test_global_names_and_what_modules_hold_are_read(
    place: Any, name: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = fingerprint(make())
    monkeypatch.setattr(place, name, value)
    assert fingerprint(make()) not in (None, before)


def test_what_captures_something_unknown_has_none() -> None:
    assert fingerprint(make(limits=object())) is None
    assert fingerprint(make(power=iter([1]))) is None


PROGRAM = """
import numpy as np
from simphys.autograd import runtime
from simphys.autograd.kernels import stored
from tests.autograd import test_stored_kernels as here

runtime.init()
loads, load = [], stored.load
def loaded(*given):
    loads.append(load(*given) is not None)
    return load(*given)
stored.load = loaded
x = np.ones(3)
here.kernels(1.5).shift(x)
print(loads, x.tolist())
"""


@functools.cache
@no_type_check
def kernels(by):
    reals = ti.types.ndarray(dtype=runtime.real(), ndim=1)

    @kernel
    def shift(x: reals):
        for i in range(3):
            x[i] = helper(x[i]) + by

    return SimpleNamespace(shift=shift)


def test_other_programs_of_the_compiler_have_another_cache() -> None:
    """Their end removes a quarter of all kernels in a folder that is larger than their limit, 100 MB."""
    config = ti.lang.impl.current_cfg()
    theirs = ti._lib.core.CompileConfig()
    assert config.offline_cache_file_path != theirs.offline_cache_file_path
    assert config.offline_cache_max_size_of_files > theirs.offline_cache_max_size_of_files


@quadrants_alone
def test_a_second_process_takes_the_kernel_from_the_cache_and_a_lost_one_is_compiled(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "QD_OFFLINE_CACHE_FILE_PATH": str(tmp_path / "cache"), "PYTHONPATH": str(root)}

    def run() -> str:
        command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    assert run().endswith("[False] [3.5, 3.5, 3.5]")
    assert run().endswith("[True] [3.5, 3.5, 3.5]")
    for artifact in tmp_path.rglob("*"):
        if artifact.is_file() and artifact.parent.name != stored.FOLDER:
            artifact.unlink()
    assert run().endswith("[False] [3.5, 3.5, 3.5]")


@quadrants_alone
def test_two_kernels_of_one_fingerprint_are_an_error_where_this_is_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "verifying", True)
    config = SimpleNamespace(offline_cache=True, offline_cache_file_path=str(tmp_path))
    program = SimpleNamespace(config=lambda: config)
    stored.store("mark", program, "first")
    stored.store("mark", program, "first")
    with pytest.raises(stored.WrongFingerprint, match="mark is first in the cache, and now second"):
        stored.store("mark", program, "second")
    stored.store(None, program, "third")
    assert [path.name for path in (tmp_path / stored.FOLDER).iterdir()] == ["mark"]


def test_a_kernel_runs_the_same() -> None:
    x = np.ones(3, runtime.real_dtype())
    kernels(0.5).shift(x)
    assert x.tolist() == [2.5, 2.5, 2.5]
