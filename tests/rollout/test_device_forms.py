"""On a GPU, launches of one step, of several steps, and blocks of threads that go through time give the same."""

from __future__ import annotations

from typing import Any

import pytest

from simphys.autograd import runtime
from simphys.rollout.engine import forms, kernels
from simphys.simulator.memo import memo

from ..helpers.processor import Place, compute
from ..simulators.test_contract import CONTRACTS
from ..simulators.test_devices import differing

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not runtime.settings().on_gpu, reason="SIMPHYS_TEST_ARCH names a GPU's arch"),
]

QUICK = ("charges/modes", "mass_spring/modes", "mass_spring/batches", "wave/modes")
"""Kinds of cases whose first one is in the quick suite: pairs, edges, members, and a stencil."""
FORMS = ("block of 32, quick", "block of 64", "block of 256", "steps one by one", "several steps, quick")
SEVERAL = 2
"""Steps of a launch: few, as the horizons of cases are short, and do not all have a multiple of them."""


def list_places() -> dict[str, Place]:
    """List the cases, alone and in a batch, by name; names of those in the quick suite end with "quick"."""
    found = {}
    for simulator, contract in CONTRACTS.items():
        for kind in ("modes", "batches", "budgets"):
            for number, case in enumerate(getattr(contract, kind)):
                name = f"{simulator}/{kind}/{case.name}"
                quick = f"{simulator}/{kind}" in QUICK and number == 0
                found[f"{name}, quick" if quick else name] = Place(simulator, kind, number)
    return found


PLACES = list_places()


def choose(form: str, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Let engines compute in a form. Returns a list that gets, for each kernel made, whether it is of that form."""
    seen = []
    in_block, in_several = form.startswith("block"), form.startswith("several")
    monkeypatch.setattr(forms, "GPU_SERIAL", 0)  # else a thread goes through time by itself
    monkeypatch.setattr(forms, "BLOCK_ARCHS", {runtime.settings().arch} if in_block else set())
    if in_block:
        lanes = int(form.removesuffix(", quick").rpartition(" ")[2])
        for name in ("BLOCK_ELEMENTS", "BLOCK_US"):
            monkeypatch.setattr(forms, name, 10**9)
        for name in ("LEAST_LANES", "MOST_LANES"):
            monkeypatch.setattr(forms, name, lanes)
    monkeypatch.setattr(forms, "MOST_STEPS", SEVERAL if in_several else 1)
    monkeypatch.setattr(forms, "MOST_LINES", 10**6)
    monkeypatch.setattr(forms, "FEWEST_LAUNCHES", 1)

    def make(name: str, *given: Any, **options: Any) -> Any:
        seen.append(options["block"] if in_block else options["graph"] == in_several)
        return original(name, *given, **options)

    original = kernels.make_kernel
    monkeypatch.setattr(kernels, "make_kernel", make)
    return seen


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PLACES)
def test_all_forms_of_a_rollout_give_the_gradients_of_the_processor(
    name: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = PLACES[name]
    memo(place.case.system().model).clear()
    seen = choose(form, monkeypatch)
    assert not differing(place, compute(place))
    memo(place.case.system().model).clear()
    if name.endswith("quick"):
        assert any(seen)


def test_a_block_whose_threads_do_not_wait_for_each_other_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof that the test above can fail."""

    def without_waiting(*given: Any) -> list[str]:
        return [line for line in original(*given) if "sync" not in line]

    original = kernels.block_lines
    monkeypatch.setattr(kernels, "block_lines", without_waiting)
    place = next(place for name, place in PLACES.items() if name.startswith("mass_spring/modes"))
    memo(place.case.system().model).clear()
    choose("block of 64", monkeypatch)
    assert differing(place, compute(place))
    memo(place.case.system().model).clear()
