"""Memory of a device: a pool that gives arrays back, counters of what travels, and launches in each mode."""

import functools
import gc
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import InputError, kernel, runtime
from simphys.autograd.kernels import device, device_variant
from simphys.autograd.kernels.device import DeviceArray
from simphys.autograd.kernels.runtime import ti

counters = runtime.counters

on_device = pytest.mark.skipif(
    "not runtime.settings().on_gpu",
    reason="the memory is the host's; SIMPHYS_TEST_ARCH=vulkan SIMPHYS_TEST_PRECISION=f32 runs it on a device",
)


@functools.cache
@no_type_check
def kernels(real: Any) -> SimpleNamespace:
    reals = ti.types.ndarray(dtype=real, ndim=1)
    vectors = ti.types.ndarray(dtype=ti.types.vector(2, real), ndim=1)

    @kernel
    def add(x: reals, v: vectors, out: reals, factor: real, count: ti.i32):
        for i in range(count):
            out[i] += factor * x[i] * v[i][1]

    return SimpleNamespace(add=add)


def values(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(size=shape).astype(runtime.real_dtype())


@pytest.mark.gpu
@on_device
@pytest.mark.parametrize("mode", ["reuse", "copy", "fresh"])
def test_launches_are_right_in_each_mode_and_no_spent_context_is_launched(
    mode: device_variant.Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    if mode == "copy" and runtime.compiler == "taichi":
        pytest.skip("Taichi cannot copy a context")
    if mode == "reuse" != device_variant.mode():
        pytest.skip("a launch spends its context here, and to launch that again ends the process")
    monkeypatch.setitem(device_variant.MODES, (runtime.compiler, runtime.settings().arch), mode)
    launched = []

    def launch(variant: Any, context: Any) -> None:
        launched.append(context)
        original(variant, context)

    original = device_variant.DeviceVariant.launch_context
    monkeypatch.setattr(device_variant.DeviceVariant, "launch_context", launch)
    x, v = values(5), values(5, 2)
    kernels.cache_clear()
    out, others = device.to_device(np.zeros_like(x)), device.to_device(np.zeros_like(x))
    given = device.to_device(x), device.to_device(v, axes=1)
    before = counters.now()
    bound = kernels(runtime.real()).add.bind(*given, out)
    for factor in (1.0, 2.0):
        bound(factor, 5)
        kernels(runtime.real()).add(*given, others, 10 * factor, 4)
    assert (counters.now() - before).launches == 4 and (counters.now() - before).uploads == 0
    expected = x * v[:, 1]
    np.testing.assert_allclose(device.to_host(out, (5,)), 3 * expected, rtol=1e-6)
    np.testing.assert_allclose(device.to_host(others, (5,)), np.append(30 * expected[:4], 0.0), rtol=1e-6)
    assert len(launched) == 4
    if mode != "reuse":
        assert len({id(context) for context in launched}) == 4


@pytest.mark.gpu
@on_device
def test_arrays_of_the_host_and_of_the_device_may_take_turns() -> None:
    x, v, out = values(5), values(5, 2), np.zeros(5, runtime.real_dtype())
    add, expected = kernels(runtime.real()).add, x * v[:, 1]
    mine = device.to_device(out)
    for _ in range(2):
        add(device.to_device(x), device.to_device(v, axes=1), mine, 1.0, 5)
        add(x, v, out, 1.0, 5)
    np.testing.assert_allclose(out, 2 * expected, rtol=1e-6)
    np.testing.assert_allclose(device.to_host(mine, (5,)), 2 * expected, rtol=1e-6)


@pytest.mark.gpu
@on_device
def test_an_array_returns_to_the_pool_also_from_a_cycle_of_references() -> None:
    gc.collect()
    device.empty_pool()
    before = counters.now()
    mine = device.to_device(values(7))
    holder: dict[str, Any] = {"array": mine, "own": mine.own}
    holder["itself"] = holder
    del mine, holder
    gc.collect()
    assert (counters.now() - before).pooled_bytes == 7 * 4
    again = device.to_device(values(7))
    np.testing.assert_array_equal(device.to_host(again, (7,)), values(7))
    assert (counters.now() - before).pooled_bytes == 0 and (counters.now() - before).live_bytes == 7 * 4


@pytest.mark.gpu
@on_device
def test_an_array_of_another_kind_is_refused() -> None:
    add, x = kernels(runtime.real()).add, device.to_device(values(5))
    wrong = r"kernel add, argument v: it is a 1-d array of float32 with elements of shape \(2,\).*DeviceArray"
    with pytest.raises(InputError, match=wrong):
        add(x, x, x, 1.0, 5)
    with pytest.raises(InputError, match=r"argument x: it is a 1-d array of float32.*int32"):
        add(DeviceArray(np.dtype(np.int32), (5,)), x, x, 1.0, 5)


@pytest.mark.gpu
def test_what_travels_is_counted() -> None:
    before = counters.now()
    array = device.to_device(values(10))
    device.to_host(array, (10,))
    found = counters.now() - before
    expected = (1, 1, 40, 40) if runtime.settings().on_gpu else (0, 0, 0, 0)
    assert (found.uploads, found.downloads, found.bytes_up, found.bytes_down) == expected
