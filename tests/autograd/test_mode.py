"""no_grad and enable_grad turn recording off and on, as context managers and as decorators."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from simphys.autograd import Tensor, enable_grad, is_grad_enabled, no_grad, tensor

pytestmark = pytest.mark.gpu


def test_operations_are_recorded_by_default() -> None:
    x = tensor(2.0, requires_grad=True)
    assert is_grad_enabled() and (x * x).requires_grad
    with no_grad():
        y = x * x
        assert not is_grad_enabled()
    assert y.grad_fn is None and not y.requires_grad and y.item() == 4.0
    assert is_grad_enabled()


def test_modes_nest() -> None:
    seen = []
    with no_grad():
        with enable_grad():
            seen.append(is_grad_enabled())
            with no_grad():
                seen.append(is_grad_enabled())
            seen.append(is_grad_enabled())
        seen.append(is_grad_enabled())
    assert seen == [True, False, True, False] and is_grad_enabled()


def test_one_object_may_be_entered_twice() -> None:
    mode = no_grad()
    with mode, mode:
        assert not is_grad_enabled()
    assert is_grad_enabled()


def test_an_error_inside_restores_the_mode() -> None:
    with pytest.raises(ZeroDivisionError), no_grad():
        1 / 0  # noqa: B018
    assert is_grad_enabled()


def test_modes_decorate_functions_also_recursive_ones() -> None:
    @no_grad()
    def square(x: Tensor, depth: int = 0) -> Tensor:
        return square(x, depth - 1) if depth else x * x

    assert not square(tensor(2.0, requires_grad=True), 2).requires_grad
    assert is_grad_enabled()


def test_a_result_computed_without_recording_is_a_constant_later() -> None:
    x = tensor(3.0, requires_grad=True)
    with no_grad():
        c = x * x
    (c * x).backward()
    assert x.grad is not None and x.grad.item() == 9.0


def test_a_decorated_generator_runs_in_the_mode_and_its_caller_does_not() -> None:
    closed = []

    @no_grad()
    def squares(x: Tensor) -> Iterator[Tensor]:
        """Yield squares of squares."""
        try:
            while True:
                x = x * x
                yield x
        finally:
            closed.append(is_grad_enabled())

    x = tensor(2.0, requires_grad=True)
    found = squares(x)
    assert [next(found).requires_grad, is_grad_enabled(), next(found).item()] == [False, True, 16.0]
    found.close()
    assert closed == [False] and is_grad_enabled() and squares.__doc__ == "Yield squares of squares."


def test_a_decorated_generator_is_sent_values_and_errors_and_returns() -> None:
    @no_grad()
    def echo() -> Generator[Any, Any, str]:
        got = None
        while got != "end":
            try:
                got = yield (got, is_grad_enabled())
            except KeyError as error:
                got = str(error)
        return "done"

    talk = echo()
    assert [next(talk), talk.send(3), talk.throw(KeyError("k"))] == [(None, False), (3, False), ("'k'", False)]
    with pytest.raises(StopIteration) as end:
        talk.send("end")
    assert end.value.value == "done" and is_grad_enabled()
