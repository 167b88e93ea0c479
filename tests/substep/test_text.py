"""The text of kernels: which arrays it writes."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.fuzz.steps.bodies import draw
from benchmarks.fuzz.steps.checks import evaluate
from simphys.autograd.kernels.generated import GeneratedKernel
from simphys.substep import text
from simphys.substep.action import Action, Slot
from simphys.substep.place import Place
from simphys.substep.program import Domain, make_local
from simphys.substep.schedule import schedule
from simphys.substep.site import Site
from simphys.substep.text import find_written, loop_lines


def test_loops_write_the_arrays_of_slots_that_leave_them() -> None:
    domain = Domain("cells", 10)
    slots = [Slot("value", make_local(name, domain)) for name in "abc"]
    read, local, stored = slots

    def emit(site: Site) -> None:
        site.store(local, local.value.elements, site.load(read, read.value.elements))
        site.store(stored, stored.value.elements, site.load(local, local.value.elements))

    groups = schedule([Action(domain, emit, {read: "own"}, {local: "own", stored: "own"})])
    places = {read: Place("m_a", "0"), stored: Place("m_c", "0")}
    assert find_written(groups, places) == {"m_c"}
    assert "m_c[i] = c_3" in "\n".join(loop_lines(groups[0], places))


@pytest.mark.parametrize("seed", [0, 3, 5])
def test_the_text_of_a_kernel_writes_the_arrays_that_its_actions_name(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []

    class Read(GeneratedKernel):
        def __init__(self, function: Any, **options: Any) -> None:
            super().__init__(function, **options)
            found.append((self.written, GeneratedKernel(function).written))

    text._compile.cache_clear()
    monkeypatch.setattr(text, "GeneratedKernel", Read)
    evaluate(draw(seed))
    assert found and all([named == written for named, written in found])


def test_a_loop_within_the_body_of_an_element_shares_a_wide_loop() -> None:
    """The lines of several elements interleave, but for those of inner loops."""

    def inner(site: Site) -> None:
        with site.block("for k in range(3):"):
            site.line("total += k")

    domain = Domain("cells", 10)
    (group,) = schedule([Action(domain, lambda site: site.line("total = 0"), width=4), Action(domain, inner)])
    found: dict[str, int] = {"n_cells": 10}
    exec("\n".join(loop_lines(group, {})), {}, found)
    assert found["total"] == 3 and found["i"] == 9
