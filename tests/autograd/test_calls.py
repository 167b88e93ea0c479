"""Kernel calls that follow each other: on a GPU one launch, elsewhere each by itself, with the same results."""

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels import calls, device
from simphys.autograd.kernels.calls import Chain, Entries, KernelCall, join
from simphys.autograd.kernels.runtime import ti

N, SIZE = 24, 8
"""Numbers in an array, and in each part that loops go through."""

on_gpu = pytest.mark.skipif(
    "not runtime.settings().on_gpu or (runtime.compiler, runtime.settings().arch) == ('taichi', 'vulkan')",
    reason="launches are joined on a GPU, by Quadrants or for CUDA; SIMPHYS_TEST_ARCH=vulkan runs it",
)


@functools.cache
@no_type_check
def loops(real: Any) -> SimpleNamespace:
    reals = ti.types.ndarray(dtype=real, ndim=1)
    pairs = ti.types.ndarray(dtype=ti.types.vector(2, real), ndim=1)

    @kernel
    def scale(count: ti.i32, factor: real, x: reals, begin: ti.i32):
        for i in range(count):
            x[begin + i] *= factor

    @kernel
    def shift(count: ti.i32, by: ti.i32, adds: ti.i32, x: reals, y: reals, begin: ti.i32, to: ti.i32):
        """Read at other places than written, in a second loop what the first one wrote."""
        for i in range(count):
            y[to + i] = ti.select(adds == 1, y[to + i], 0.0) + x[begin + (i + by) % count]
        for i in range(count):
            x[begin + i] = 0.5 * y[to + (i + 1) % count]

    @kernel
    def swap(count: ti.i32, x: pairs):
        for i in range(count):
            x[i] = ti.Vector([x[i][1], x[i][0]])

    return SimpleNamespace(scale=scale, shift=shift, swap=swap)


class Arrays:
    """Two arrays, and entries of them that move."""

    def __init__(self) -> None:
        self.x, self.y = (device.to_device(values(seed)) for seed in (1, 2))
        self.moving = Entries(self.x), Entries(self.y, 4)

    def calls(self) -> list[Any]:
        x, y = self.moving
        made = loops(runtime.real())
        both = [(x, 0), (y, 2)]
        scale = KernelCall(made.scale, SIZE, 1.5, self.x, moving=[(x, 3)])
        return Chain(
            scale,
            KernelCall(made.shift, SIZE, 3, 0, self.x, self.y, moving=both),
            Chain(KernelCall(made.shift, SIZE, 1, 1, self.y, self.x, moving=both[::-1]), scale),
            KernelCall(made.scale, N, -0.75, self.y, 0),
        ).launches

    def read(self) -> np.ndarray:
        return np.concatenate([device.to_host(array, (N,)) for array in (self.x, self.y)])


def values(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(1, 2, N).astype(runtime.real_dtype())


def run(arrays: Arrays, launches: list[calls.Launch]) -> np.ndarray:
    """Launch for two places of the moving entries."""
    for begin in (0, 5):
        arrays.moving[0].begin = begin
        for launch in launches:
            launch()
    return arrays.read()


@pytest.mark.gpu
def test_joined_calls_compute_what_they_compute_alone() -> None:
    alone, joined = Arrays(), Arrays()
    expected = run(alone, alone.calls())
    launch = calls.Joined(joined.calls())  # on the processor, too, though launches are not joined there
    np.testing.assert_allclose(run(joined, [launch]), expected, rtol=4 * np.finfo(expected.dtype).eps)


@pytest.mark.gpu
@on_gpu
def test_calls_in_a_row_are_one_launch_of_one_loop_each() -> None:
    arrays = Arrays()
    (launch,) = join(arrays.calls())
    launch()
    before = runtime.counters.now()
    launch()
    found = runtime.counters.now() - before
    assert found.launches == 1
    assert found.tasks in (7, 0)  # Taichi does not tell


def some_function() -> None:
    """Do nothing, as a call of the host."""


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize(
    ("change", "numbers"),
    [
        (lambda each: [*each[:2], some_function, *each[2:]], [2, 1, 3]),
        (lambda each: [some_function, *each, some_function], [1, 5, 1]),
        (lambda each: [*each[:4], KernelCall(loops(runtime.real()).swap, 2, each[0].arguments[2])], [4, 1]),
    ],
    ids=["a call of the host between", "around", "an array as that of vectors"],
)
def test_calls_are_joined_as_far_as_they_may(change: Callable[..., Any], numbers: list[int]) -> None:
    arrays = Arrays()
    assert [len(part) for part in calls.divide(change(arrays.calls()))] == numbers


@pytest.mark.gpu
@on_gpu
def test_a_launch_binds_no_more_arrays_than_the_driver_does(monkeypatch: pytest.MonkeyPatch) -> None:
    if runtime.settings().arch not in calls.ARCHS:
        pytest.skip("this driver binds any number")
    monkeypatch.setattr(calls, "BINDINGS", 2)
    third = KernelCall(loops(runtime.real()).scale, N, 1.0, device.to_device(values(3)), 0)
    arrays = Arrays()
    assert [len(part) for part in calls.divide([*arrays.calls(), third])] == [5, 1]


@pytest.mark.gpu
@on_gpu
def test_long_kernels_aredivided(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = Arrays()
    expected = run(arrays, join(arrays.calls()))
    monkeypatch.setattr(calls, "MOST_LINES", 20)
    divided = Arrays()
    launches = join(divided.calls())
    assert len(launches) > 1
    np.testing.assert_allclose(run(divided, launches), expected, rtol=4 * np.finfo(expected.dtype).eps)
