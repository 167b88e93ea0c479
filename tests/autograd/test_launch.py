"""Kernels check what they are given, run what was bound, and tell Tensors that they were written."""

import gc
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import Context, Function, GraphError, InputError, Tensor, kernel, runtime, tensor
from simphys.autograd.launch import Kernel, written_parameters

ti = runtime.ti
real = runtime.real()
dtype = runtime.real_dtype()


@ti.func
def shift(a: ti.template(), by: real):  # type: ignore[no-untyped-def]
    a += by


@ti.func
def look(a: ti.template()) -> real:
    return a[0]


@no_type_check
@kernel
def axpy(x: ti.types.ndarray(dtype=real, ndim=1), factor: real, count: ti.i32, y: ti.types.ndarray(dtype=real, ndim=1)):
    for i in range(count):
        y[i] += factor * x[i]


@no_type_check
@kernel
def lengths(v: ti.types.ndarray(dtype=ti.types.vector(2, real), ndim=1), length: ti.types.ndarray(dtype=real, ndim=1)):
    for i in range(v.shape[0]):
        length[i] = v[i].norm()


@no_type_check
@kernel
def through_functions(
    read: ti.types.ndarray(dtype=real, ndim=1),
    shifted: ti.types.ndarray(dtype=real, ndim=1),
    added: ti.types.ndarray(dtype=real, ndim=1),
    swapped: ti.types.ndarray(dtype=real, ndim=1),
):
    for i in range(1):
        shift(shifted[i], by=read[i] + look(read))
        ti.atomic_add(added[i], read[i])
        _local = 0.0
        _local, swapped[i] = swapped[i], read[i]


def zeros(count: int) -> np.ndarray:
    return np.zeros(count, dtype)


def ones(count: int) -> np.ndarray:
    return np.ones(count, dtype)


# --- launching


@pytest.mark.gpu
def test_a_kernel_reads_and_writes_numpy_arrays_in_place() -> None:
    x, y = ones(4), zeros(4)
    axpy(x, 2.0, 3, y)
    assert y.tolist() == [2.0, 2.0, 2.0, 0.0]


@pytest.mark.gpu
def test_without_the_private_interfaces_launches_take_the_public_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_as_another_release(self: Kernel, values: list[Any]) -> None:
        raise AttributeError("no such interface")

    monkeypatch.setattr(Kernel, "_compile", compile_as_another_release)

    @no_type_check
    @kernel
    def double(x: ti.types.ndarray(dtype=real, ndim=1), count: ti.i32, y: ti.types.ndarray(dtype=real, ndim=1)):
        for i in range(count):
            y[i] = 2 * x[i]

    x, y, z = np.arange(3, dtype=dtype), np.zeros(3, dtype), np.zeros(3, dtype)
    double(x, 3, y)
    double.bind(x, 3, z)()
    np.testing.assert_array_equal([y, z], [2 * x, 2 * x])


def test_elements_may_be_vectors() -> None:
    length = zeros(2)
    lengths(np.array([[3.0, 4.0], [6.0, 8.0]], dtype), length)
    np.testing.assert_allclose(length, [5.0, 10.0])


@pytest.mark.gpu
def test_a_bound_launch_does_what_the_call_does_on_the_memory_of_now() -> None:
    x, called, bound = ones(3), zeros(3), zeros(3)
    launch = axpy.bind(x, 2.0, 3, bound)
    for value in (1.0, 5.0):
        x[:] = value
        axpy(x, 2.0, 3, called)
        launch()
    assert bound.tolist() == called.tolist() == [12.0] * 3


@pytest.mark.gpu
def test_two_bound_launches_of_one_kernel_do_not_interfere() -> None:
    x, a, b = ones(2), zeros(2), zeros(2)
    to_a, to_b = axpy.bind(x, 1.0, 2, a), axpy.bind(x, 10.0, 1, b)
    to_a(), to_b(), axpy(x, 100.0, 2, zeros(2)), to_a()
    assert (a.tolist(), b.tolist()) == ([2.0, 2.0], [10.0, 0.0])


