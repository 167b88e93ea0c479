"""The results that combine(save=names) keeps, and those that backward replays, in order."""

from __future__ import annotations

import weakref
from typing import Any, ClassVar

import numpy as np
import pytest

from simphys.autograd import Context, Function, GraphError, InputError, Tensor, grad, ops, tensor
from simphys.autograd.compose.pipe import combine
from simphys.autograd.look.compare import compare
from simphys.autograd.look.saved_memory import saved_bytes
from simphys.autograd.proof.gradcheck import gradcheck

from .test_compose import DOUBLE, ITEM, Square, leaf, nested, product, shear, turn, wave

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(
    ("save", "replayed"),
    [
        ([], ["f", "g", "h", "k"]),
        (["f"], ["g", "h", "k", "f"]),
        (["g"], ["h", "k", "f", "g"]),
        (("f", "h"), ["k", "g", "h", "f"]),
        ({"f", "g", "h"}, ["k", "h", "g", "f"]),
        (["k"], ["f", "g", "h", "k"]),
    ],
    ids=lambda names: " ".join(sorted(names)) if isinstance(names, set) else str(names),
)
def test_backward_replays_each_function_once_segment_by_segment(save: Any, replayed: list[str]) -> None:
    calls: list[str] = []
    x = leaf(0.3)
    y = combine(*called(calls, "f", "g", "h", "k"), save=save)(x)
    assert calls == ["f", "g", "h", "k"]
    calls.clear()
    y.backward()
    assert calls == replayed


def test_with_save_all_nothing_is_replayed() -> None:
    calls: list[str] = []
    combine(*called(calls, "f", "g"), save="all")(leaf(0.3)).backward()
    assert calls == ["f", "g"]


@pytest.mark.parametrize("save", [["turn"], ["shear"], ["turn", "shear"], ["product"]], ids=str)
def test_one_node_gives_the_nested_values_and_gradients(save: list[str]) -> None:
    one = combine(turn, shear, product, save=save)
    inputs = [leaf(0.3, -1.2), leaf(0.7, 0.2)]
    report = compare(nested, one, inputs)
    assert report.combined.nodes == 1
    if DOUBLE:
        gradcheck(one, inputs)


def test_the_name_of_the_node_lists_its_functions() -> None:
    y = combine(ops.sin, Square.apply, save=["sin"])(leaf(0.3))
    assert y.grad_fn.name() == "Combine(sin, Square)Backward"


def test_a_function_has_the_name_of_its_class() -> None:
    x = tensor(np.ones(100), requires_grad=True)
    y = combine(ops.sin, Square.apply, ops.exp, ops.sum, save=["Square"])(x)
    assert 0 <= saved_bytes([y.grad_fn]) - 2 * 100 * ITEM < 100  # the input and the square; sums, the result


def test_a_name_stands_for_all_functions_of_that_name() -> None:
    size, steps = 100, 8
    x = tensor(np.linspace(0.1, 1.0, size), requires_grad=True)
    y = combine(*[wave] * steps, save=["wave"])(x)
    assert saved_bytes([y.grad_fn]) <= (steps + 1) * size * ITEM + 1000


def test_memory_lies_between_that_of_inputs_and_that_of_all() -> None:
    x = tensor(np.linspace(0.1, 1.0, 10_000), requires_grad=True)
    steps = [sines] * 8
    kept, alive = zip(*[memory(combine(*steps, save=save), x) for save in ("inputs", ["sines"], "all")], strict=True)
    assert kept[0] < kept[1] < kept[2]
    assert kept[1] < 10 * x.data.nbytes
    assert min(alive[0], alive[2]) >= 8 * 16 - 1  # the whole graph: each sine keeps its argument
    assert alive[1] <= 8 + 16  # the kept results, and the graph of one step


def test_results_that_are_no_tensors_are_not_kept() -> None:
    def listed(x: Tensor) -> Any:
        return [ops.sin(x)]

    def first(xs: list[Tensor]) -> Tensor:
        return xs[0] * 2.0

    assert combine(listed, first, save=[])(leaf(0.3)).requires_grad
    with pytest.raises(InputError, match="a Tensor or a plain tuple of Tensors is returned"):
        combine(listed, first, save=["listed"])(leaf(0.3))


def test_a_captured_tensor_is_refused_in_any_segment() -> None:
    w = leaf(2.0)
    for functions in ([ops.sin, lambda x: x * w], [lambda x: ops.sin(x) * w, ops.sin, ops.exp]):
        with pytest.raises(GraphError, match="Pass all such tensors as inputs"):
            combine(*functions, save=["sin"])(leaf(0.3)).backward()


def test_a_function_that_writes_to_a_kept_result_is_noticed() -> None:
    def careless(x: Tensor) -> Tensor:
        with x.writable() as values:
            values[...] = 1.0
        return x * 2.0

    with pytest.raises(GraphError, match="forward wrote to input 0"):
        combine(ops.sin, careless, save=["sin"])(leaf(0.3)).backward()


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"a list of names out of \['sin', 'exp'\]; found \['cos'\]"):
        combine(ops.sin, ops.exp, save=["cos"])


def test_a_lambda_has_no_name() -> None:
    with pytest.raises(InputError, match=r"out of \['sin'\].*define a lambda by def"):
        combine(ops.sin, lambda x: x, save=["<lambda>"])


@pytest.mark.parametrize("save", ["sin", None, 3, [ops.sin]], ids=["a name", "nothing", "a number", "a function"])
def test_anything_else_is_refused(save: Any) -> None:
    with pytest.raises(InputError, match=r'save is "inputs", "all" or a list of names'):
        combine(ops.sin, save=save)


def called(calls: list[str], *names: str) -> list[Any]:
    """A function of each name that records its calls."""

    def make(name: str) -> Any:
        def function(x: Tensor) -> Tensor:
            calls.append(name)
            return ops.sin(x)

        function.__name__ = name
        return function

    return [make(name) for name in names]


class Sine(Function):
    """sin x, which keeps its argument, and counts the results that are alive."""

    results: ClassVar[list[weakref.ref[np.ndarray]]] = []
    most: ClassVar[int] = 0

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Any:
        ctx.save_for_backward(x)
        result = np.sin(x.data)
        Sine.results.append(weakref.ref(result))
        Sine.count()
        return result

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        Sine.count()
        return np.cos(x.data) * adj.data

    @classmethod
    def count(cls) -> None:
        cls.most = max(cls.most, sum([result() is not None for result in cls.results]))


def sines(x: Tensor) -> Tensor:
    for _ in range(16):
        x = Sine.apply(x)
    return x


def memory(fn: Any, x: Tensor) -> tuple[int, int]:
    """Memory kept for backward [B], and the largest number of sines that are alive at once during backward."""
    y = fn(x)
    kept = saved_bytes([y.grad_fn])
    Sine.most = 0
    grad(y, x, [np.ones(x.shape)])
    return kept, Sine.most
