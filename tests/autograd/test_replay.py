"""A function as one node: the checks of a checkpoint, its forward mode and its second derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simphys.autograd import GraphError, Tensor, enable_grad, grad, ops, tensor
from simphys.autograd.compose.functional import jacobian, jvp
from simphys.autograd.compose.pipe import checkpoint, combine, compose, pipe
from simphys.autograd.errors import MissingJvp
from simphys.autograd.look.compare import compare
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck

from .test_compose import DOUBLE, ITEM, TOLERANCE, Square, gradients, leaf, nested, product, shear, turn, wave

pytestmark = pytest.mark.gpu


class TestCheckpoint:
    def test_one_node_with_the_nested_gradients(self) -> None:
        report = compare(nested, lambda x, y: checkpoint(nested, x, y), [leaf(0.3, -1.2), leaf(0.7, 0.2)])
        assert report.combined.nodes == 1

    def test_inputs_that_are_no_tensors(self) -> None:
        x = leaf(0.5)
        y = checkpoint(lambda x, power, options: x**power * options["factor"], x, 3, {"factor": 2.0})
        y.backward()
        assert x.grad is not None and x.grad.item() == pytest.approx(1.5, rel=TOLERANCE)

    def test_an_array_is_copied(self) -> None:
        x, factor = leaf(0.5), np.array(3.0)
        y = checkpoint(lambda x, factor: x * factor, x, factor)
        factor[...] = 7.0
        y.backward()
        assert x.grad is not None and x.grad.item() == 3.0

    def test_a_result_that_the_loss_ignores(self) -> None:
        x, y = leaf(0.3), leaf(0.7)
        a, _ = checkpoint(turn, x, y)
        a.backward()
        assert x.grad is not None and x.grad.item() == pytest.approx(np.cos(0.7), rel=TOLERANCE)

    def test_a_result_that_depends_on_no_input(self) -> None:
        x = leaf(0.3)
        y, c = checkpoint(lambda x: (ops.sin(x), x.detach() * 2.0), x)
        assert gradients(y * c, [x]) == pytest.approx([0.6 * np.cos(0.3)], rel=TOLERANCE)

    def test_an_input_that_the_result_ignores(self) -> None:
        x, y = leaf(0.3), leaf(0.7)
        checkpoint(lambda x, y: ops.sin(x), x, y).backward()
        assert x.grad is not None
        assert y.grad is None

    def test_one_tensor_as_two_inputs(self) -> None:
        x = leaf(0.3)
        checkpoint(product, x, x).backward()
        assert x.grad is not None and x.grad.item() == pytest.approx(0.6, rel=TOLERANCE)

    def test_a_long_chain_keeps_the_inputs_of_its_segments(self) -> None:
        size, segments = 500, 12
        x = tensor(np.linspace(0.1, 1.0, size), requires_grad=True)
        report = compare(compose(*[wave] * segments), lambda x: pipe(x, *[replayed] * segments), [x])
        assert report.combined.nodes == segments
        assert size * ITEM * segments <= report.combined.bytes_saved < 1.01 * size * ITEM * segments
        assert report.nested.bytes_saved > 15 * report.combined.bytes_saved

    def test_a_checkpoint_of_checkpoints(self) -> None:
        outer = combine(replayed, replayed, replayed)
        report = compare(compose(wave, wave, wave), lambda x: checkpoint(pipe, x, outer, replayed_once), [leaf(0.3, 1)])
        assert report.combined.nodes == 1
        assert report.combined.bytes_saved < 100

    def test_a_checkpoint_may_not_capture_intermediate_results(self) -> None:
        def outer(x: Tensor) -> Any:
            y = ops.sin(x)
            return checkpoint(lambda z: z * y, x)

        with pytest.raises(GraphError, match="Pass all such tensors as inputs"):
            checkpoint(outer, leaf(0.3)).backward()

    def test_the_variable_of_a_loop_is_not_replayed_with_its_last_value(self) -> None:
        x = leaf(0.3)
        for factor in (2.0, 3.0):
            x = checkpoint(lambda x: x * factor, x)  # noqa: B023 - the mistake that is to be noticed
        with pytest.raises(GraphError, match="gave other results when it ran again"):
            x.backward()

    def test_results_of_another_shape_are_noticed(self) -> None:
        lengths = iter([1, 2])
        y = checkpoint(lambda x: ops.broadcast_to(x, (next(lengths),)), leaf(0.0))
        with pytest.raises(GraphError, match="gave other results when it ran again"):
            y.backward([1.0])

    def test_nan_results_are_the_same_again(self) -> None:
        x = leaf(np.nan, 1.0)
        ops.sum(checkpoint(ops.sin, x)).backward()
        assert x.grad is not None and x.grad.data[1] == pytest.approx(np.cos(1.0), rel=TOLERANCE)

    def test_fn_that_writes_to_its_input_is_noticed(self) -> None:
        def careless(x: Tensor) -> Tensor:
            with x.writable() as values:
                values[...] = 1.0
            return x * 2.0

        with pytest.raises(GraphError, match="forward wrote to input 0"):
            checkpoint(careless, leaf(0.3)).backward()

    def test_integer_results_and_inputs_carry_no_gradient(self) -> None:
        x, index = leaf(0.3, 0.7), tensor([1, 0])
        y, i = checkpoint(lambda x, index: (x * 2.0, index), x, index)
        y.backward([1.0, 1.0])
        assert not i.requires_grad
        assert x.grad is not None and x.grad.data.tolist() == [2.0, 2.0]


def replayed(x: Tensor) -> Any:
    return checkpoint(wave, x)


def replayed_once(x: Tensor) -> Tensor:
    return x


# --- forward mode and more derivatives come from the Functions inside

WAYS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "checkpoint": lambda x, y: checkpoint(nested, x, y),
    "inputs": combine(turn, shear, product),
    "names": combine(turn, shear, product, save=["turn"]),
    "all": combine(turn, shear, product, save="all"),
    "combined twice": combine(combine(turn, save="all"), combine(shear, product), save=["Combine(turn)"]),
    "kept checkpoints": combine(lambda x, y: checkpoint(turn, x, y), shear, product, save="all"),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
class TestForwardMode:
    @pytest.mark.skipif(not DOUBLE, reason="1e-10 needs f64")
    def test_tangents_agree_with_adjoints(self, way: Any) -> None:
        dot_product_test(way, [leaf(0.3, -1.2), leaf(0.7, 0.2)])

    def test_tangents_are_those_of_the_nested_graph(self, way: Any) -> None:
        inputs, tangents = (leaf(0.3, -1.2), leaf(0.7, 0.2)), ([1.0, 2.0], [-0.5, 3.0])
        for given in (tangents, (None, tangents[1])):
            value, (tangent,) = jvp(way, inputs, given)
            expected, (expected_tangent,) = jvp(nested, inputs, given)
            np.testing.assert_allclose(value.data, expected.data, rtol=TOLERANCE)
            np.testing.assert_allclose(tangent, expected_tangent, rtol=TOLERANCE)


NO_JVP: dict[str, Callable[[Tensor], Any]] = {
    "checkpoint": lambda x: checkpoint(lambda x: Square.apply(ops.sin(x)), x),
    "inputs": combine(ops.sin, Square.apply),
    "names": combine(ops.sin, Square.apply, save=["sin"]),
    "all": combine(ops.sin, Square.apply, save="all"),
}


@pytest.mark.parametrize("way", NO_JVP.values(), ids=NO_JVP)
class TestMissingJvp:
    def test_the_function_inside_is_named(self, way: Any) -> None:
        with pytest.raises(MissingJvp, match="SquareBackward: Square has no jvp"):
            jvp(way, leaf(0.3), [1.0])

    def test_without_a_jvp_reverse_mode_is_used_if_possible(self, way: Any) -> None:
        np.testing.assert_allclose(jacobian(way, leaf(0.3)), np.sin(0.6), rtol=TOLERANCE)
        if DOUBLE:
            assert gradcheck(way, leaf(0.3)).dot_product_error is None


def gradient(way: Any) -> Any:
    """The gradient of a weighted sum of results, as a function that is differentiable again."""

    def found(*inputs: Tensor) -> Any:
        with enable_grad():
            xs = [x if x.requires_grad else x.detach().requires_grad_() for x in inputs]
            z = way(*xs)
            return grad(z, xs, [np.linspace(1.0, 2.0, z.size).reshape(z.shape)], create_graph=True)

    return found


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
class TestSecondDerivatives:
    def test_they_are_those_of_the_nested_graph(self, way: Any) -> None:
        inputs = [leaf(0.3, -1.2), leaf(0.7, 0.2)]
        report = compare(gradient(nested), gradient(way), inputs)
        assert max(report.gradient_differences.values()) < TOLERANCE

    @pytest.mark.skipif(not DOUBLE, reason="finite differences need f64")
    def test_they_agree_with_finite_differences_of_the_gradient(self, way: Any) -> None:
        gradcheck(gradient(way), [leaf(0.3, -1.2), leaf(0.7, 0.2)], tolerance=1e-7)

    def test_an_input_that_was_computed_from_another(self, way: Any) -> None:
        """The gradient of one input must not pass through the graph of the other."""

        def whole(way: Any) -> Any:
            return gradient(lambda x: way(x, ops.sin(x)))

        report = compare(whole(nested), whole(way), [leaf(0.3, -1.2)])
        assert max(report.gradient_differences.values()) < TOLERANCE

    def test_the_derivative_by_an_input_of_another_input(self, way: Any) -> None:
        x = leaf(0.3)
        y = ops.sin(x)
        direct, expected = ([g.item() for g in grad(f(x, y), [x, y], create_graph=True)] for f in (way, nested))
        assert direct == pytest.approx(expected, rel=TOLERANCE)

    def test_third_derivatives(self, way: Any) -> None:
        report = compare(gradient(gradient_of_sum(nested)), gradient(gradient_of_sum(way)), [leaf(0.3), leaf(0.7)])
        assert max(report.gradient_differences.values()) < TOLERANCE


def gradient_of_sum(way: Any) -> Any:
    def total(*inputs: Tensor) -> Tensor:
        return pipe(gradient(way)(*inputs), product)

    return total


@pytest.mark.parametrize("way", NO_JVP.values(), ids=NO_JVP)
def test_a_function_inside_that_is_differentiable_once_is_named(way: Any) -> None:
    x = leaf(0.3)
    (slope,) = grad(way(x), x, create_graph=True)
    assert slope.item() == pytest.approx(np.sin(0.6), rel=TOLERANCE)
    with pytest.raises(GraphError, match=r"^SquareBackward: its backward is not recorded"):
        slope.backward()


def test_second_derivatives_of_several_results() -> None:
    def both(way: Any) -> Any:
        return gradient(lambda x, y: ops.sum(product(*way(x, y))))

    inputs = [leaf(0.3, -1.2), leaf(0.7, 0.2)]
    for save in ("inputs", "all", ["turn"]):
        compare(both(lambda x, y: shear(*turn(x, y))), both(combine(turn, shear, save=save)), inputs)


def test_a_captured_tensor_is_refused_in_a_second_derivative_too() -> None:
    x, w = leaf(0.3), leaf(2.0)
    y = checkpoint(lambda x: x * w, x)
    with pytest.raises(GraphError, match="Pass all such tensors as inputs"):
        grad(y, x, create_graph=True)


def test_a_kept_graph_whose_function_gives_other_results_is_not_differentiated_twice() -> None:
    factor = 2.0
    kept = combine(lambda x: ops.sin(x) * factor, save="all")
    x = leaf(0.3)
    y = kept(x)
    factor = 3.0
    assert gradients(y, [x]) == pytest.approx([2 * np.cos(0.3)], rel=TOLERANCE)
    with pytest.raises(GraphError, match="gave other results when it ran again"):
        grad(y, x, create_graph=True)
