"""Kernels check their arguments by name, and refuse other annotations at the decorator."""

from pathlib import Path
from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import InputError, kernel, runtime
from simphys.autograd.kernels.launch import Kernel

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
def lengths(v: ti.types.ndarray(dtype=ti.math.vec2, ndim=1), length: ti.types.ndarray(dtype=real, ndim=1)):
    for i in range(v.shape[0]):
        length[i] = v[i].norm()


@no_type_check
@kernel
def double(x: ti.types.ndarray(), y: ti.types.ndarray(ndim=1)):
    for i in range(x.shape[0]):
        y[i] = 2 * x[i]


@no_type_check
@kernel
def sums(v: ti.types.ndarray(dtype=ti.math.vec2), total: ti.types.ndarray(dtype=real, ndim=1)):
    for index in ti.grouped(v):
        total[0] += v[index].sum()


def zeros(count: int) -> np.ndarray:
    return np.zeros(count, dtype)


def ones(count: int) -> np.ndarray:
    return np.ones(count, dtype)


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


# --- annotations


@pytest.mark.gpu
def test_vectors_of_the_compiler_follow_the_precision_of_the_process() -> None:
    length = zeros(2)
    lengths(np.array([[3.0, 4.0], [6.0, 8.0]], dtype), length)
    np.testing.assert_allclose(length, [5.0, 10.0])


@pytest.mark.parametrize("kind", ["f4", "f8", "i4", "i8", "u1"])
@pytest.mark.parametrize("bound", [False, True], ids=["call", "bind"])
def test_a_dtype_left_open_is_that_of_the_array(kind: str, bound: bool) -> None:
    x, y = np.arange(3, dtype=kind), np.zeros(3, kind)
    double.bind(x, y)() if bound else double(x, y)
    np.testing.assert_array_equal(y, 2 * x)
    with pytest.raises(InputError, match=r"argument y: it is a 1-d array of a type .*; found .* of shape \(1, 3\)"):
        double(x, y[None])


@pytest.mark.parametrize("kind", ["c16", "f2", ">f8", "O", "U1"])
def test_a_type_that_the_compiler_lacks_is_refused(kind: str) -> None:
    with pytest.raises(InputError, match="argument x: it is an array of a type that the compiler has; found"):
        double(np.zeros(3).astype(kind), np.zeros(3))


@pytest.mark.gpu
def test_a_number_of_dimensions_left_open_is_that_of_the_array() -> None:
    total = zeros(1)
    for shape in ((3, 2), (4, 3, 2), (1, 2), (2, 2)):
        sums(np.ones(shape, dtype), total)
    assert total[0] == 6 + 24 + 2 + 4
    with pytest.raises(InputError, match=r"it is an array of float\d\d whose last axes are \(2,\)"):
        sums(np.ones((2, 3), dtype), total)


REFUSED: dict[str, tuple[Any, str]] = {
    "template": (ti.template(), "Pass arrays as ti.types.ndarray"),
    "template, not called": (ti.template, "Pass arrays as ti.types.ndarray"),
    "text": ("ti.f32", "Remove `from __future__ import annotations`"),
    "a vector": (ti.math.vec3, "Annotate it with"),
    "ndarray, not called": (ti.types.ndarray, "Annotate it with"),
    "dtype of Python": (ti.types.ndarray(dtype=float), "found <class 'float'>. Name one: ti.f32"),
    "unsigned": (ti.u8, "found u8. Annotate it with"),
    "a class": (str, "found <class 'str'>. Annotate it with"),
}


@pytest.mark.parametrize(("annotation", "message"), REFUSED.values(), ids=REFUSED)
def test_other_annotations_are_refused_at_the_decorator(annotation: Any, message: str) -> None:
    def strange(x: int) -> None: ...

    strange.__annotations__["x"] = annotation
    with pytest.raises(InputError, match=f"kernel strange, parameter x: .*{message}"):
        Kernel(strange)


def test_a_parameter_without_an_annotation_is_refused() -> None:
    def strange(x):
        pass

    with pytest.raises(InputError, match=r"kernel strange, parameter x: .*; found None"):
        Kernel(strange)
