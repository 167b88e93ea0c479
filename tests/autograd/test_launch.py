"""Kernels check arguments, run bound launches, and raise the versions of written Tensors."""

import gc
import os
import subprocess
import sys
import textwrap
import weakref
from importlib import import_module
from pathlib import Path
from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import Context, Function, GraphError, InputError, Tensor, kernel, no_grad, runtime, tensor
from simphys.autograd.kernels.memory import Memory
from simphys.autograd.kernels.variant import _not_compiled

from ..helpers.compilers import OTHER, needs_other

ti = runtime.ti
real = runtime.real()
dtype = runtime.real_dtype()


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
    def compile_as_another_release(self: Any, *_: Any, **__: Any) -> None:
        raise AttributeError("no such interface")

    monkeypatch.setattr("simphys.autograd.kernels.variant.Variant.__init__", compile_as_another_release)

    @no_type_check
    @kernel
    def double(x: ti.types.ndarray(dtype=real, ndim=1), count: ti.i32, y: ti.types.ndarray(dtype=real, ndim=1)):
        for i in range(count):
            y[i] = 2 * x[i]

    x, y, z = np.arange(3, dtype=dtype), np.zeros(3, dtype), np.zeros(3, dtype)
    double(x, 3, y)
    double.bind(x, 3, z)()
    np.testing.assert_array_equal([y, z], [2 * x, 2 * x])


def test_a_kernel_that_the_compiler_cannot_bring_to_the_arch_is_refused_with_the_remedy() -> None:
    """As 3-D material points for Vulkan, by Taichi: its own passes break them."""
    found = _not_compiled("leap", RuntimeError("[verify.cpp@56] IR broken: stmt 7. If you are using autodiff, see"))
    assert str(found).startswith(f"kernel leap: {runtime.compiler} compiles it for {runtime.settings().arch}; found ")
    assert "IR broken: stmt 7. Start Python with SIMPHYS_COMPILER=" in str(found)


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


def test_arrays_of_the_first_launch_go_with_their_last_reference() -> None:
    """They do not wait for the collection of cycles in the compiler: they may be the states of a whole motion."""

    @no_type_check
    @kernel
    def measure(v: ti.types.ndarray(dtype=ti.types.vector(2, real), ndim=1), length: ti.types.ndarray(ndim=1)):
        for i in range(v.shape[0]):
            length[i] = v[i].norm()

    gc.collect()
    gc.disable()
    try:
        v, length = np.array([[3.0, 4.0]], dtype), zeros(1)
        measure(v, length)
        assert length.tolist() == [5.0]
        given = [weakref.ref(v), weakref.ref(length)]
        del v, length
        assert all(array() is None for array in given)
    finally:
        gc.enable()


def test_arrays_of_any_length_may_follow_each_other_and_none_is_too_short() -> None:
    for count in (5, 1, 0, 3):
        y = zeros(count)
        axpy(ones(count), 3.0, count, y)
        assert y.tolist() == [3.0] * count
        axpy.bind(ones(count), 1.0, count, y)()


# --- kernels made by the compiler's decorator


@no_type_check
@ti.kernel
def decorated(x: ti.types.ndarray(dtype=real, ndim=1), count: ti.i32, y: ti.types.ndarray(dtype=real, ndim=1)):
    for i in range(count):
        y[i] += 2 * x[i]


@pytest.mark.gpu
def test_a_kernel_of_the_compiler_is_launched_as_a_function_that_was_given_plainly() -> None:
    wrapped = kernel(decorated)
    x, y = tensor(ones(3)), tensor(zeros(3))
    wrapped(x, 3, y)
    wrapped.bind(x, 2, y)()
    assert wrapped.name == "decorated" and wrapped.written == {"y"} and y.version == 2
    assert y.data.tolist() == [4.0, 4.0, 2.0]
    with pytest.raises(InputError, match="kernel decorated, argument count: it is an integer"):
        wrapped(x, 3.0, y)
    decorated(x.data, 3, mine := zeros(3))  # its own call is as before
    assert mine.tolist() == [2.0, 2.0, 2.0]


@needs_other
def test_a_kernel_of_the_other_compiler_is_refused() -> None:
    other = import_module(OTHER)

    @no_type_check
    @other.kernel
    def foreign(x: other.types.ndarray(dtype=other.f32, ndim=1)):
        x[0] = 1.0

    with pytest.raises(
        InputError, match=f"kernel foreign: the compiler .* is {runtime.compiler}; found {other.__name__}"
    ):
        kernel(foreign)


@ti.data_oriented
class Holder:
    @no_type_check
    @ti.kernel
    def method(self, x: ti.types.ndarray(dtype=real, ndim=1)):
        x[0] = 1.0


def test_a_value_that_is_no_function_is_refused() -> None:
    with pytest.raises(InputError, match="kernel method: a kernel is a function; found a method"):
        kernel(Holder.method)
    with pytest.raises(InputError, match=r"it takes a function or a ti.kernel; found 3"):
        kernel(3)  # type: ignore[call-overload]


def test_a_kernel_that_returns_a_value_is_refused() -> None:
    @no_type_check
    def first(x: ti.types.ndarray(dtype=real, ndim=1)) -> real:
        return x[0]

    with pytest.raises(InputError, match=r"kernel first: it returns nothing; found .*an array of one element"):
        kernel(first)


