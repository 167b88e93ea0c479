"""A device without room for a plan gets one with less memory, once; then an error says what did not fit."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest

from simphys.autograd import DeviceMemoryError, runtime
from simphys.autograd.kernels import device
from simphys.autograd.kernels.counters import counters

from .cases import assert_bitwise, case, gradient
from .pendulums import PendulumEngine


def full(*_: Any, **__: Any) -> Any:
    raise DeviceMemoryError("memory of a test", "arrays fit", "no room", "Make room.")


def test_a_forward_sweep_without_room_is_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    given = case(steps=100, keep="final")
    expected, whole = gradient(given), given.plan()
    original = PendulumEngine.segment

    def segment(self: Any, steps: int) -> Any:
        return original(self, steps) if steps < whole.block else full()

    monkeypatch.setattr(PendulumEngine, "segment", segment)
    trajectory = given.rollout()
    assert trajectory.plan is not None
    assert trajectory.plan.predicted_bytes <= 0.75 * whole.predicted_bytes
    assert_bitwise(gradient(given), expected)


def test_a_backward_sweep_without_room_is_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    given = case(steps=100, keep="final")
    expected = gradient(given)
    original = PendulumEngine.pull
    held: list[Any] = []

    def pull(self: Any, *arguments: Any, **options: Any) -> None:
        if not held:
            array = np.zeros(7)
            held.append(weakref.ref(array))
            try:
                raise RuntimeError("out of memory")
            except RuntimeError:
                full(array)
        assert held[0]() is None, "what the failed sweep held makes room"
        original(self, *arguments, **options)

    monkeypatch.setattr(PendulumEngine, "pull", pull)
    assert_bitwise(gradient(given), expected)
    assert held


@pytest.mark.parametrize("name", ["segment", "pull"])
def test_a_plan_is_cut_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PendulumEngine, name, full)
    with pytest.raises(DeviceMemoryError, match="no room"):
        gradient(case(steps=100, keep="final"))


@pytest.mark.gpu
@pytest.mark.skipif(not runtime.settings().on_gpu, reason="SIMPHYS_TEST_ARCH names a GPU's arch")
def test_the_memory_that_is_not_in_use_makes_room_first(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = 1
    original = device.ti.ndarray

    def ndarray(*arguments: Any) -> Any:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise RuntimeError("CUDA_ERROR_OUT_OF_MEMORY")
        return original(*arguments)

    device.to_device(np.zeros(4321))  # which returns to the pool
    monkeypatch.setattr(device.ti, "ndarray", ndarray)
    device.to_device(np.zeros(1234))
    assert counters.pooled_bytes <= 1234 * runtime.real_dtype().itemsize
    failures = 2
    with pytest.raises(DeviceMemoryError, match=r"an array of [\d,]+ bytes, beside [\d,]+ in use"):
        device.to_device(np.zeros(2345))


@pytest.mark.gpu
@pytest.mark.skipif(not runtime.settings().on_gpu, reason="SIMPHYS_TEST_ARCH names a GPU's arch")
def test_a_fault_of_an_earlier_launch_is_no_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA reports it in the next call, whatever that is."""

    def ndarray(*_: Any) -> Any:
        raise RuntimeError("CUDA Error: an illegal memory access was encountered while calling malloc_async")

    monkeypatch.setattr(device.ti, "ndarray", ndarray)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        device.to_device(np.zeros(3456))
