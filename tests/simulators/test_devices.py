"""Gradients on a GPU are those of the processor in f64, but for what the processor itself loses in the same precision.

SIMPHYS_TEST_ARCH=vulkan SIMPHYS_TEST_PRECISION=f32 pytest -m gpu tests/simulators/test_devices.py
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from simphys.autograd import InputError, runtime
from simphys.autograd.kernels import staging
from simphys.simulators.smoke.transport import Transport
from simphys.substep import Chain, Launch
from simphys.substep.launched import Target

from ..helpers.contract import Result
from ..helpers.processor import Place, compute, compute_on_processor
from .test_contract import CONTRACTS

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not runtime.settings().on_gpu, reason="SIMPHYS_TEST_ARCH names a GPU's arch"),
]

QUICK = ("elastic/batches/box", "pendulum/modes/chain, variational", "smoke/modes/walls")
"""Cases of the quick suite in place of the first one of the modes."""
SLOW = ("mpm", "rigid")
"""Simulators whose kernels compile for minutes on Mesa's driver."""
REFUSED = ("elastic/modes/layers", "elastic/modes/space", "elastic/budgets/layers", "mpm/modes/colliders")
"""Cases with more arrays on the device than drivers of Vulkan and Metal bind."""


def list_places() -> dict[str, Place]:
    """List all cases by name; names of those in the quick suite end with "quick"."""
    found = {}
    for simulator, contract in CONTRACTS.items():
        others = any(name.startswith(f"{simulator}/") for name in QUICK)
        for kind in ("modes", "batches", "budgets"):
            for number, case in enumerate(getattr(contract, kind)):
                name = f"{simulator}/{kind}/{case.name}"
                first = (kind, number) == ("modes", 0) and not others and simulator not in SLOW
                found[f"{name}, quick" if first or name in QUICK else name] = Place(simulator, kind, number)
    return found


PLACES = list_places()


@pytest.mark.parametrize("name", PLACES)
def test_a_device_gives_the_gradients_of_the_processor(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By each parameter and initial value; alone, in a batch, and within a budget of memory; by all kernels."""
    place = PLACES[name]
    if name in REFUSED and runtime.settings().arch in staging.ARCHS:
        with pytest.raises(InputError, match="a device binds 30 arrays"):
            compute(place)
        return
    assert not differing(place, compute(place))
    if place.case.large is not None:
        place.case.large(monkeypatch)
        assert not differing(place, compute(place))


def test_a_launch_that_a_device_leaves_out_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof that the test above can fail: the adjoints of ghosts are lost."""
    pass_on = vars(Transport)["pass_on_ghosts"].func

    def lose(transport: Transport) -> Launch:
        return Chain() if runtime.settings().on_gpu else pass_on(transport)

    monkeypatch.setattr(Transport, "pass_on_ghosts", property(lose))
    place = PLACES["smoke/modes/channel"]
    assert "gradient by velocity" in differing(place, compute(place))


def test_a_sum_that_loses_terms_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Likewise for kernels of an operation over arrays of the engine: an adjoint is set, to which another is added."""
    monkeypatch.setattr(
        import_module("simphys.substep.launched"), "Target", lambda entries, adds=False: Target(entries)
    )
    place = PLACES["smoke/modes/walls, quick"]
    assert "gradient by velocity" in differing(place, compute(place))


def differing(place: Place, found: Result) -> dict[str, str]:
    """Return the results that differ from the processor's by more than rounding explains, and by how much.

    In f64 by a millionth of the largest value; in f32 by 20 times what the processor loses in f32.
    Gradients that are tiny beside others, as those that are zero but for rounding, are compared with the others.
    """
    expected = compute_on_processor(place, "f64")
    if runtime.settings().precision == "f64":
        bounds, floor = dict.fromkeys(expected, 1e-6), 1e-9
    else:
        floor = 1e-4
        own = errors(compute_on_processor(place, "f32"), expected, floor)
        bounds = {name: 20 * error + 1e-4 for name, error in own.items()}
    of_device = errors(found, expected, floor)
    return {name: f"{of_device[name]:.1e}" for name, bound in bounds.items() if not of_device[name] <= bound}


def errors(found: Result, expected: Result, floor: float) -> dict[str, float]:
    """Return the errors as fractions of the largest value of each result, or of `floor` of the largest of all."""
    assert found.keys() == expected.keys()
    kinds = [[name for name in expected if name.startswith("gradient by ") is one] for one in (False, True)]
    result: dict[str, Any] = {}
    for names in kinds:
        largest = max([float(np.abs(expected[name]).max(initial=0)) for name in names], default=0.0)
        for name in names:
            scale = max(float(np.abs(expected[name]).max(initial=0)), floor * largest) or 1.0
            result[name] = float(np.abs(found[name].astype(float) - expected[name]).max(initial=0)) / scale
    return result