@pytest.mark.gpu
def test_arrays_of_the_compiler_are_arguments_too() -> None:
    x, y = ti.ndarray(real, 3), ti.ndarray(real, 3)
    x.fill(1.0), y.fill(0.0)
    axpy(x, 2.0, 3, y)
    axpy.bind(x, 2.0, 2, y)()
    assert y.to_numpy().tolist() == [4.0, 4.0, 2.0]


def test_arrays_of_the_compiler_mix_with_tensors_on_the_cpu() -> None:
    x, y = ti.ndarray(real, 3), tensor(zeros(3))
    x.fill(1.0)
    axpy(x, 2.0, 3, y)
    axpy(ones(3), 2.0, 3, y)
    assert (y.data.tolist(), y.version) == ([4.0] * 3, 2)


def test_with_one_thread_loops_do_the_same_in_the_thread_that_launches() -> None:
    @no_type_check
    def sums(x: ti.types.ndarray(dtype=real, ndim=2), y: ti.types.ndarray(dtype=real, ndim=1)):
        for i, j in x:
            y[0] += x[i, j]
        for i, j in ti.ndrange(x.shape[0], x.shape[1]):
            y[1] += x[i, j] * j
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                y[2] += i * x[i, j]

    x = np.random.default_rng(0).random((40, 30)).astype(dtype)
    here, pooled = zeros(3), zeros(3)
    kernel(sums)(x, here)
    ti.kernel(sums)(x, pooled)
    np.testing.assert_allclose(here, [x.sum(), (x @ np.arange(30)).sum(), (np.arange(40) @ x).sum()], rtol=1e-12)
    np.testing.assert_allclose(pooled, here, rtol=1e-12)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_start_of_the_compiler_outside_the_runtime_raises_and_does_not_crash(moment: str, tmp_path: Path) -> None:
    start = "ti.init(arch=ti.cpu, log_level=ti.ERROR)"
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent(f"""
        import numpy as np
        from simphys.autograd import InputError, kernel, runtime
        from simphys.autograd.kernels.runtime import ti

        {start if moment == "before" else ""}

        @kernel
        def one(x: ti.types.ndarray(dtype=ti.f32, ndim=1)):
            x[0] = 1.0

        x, launches = np.zeros(1, np.float32), [one]
        if {moment == "after"}:
            one(x)
            launches.append(lambda x, bound=one.bind(x): bound())
            {start}
        for launch in launches:
            try:
                launch(x)
            except InputError as error:
                print(error)
        """)
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=240)
    message = "kernel one: the compiler is started by runtime.init alone; found a ti.init or ti.reset."
    assert done.stdout.count(message) == (1 if moment == "before" else 2), done.stderr


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
def test_memory_that_is_no_tensor_has_a_version_too() -> None:
    y = Memory(zeros(2))
    axpy(ones(2), 3.0, 2, y)
    assert (y.version, y.data.tolist(), y.requires_grad, y.grad_fn) == (1, [3.0, 3.0], False, None)


@pytest.mark.gpu
def test_a_launch_that_is_not_recorded_reads_nothing_that_needs_a_gradient() -> None:
    x, y = tensor(ones(2), requires_grad=True), zeros(2)
    with pytest.raises(InputError, match="kernel axpy, argument x: a launch outside a Function gives no gradient"):
        axpy(x, 1.0, 2, y)
    with pytest.raises(InputError, match="a launch outside a Function gives no gradient"):
        axpy.bind(x, 1.0, 2, y)
    assert y.tolist() == [0.0, 0.0]
    axpy(x.detach(), 1.0, 2, y)
    with no_grad():
        axpy(x, 1.0, 2, y)
    assert y.tolist() == [2.0, 2.0]


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


# --- the other compiler


@needs_other
@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_kernels_run_on_the_other_compiler(precision: str, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent(f"""
        import numpy as np
        from simphys.autograd import InputError, kernel, runtime, tensor
        ti = runtime.ti
        runtime.init(precision="{precision}")
        real, dtype = runtime.real(), runtime.real_dtype()
        assert ti.__name__ == runtime.info()["compiler"] == "{OTHER}"

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
    env = {**os.environ, "SIMPHYS_COMPILER": OTHER}
    done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=240)
    assert done.stdout.endswith("done\n"), done.stderr


@pytest.mark.gpu
def test_elements_that_a_kernel_does_not_write_stay() -> None:
    """Elements are numbers and vectors; arguments are Tensors, too, and two of them the same memory."""

    @no_type_check
    @kernel
    def some(
        x: ti.types.ndarray(dtype=real, ndim=1),
        v: ti.types.ndarray(dtype=ti.types.vector(2, real), ndim=1),
        n: ti.types.ndarray(dtype=ti.i32, ndim=2),
        y: ti.types.ndarray(dtype=real, ndim=1),
    ):
        for _ in range(1):
            x[1] = 5.0
            v[1] = ti.Vector([6.0, 7.0])
            n[1, 0] = 8
            y[2] = 9.0

    x, v, n, y = ones(4), tensor(np.ones((3, 2), dtype)), np.ones((2, 2), np.int32), ones(4)
    some(x, v, n, y)
    assert (x.tolist(), y.tolist(), n.tolist()) == ([1, 5, 1, 1], [1, 1, 9, 1], [[1, 1], [8, 1]])
    assert v.data.tolist() == [[1, 1], [6, 7], [1, 1]] and v.version == 1
    some.bind(z := ones(4), v, n, z)()
    assert z.tolist() == [1, 5, 9, 1]