@pytest.mark.gpu
def test_trailing_scalars_may_be_left_open() -> None:
    @no_type_check
    @kernel
    def fill(y: ti.types.ndarray(dtype=real, ndim=1), index: ti.i32, value: real):
        for i in range(index, index + 1):
            y[i] = value

    y = zeros(3)
    put = fill.bind(y)
    put(0, 5.0)
    put(2, 7.0)
    assert y.tolist() == [5.0, 0.0, 7.0]
    with pytest.raises(InputError, match=r"kernel fill: it takes \d arguments; found "):
        put(1)


def test_arrays_that_are_freed_and_allocated_between_launches_are_safe() -> None:
    launches = []
    for round_ in range(200):
        y = zeros(1000)
        axpy(ones(1000), 1.0, 1000, y)  # the temporary is gone afterwards
        launches.append(axpy.bind(ones(1000), 1.0, 1000, y))  # the launch keeps the temporary
        if round_ % 50 == 0:
            gc.collect()
        assert y[0] == y[-1] == 1.0
    for launch in launches:
        launch()
    assert y[0] == y[-1] == 2.0


@pytest.mark.gpu
def test_arrays_of_any_length_may_follow_each_other_and_none_is_too_short() -> None:
    for count in (5, 1, 0, 3):
        y = zeros(count)
        axpy(ones(count), 3.0, count, y)
        assert y.tolist() == [3.0] * count
        axpy.bind(ones(count), 1.0, count, y)()


# --- checks

WRONG: dict[str, tuple[tuple[Any, ...], str]] = {
    "too few": ((ones(2), 1.0, 2), r"kernel axpy: it takes 4 arguments; found 3\. Pass x, factor, count, y"),
    "too many": ((ones(2), 1.0, 2, zeros(2), 1), r"it takes 4 arguments; found 5"),
    "dtype": ((np.ones(2, np.int32), 1.0, 2, zeros(2)), r"argument x: it is a 1-d array of float\d\d; found int32"),
    "dimensions": ((ones(2), 1.0, 2, zeros(4).reshape(2, 2)), r"argument y: it is a 1-d .*shape \(2, 2\)"),
    "strides": ((ones(4)[::2], 1.0, 2, zeros(2)), r"argument x: arrays are C-contiguous"),
    "a list": (([1.0, 1.0], 1.0, 2, zeros(2)), r"argument x: it is an array; found \[1\.0, 1\.0\]"),
    "none": ((None, 1.0, 2, zeros(2)), r"argument x: it is an array"),
    "text": ((ones(2), "1", 2, zeros(2)), r"argument factor: it is a number"),
    "a real count": ((ones(2), 1.0, 2.5, zeros(2)), r"argument count: it is an integer"),
    "a large count": ((ones(2), 1.0, 2**40, zeros(2)), r"argument count: it is an integer within .*1099511627776"),
    "a number": ((ones(2), 1.0, 2, 3.0), r"argument y: it is an array; found 3\.0"),
}


@pytest.mark.gpu
@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("launch", [axpy, axpy.bind], ids=["call", "bind"])
def test_a_wrong_argument_is_refused_by_name(launch: Any, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        launch(*arguments)


@pytest.mark.gpu
def test_elements_of_another_shape_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"argument v: it is a 2-d array of .* whose last axes are \(2,\).*shape \(2, 3\)"
    ):
        lengths(np.ones((2, 3), dtype), zeros(2))


@pytest.mark.gpu
def test_read_only_memory_may_be_read_and_not_written() -> None:
    locked = ones(2)
    locked.flags.writeable = False
    y = zeros(2)
    axpy(locked, 1.0, 2, y)
    assert y.tolist() == [1.0, 1.0]
    with pytest.raises(InputError, match="argument y: it writes to this argument; found a read-only array"):
        axpy(y, 1.0, 2, locked)
    assert locked.tolist() == [1.0, 1.0]


@pytest.mark.gpu
def test_memory_mapped_files_are_arrays(tmp_path: Path) -> None:
    y = np.memmap(tmp_path / "y", dtype, "w+", shape=(2,))
    axpy(ones(2), 4.0, 2, y)
    assert y.tolist() == [4.0, 4.0]


@pytest.mark.gpu
def test_a_parameter_that_is_no_array_or_number_is_refused_at_the_decorator() -> None:
    def strange(x: str) -> None: ...

    with pytest.raises(InputError, match="kernel parameter x"):
        Kernel(strange)


