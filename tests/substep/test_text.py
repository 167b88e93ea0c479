"""The text of kernels: which arrays it writes."""

from __future__ import annotations

from simphys.substep.text import find_written

HEAD = "def loop(a: array_real, b: array_vector_2, at: ints, n: i32):\n"


def test_arrays_at_the_beginning_of_a_line_are_written() -> None:
    body = "    for i in range(n):\n        x = a[at[i]]\n        b[at[i]] = fn(x)\n        c[0] = x\n"
    assert find_written(HEAD + body) == frozenset({"b"})


def test_an_array_that_a_function_takes_may_be_written_there() -> None:
    assert find_written(HEAD + "    fn(a, n)\n    b[0] = a[0]\n") is None
