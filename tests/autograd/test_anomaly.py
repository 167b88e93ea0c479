"""Anomaly mode reports the first NaN or inf, forward or backward, with the line of user code that made the node."""

from __future__ import annotations

import gc
import re
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Context, Function, GraphError, Tensor, enable_grad, grad, no_grad, ops, tensor
from simphys.autograd.compose.pipe import checkpoint, combine
from simphys.autograd.look.anomaly import AnomalyError, detect_anomaly
from simphys.autograd.mode import switch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore:(divide by zero|invalid value|overflow) encountered:RuntimeWarning"),
]


def leaf(*values: float) -> Tensor:
    return tensor(values, requires_grad=True)


def root(x: Tensor) -> Tensor:
    y = ops.sqrt(x)
    return ops.sum(y)


def logarithm(x: Tensor) -> Tensor:
    return ops.log(x)


class Split(Function):
    """x and 1 / y, with adjoints that may be wrong."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, y: Tensor, wrong: float) -> Any:
        ctx.wrong = wrong
        ctx.save_for_backward(y)
        return x.data.copy(), 1.0 / y.data

    @staticmethod
    def backward(ctx: Context, adj_x: Tensor, adj_y: Tensor) -> Any:
        (y,) = ctx.saved_tensors
        return adj_x.data, -adj_y.data / y.data**2 + ctx.wrong, None


class Masked(Function):
    """x, and the largest integer for each of its elements."""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Any:
        return x.data.copy(), np.full(x.shape, np.iinfo(np.int64).max)

    @staticmethod
    def backward(ctx: Context, adj: Tensor, _: Any) -> Any:
        return adj.data


class LogInPlace(Function):
    """log x, written to x."""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Any:
        ctx.mark_dirty(x)
        with x.writable() as values:
            np.log(values, out=values)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Any:
        (y,) = ctx.saved_tensors
        return adj.data * np.exp(-y.data)


class Miscounted(Function):
    """x, with a backward that returns too many adjoints."""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Any:
        return x.data.copy()

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Any:
        return adj.data, adj.data


def anomaly(run: Callable[[], Any]) -> AnomalyError:
    """The error of a run in anomaly mode."""
    with pytest.raises(AnomalyError) as caught, detect_anomaly():
        run()
    return caught.value


class TestForward:
    def test_the_error_names_the_function_the_element_and_the_line(self) -> None:
        error = anomaly(lambda: logarithm(leaf(1.0, 0.0)))
        assert (error.function, error.phase, error.position) == ("Log", "forward", 0)
        assert (error.index, error.value) == ((1,), -np.inf)
        assert error.where is not None
        assert (error.where.file, error.where.function) == (__file__, "logarithm")
        assert error.where.source == "return ops.log(x)"
        assert str(error).startswith("Log, forward: output 0 (shape (2,)) is -inf at index (1,).\n  applied at ")
        assert f"{__file__}:{error.where.line} in logarithm: return ops.log(x)" in str(error)

    def test_the_stack_is_of_user_code_and_ends_at_the_line(self) -> None:
        error = anomaly(lambda: logarithm(leaf(0.0)))
        assert [place.function for place in error.stack[-3:]] == ["anomaly", "<lambda>", "logarithm"]
        assert len(error.stack) == 5
        assert not any("autograd/look/anomaly.py" in place.file for place in error.stack)
        assert re.search(r"called from .* in <lambda>: .*\n    called from .* in anomaly: run\(\)", str(error))

    def test_an_input_that_is_bad_already_is_named(self) -> None:
        error = anomaly(lambda: ops.log(leaf(0.0)))
        assert "Its inputs are finite" in str(error)
        error = anomaly(lambda: leaf(1.0, 2.0) * leaf(1.0, np.nan))
        assert "Input 1 is nan at index (1,) already" in str(error)
        error = anomaly(lambda: leaf(1.0) * np.inf)
        assert "Input 1 is inf already" in str(error)

    def test_an_input_that_forward_wrote_to_is_not_named_as_bad(self) -> None:
        error = anomaly(lambda: LogInPlace.apply(tensor([1.0, 0.0])))
        assert "Its other inputs are finite" in str(error)

    def test_the_error_has_the_number_of_the_output(self) -> None:
        error = anomaly(lambda: Split.apply(leaf(1.0), tensor([[1.0, 2.0], [0.0, 0.0]]), 0.0))
        assert (error.function, error.position, error.index) == ("Split", 1, (1, 0))
        assert "output 1 (shape (2, 2)) is inf at index (1, 0)" in str(error)

    def test_a_scalar_has_no_index(self) -> None:
        error = anomaly(lambda: ops.log(tensor(0.0)))
        assert error.index == ()
        assert "output 0 (shape ()) is -inf.\n" in str(error)

    def test_an_unrecorded_call_is_checked(self) -> None:
        with no_grad():
            assert anomaly(lambda: ops.log(leaf(0.0))).function == "Log"

    def test_integers_and_finite_values_pass(self) -> None:
        with detect_anomaly():
            y, largest = Masked.apply(leaf(1.0, float(np.finfo("f4").max)))
            y.backward([1.0, 1.0])
        assert largest.dtype == np.int64

    def test_it_is_an_error_of_the_graph(self) -> None:
        assert isinstance(anomaly(lambda: ops.log(leaf(0.0))), GraphError)


class TestBackward:
    def test_the_error_names_the_adjoint_the_element_and_the_line_of_the_forward(self) -> None:
        error = anomaly(lambda: root(leaf(1.0, 0.0)).backward())
        assert (error.function, error.phase, error.position) == ("Sqrt", "backward", 0)
        assert (error.index, error.value) == ((1,), np.inf)
        assert error.where is not None
        assert (error.where.function, error.where.source) == ("root", "y = ops.sqrt(x)")
        assert str(error).startswith("Sqrt, backward: the adjoint of input 0 (shape (2,)) is inf at index (1,).\n")

    def test_the_error_has_the_number_of_the_input(self) -> None:
        def run() -> None:
            x, y = Split.apply(leaf(1.0), leaf(2.0, 4.0), np.nan)
            ops.sum(x * y).backward()

        error = anomaly(run)
        assert (error.function, error.position, error.index) == ("Split", 1, (0,))

    def test_an_adjoint_without_an_edge_is_not_checked(self) -> None:
        with detect_anomaly():
            x, _ = Split.apply(leaf(1.0), tensor([2.0]), np.nan)
            x.backward([1.0])

    def test_a_bad_seed_is_named_as_the_cause(self) -> None:
        error = anomaly(lambda: ops.sin(leaf(1.0, 2.0)).backward([1.0, np.nan]))
        assert (error.function, error.phase, error.position, error.index) == ("Sin", "incoming", 0, (1,))
        assert "the incoming adjoint of output 0 (shape (2,)) is nan at index (1,)" in str(error)
        assert "it is the seed of backward" in str(error)

    def test_a_bad_seed_is_named_as_the_cause_after_an_earlier_backward(self) -> None:
        def run() -> None:
            y = ops.sin(leaf(1.0))
            (y * 2.0).backward([1.0], retain_graph=True)
            y.backward([np.nan])

        error = anomaly(run)
        assert "it is the seed of backward" in str(error)

    def test_a_sum_that_overflows_is_no_seed(self) -> None:
        def run() -> None:
            x = tensor(1.0, requires_grad=True)
            y = ops.sin(x)
            half = 0.6 * float(np.finfo(x.dtype).max)
            (y * half + y * half * 0.9).backward()

        error = anomaly(run)
        assert (error.function, error.phase, error.value) == ("Sin", "incoming", np.inf)
        assert "the sum overflows" in str(error)

    def test_an_adjoint_that_overflows_in_the_precision_of_its_input(self) -> None:
        class Widened(Function):
            """x in f64, with an adjoint beyond f32."""

            @staticmethod
            def forward(ctx: Context, x: Tensor) -> Any:
                return x.data.astype("f8")

            @staticmethod
            def backward(ctx: Context, adj: Tensor) -> Any:
                return adj.data * 1e300

        x = tensor([1.0], dtype="f4", requires_grad=True)
        error = anomaly(lambda: Widened.apply(ops.sin(x)).backward([1.0]))
        assert (error.function, error.phase, error.value) == ("Widened", "backward", np.inf)

    def test_a_node_from_before_has_no_place_and_a_remedy(self) -> None:
        y = root(leaf(0.0))
        error = anomaly(y.backward)
        assert (error.function, error.where, error.stack) == ("Sqrt", None, ())
        assert "applied before anomaly mode was entered" in str(error)
        assert "run forward inside detect_anomaly()" in str(error)

    def test_a_node_from_before_that_another_node_of_before_reached(self) -> None:
        y = ops.exp(root(leaf(0.0)))
        assert anomaly(y.backward).phase == "backward"

    def test_gradients_of_chosen_tensors_are_checked(self) -> None:
        x = leaf(0.0)
        assert anomaly(lambda: grad(root(x), x)).function == "Sqrt"


class TestInside:
    @pytest.mark.parametrize("save", ["inputs", "all"])
    def test_the_innermost_function_of_a_combined_node_is_reported(self, save: Any) -> None:
        error = anomaly(lambda: combine(ops.neg, logarithm, save=save)(leaf(0.0)))
        assert (error.function, error.phase) == ("Log", "forward")
        assert "inside Combine(neg, logarithm), forward:\n    applied at" in str(error)

    @pytest.mark.parametrize("save", ["inputs", "all"])
    def test_the_innermost_backward_of_a_combined_node_is_reported(self, save: Any) -> None:
        error = anomaly(lambda: combine(root, ops.exp, save=save)(leaf(0.0)).backward())
        assert (error.function, error.phase) == ("Sqrt", "backward")
        assert error.where is not None and error.where.source == "y = ops.sqrt(x)"
        made = "backward" if save == "inputs" else "forward"  # the replayed node, or the one that was kept
        assert f"inside Combine(root, exp), {made}:\n    applied at" in str(error)

    def test_an_error_in_a_replay_has_the_line_of_the_replayed_node(self) -> None:
        def run() -> None:
            y = checkpoint(root, leaf(0.0))
            y.backward()

        error = anomaly(run)
        assert [place.source for place in error.stack[-2:]] == ["y.backward()", "y = ops.sqrt(x)"]
        assert "inside Checkpoint, backward:\n    applied at" in str(error)
        assert "in run: y = checkpoint(root, leaf(0.0))" in str(error)

    def test_an_error_in_a_gradient_names_the_function_of_that_gradient(self) -> None:
        def run() -> None:
            x = leaf(0.0)
            y = ops.sum(x**1.5)
            (slope,) = grad(y, x, create_graph=True)
            slope.backward([1.0])

        error = anomaly(run)
        assert (error.function, error.phase) == ("Pow", "backward")
        assert error.where is not None and error.where.source == "(slope,) = grad(y, x, create_graph=True)"
        assert re.search(r"inside Pow, backward:\n    applied at .* in run: y = ops.sum\(x\*\*1.5\)", str(error))

    def test_the_error_names_all_functions_around_it_the_innermost_first(self) -> None:
        error = anomaly(lambda: checkpoint(combine(logarithm, ops.exp), leaf(0.0)))
        assert re.findall("inside (.*),", str(error)) == ["Combine(logarithm, exp)", "Checkpoint"]

    def test_a_node_from_before_the_mode_is_reported_with_the_remedy(self) -> None:
        y = checkpoint(root, leaf(0.0))
        error = anomaly(y.backward)
        assert error.where is not None and error.where.source == "y = ops.sqrt(x)"
        assert "inside Checkpoint, backward:\n    applied before anomaly mode was entered" in str(error)

    def test_a_hook_that_makes_a_bad_value_is_reported_with_its_line(self) -> None:
        def run() -> None:
            y = ops.sin(leaf(0.3))
            y.register_hook(lambda adj: adj / 0.0)
            y.backward([1.0])

        error = anomaly(run)
        assert error.function == "Div"
        assert error.where is not None and error.where.source == "y.register_hook(lambda adj: adj / 0.0)"

    def test_a_function_that_failed_before_is_not_reported_as_running(self) -> None:
        def careless(x: Tensor) -> Tensor:
            with enable_grad(), pytest.raises(GraphError, match="returned 2 adjoints for 1 inputs"):
                Miscounted.apply(leaf(0.0)).backward([1.0])
            return ops.sin(x)

        with detect_anomaly():
            checkpoint(careless, leaf(0.3))
            for _ in range(2):
                with pytest.raises(AnomalyError) as caught:
                    checkpoint(logarithm, leaf(0.0))
                with pytest.raises(AnomalyError):
                    checkpoint(root, leaf(0.0)).backward()
        assert str(caught.value).count("inside") == 1


class TestSharedMemory:
    def test_a_change_between_forward_and_backward_raises(self) -> None:
        memory = np.array([[1.0, 2.0]])
        x = tensor(memory, share=True)

        def run() -> None:
            y = ops.sum(leaf(3.0, 4.0) * x)
            memory[0, 1] = 5.0
            y.backward()

        error = anomaly(run)
        assert (error.function, error.phase, error.position) == ("Mul", "saved", 1)
        assert (error.index, error.value) == (None, None)
        assert error.where is not None and error.where.source == "y = ops.sum(leaf(3.0, 4.0) * x)"
        assert "saved value 1 (shape (1, 2)) was changed after forward" in str(error)

    def test_unchanged_memory_passes(self) -> None:
        memory = np.array([1.0, 2.0])
        a = leaf(3.0, 4.0)
        with detect_anomaly():
            ops.sum(a * tensor(memory, share=True)).backward()
        assert a.grad is not None and a.grad.data.tolist() == [1.0, 2.0]

    def test_memory_that_only_an_earlier_node_read_may_change_after_its_backward(self) -> None:
        memory = np.array([1.0, 2.0])
        x, a = tensor(memory, share=True), leaf(3.0, 4.0)
        with detect_anomaly():
            for _ in range(2):
                ops.sum(a * x).backward()
                memory += 1.0
        assert a.grad is not None and a.grad.data.tolist() == [3.0, 5.0]

    def test_a_change_inside_a_combined_node_raises(self) -> None:
        memory = np.array([1.0, 2.0])
        x = tensor(memory, share=True)

        def run() -> None:
            y = checkpoint(lambda a, x: ops.sum(a * x), leaf(3.0, 4.0), x)
            memory[0] = 5.0
            y.backward()

        error = anomaly(run)
        assert (error.function, error.phase) == ("Checkpoint", "saved")

    def test_a_write_through_the_tensor_raises_by_its_version(self) -> None:
        x = tensor(np.array([1.0, 2.0]), share=True)
        with detect_anomaly():
            y = ops.sum(leaf(3.0, 4.0) * x)
            with x.writable() as values:
                values[0] = 5.0
            with pytest.raises(GraphError, match="at version 1, saved at version 0"):
                y.backward()


class TestMode:
    def test_outside_of_it_nothing_is_checked(self) -> None:
        with detect_anomaly():
            assert switch.observers
        assert not switch.observers
        assert ops.log(leaf(0.0)).item() == -np.inf

    def test_an_error_inside_leaves_it(self) -> None:
        anomaly(lambda: ops.log(leaf(0.0)))
        assert not switch.observers

    def test_it_nests(self) -> None:
        with detect_anomaly():
            with detect_anomaly():
                assert len(switch.observers) == 1
            with pytest.raises(AnomalyError):
                ops.log(leaf(0.0))
        assert not switch.observers

    def test_one_object_may_be_entered_twice(self) -> None:
        mode = detect_anomaly()
        with mode, mode:
            assert len(switch.observers) == 1
        assert not switch.observers

    def test_it_decorates_functions_also_recursive_ones(self) -> None:
        @detect_anomaly()
        def shifted(x: Tensor, depth: int) -> Tensor:
            return shifted(x, depth - 1) if depth else ops.log(x)

        with pytest.raises(AnomalyError) as caught:
            shifted(leaf(0.0), 2)
        assert [place.function for place in caught.value.stack[-3:]] == ["shifted"] * 3
        assert not switch.observers

    def test_memory_is_free_without_a_garbage_collection(self) -> None:
        gc.disable()
        try:
            with detect_anomaly():
                y = combine(root, ops.exp)(leaf(0.3, 0.7) * 2.0)
                assert y.grad_fn is not None
                node = weakref.ref(y.grad_fn)
                y.backward()
                del y
                assert node() is None
        finally:
            gc.enable()

    def test_gradients_are_those_without_it(self) -> None:
        x, y = leaf(0.3, 0.7), leaf(0.3, 0.7)
        root(x * x).backward()
        with detect_anomaly():
            checkpoint(root, y * y).backward()
        assert x.grad is not None and y.grad is not None
        assert x.grad.data.tolist() == y.grad.data.tolist()