# --- versions


@pytest.mark.gpu
def test_a_tensor_that_a_kernel_writes_raises_its_version_and_one_it_reads_does_not() -> None:
    x, y = tensor(ones(2)), tensor(zeros(2))
    axpy(x, 3.0, 2, y)
    assert (x.version, y.version, y.data.tolist()) == (0, 1, [3.0, 3.0])
    launch = axpy.bind(x, 3.0, 2, y)
    assert y.version == 1
    launch(), launch()
    assert (x.version, y.version) == (0, 3)


@pytest.mark.gpu
def test_a_refused_launch_raises_no_version() -> None:
    y = tensor(zeros(2))
    with pytest.raises(InputError):
        lengths(ones(2), y)
    assert y.version == 0


@pytest.mark.gpu
def test_a_kernel_that_writes_a_saved_tensor_makes_backward_raise() -> None:
    class Double(Function):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> np.ndarray:
            ctx.save_for_backward(x)
            y = np.zeros_like(x.data)
            axpy(x, 2.0, x.size, y)
            return y

        @staticmethod
        def backward(ctx: Context, adj: Tensor) -> np.ndarray:
            (x,) = ctx.saved_tensors
            adj_x = np.zeros_like(x.data)
            axpy(adj, 2.0, x.size, adj_x)
            return adj_x

    x = tensor(ones(2), requires_grad=True)
    Double.apply(x).backward(ones(2))
    assert x.grad is not None and x.grad.data.tolist() == [2.0, 2.0]
    y = Double.apply(x)
    axpy(ones(2), 1.0, 2, x)
    with pytest.raises(GraphError, match="DoubleBackward: saved tensor 0"):
        y.backward(ones(2))


@pytest.mark.gpu
def test_writes_through_functions_atomics_and_swaps_are_noticed() -> None:
    assert through_functions.written == {"shifted", "added", "swapped"}
    arrays = [tensor(ones(1)) for _ in range(4)]
    through_functions(*arrays)
    assert [x.version for x in arrays] == [0, 1, 1, 1]
    assert [x.item() for x in arrays] == [1.0, 3.0, 2.0, 1.0]


def test_an_array_handed_to_something_unknown_counts_as_written() -> None:
    def body(a: Any, b: Any) -> None:
        unknown(a)  # type: ignore[name-defined]
        print(b[0])

    assert written_parameters(body) == {"a"}


# --- the other compiler


@pytest.mark.skipif(find_spec("quadrants") is None, reason="the extra `quadrants` is not installed")
@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_kernels_run_on_quadrants(precision: str, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent(f"""
        import numpy as np
        from simphys.autograd import InputError, kernel, runtime, tensor
        ti = runtime.ti
        runtime.init(precision="{precision}")
        real, dtype = runtime.real(), runtime.real_dtype()
        assert ti.__name__ == "quadrants" and runtime.info()["compiler"] == "quadrants"

        @kernel
        def axpy(x: ti.types.ndarray(dtype=real, ndim=1), n: ti.i32, y: ti.types.ndarray(dtype=real, ndim=1), c: real):
            for i in range(n):
                y[i] += c * x[i]

        @kernel
        def norms(v: ti.types.ndarray(dtype=ti.types.vector(2, real), ndim=1), y: ti.types.ndarray(dtype=real, ndim=1)):
            for i in range(v.shape[0]):
                y[i] = v[i].norm()

        x, y = tensor(np.ones(3, dtype)), tensor(np.zeros(3, dtype))
        axpy(x, 3, y, 2.0)
        launch = axpy.bind(x, 2, y)
        launch(10.0), launch(1.0)
        assert y.data.tolist() == [13.0, 13.0, 2.0] and y.version == 3 and x.version == 0, y
        for count in (2, 0, 1):
            out = np.zeros(count, dtype)
            norms(np.full((count, 2), 3.0, dtype), out)
            np.testing.assert_allclose(out, np.full(count, 18**0.5), rtol=1e-6)
        try:
            norms(np.ones((2, 2), np.int32), out)
        except InputError:
            print("done")
        """)
    )
    env = {**__import__("os").environ, "SIMPHYS_COMPILER": "quadrants"}
    done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=120)
    assert done.stdout.endswith("done\n"), done.stderr
