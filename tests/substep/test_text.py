"""The text of kernels: which arrays it writes."""

from __future__ import annotations

from simphys.substep.action import Action, Site
from simphys.substep.program import Domain
from simphys.substep.schedule import schedule
from simphys.substep.text import find_written, loop_lines

HEAD = "def loop(a: array_real, b: array_vector_2, at: ints, n: i32):\n"


def test_arrays_at_the_beginning_of_a_line_are_written() -> None:
    body = "    for i in range(n):\n        x = a[at[i]]\n        b[at[i]] = fn(x)\n        c[0] = x\n"
    assert find_written(HEAD + body) == frozenset({"b"})


def test_an_array_that_a_function_takes_may_be_written_there() -> None:
    assert find_written(HEAD + "    fn(a, n)\n    b[0] = a[0]\n") is None


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
