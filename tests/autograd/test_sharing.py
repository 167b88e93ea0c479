"""Memory is shared in both directions, and only on request; a locked Tensor cannot be written through it."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Context, Function, InputError, Tensor, tensor
from simphys.autograd.bridges.dlpack import from_dlpack
from simphys.autograd.kernels.memory import NUMPY_IS_VERSIONED, ExportError

OLD_NUMPY = not NUMPY_IS_VERSIONED


class Exported:
    """A Tensor as an object of another library."""

    def __init__(self, source: Tensor) -> None:
        self.source = source

    def __dlpack__(self, **options: Any) -> Any:
        return self.source.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.source.__dlpack_device__()


class Foreign:
    """An array of another library with the first version of DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **_: Any) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


# --- share


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, np.int32, np.uint8, np.bool_])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)])
def test_a_shared_tensor_has_the_array_s_memory_shape_and_dtype(dtype: Any, shape: tuple[int, ...]) -> None:
    array = np.ones(shape, dtype)
    x = tensor(array, share=True)
    assert x.shape == shape and x.dtype == dtype and x.is_leaf and not x.requires_grad and x._shared
    assert x.data.ctypes.data == array.ctypes.data and array.flags.writeable and not x.data.flags.writeable


def test_writes_are_seen_on_both_sides() -> None:
    array = np.zeros(2)
    x = tensor(array, share=True)
    array[0] = 1.0
    with x.writable() as values:
        values[1] = 2.0
    assert x.data.tolist() == array.tolist() == [1.0, 2.0] and x.version == 1
    with pytest.raises(ValueError):
        values[1] = 3.0


def test_read_only_memory_is_not_shared() -> None:
    array = np.ones(2)
    view = array.view()
    view.flags.writeable = False
    for locked in (view, tensor(array).data):
        with pytest.raises(InputError, match=r"shared memory is writable.*read-only array.*mode='c'"):
            tensor(locked, share=True)


def test_a_memory_map_is_shared_with_its_file(tmp_path: Path) -> None:
    np.arange(3.0).tofile(tmp_path / "values")
    file = np.memmap(tmp_path / "values", np.float64, mode="r+")
    x = tensor(file, share=True)
    assert type(x.data) is np.ndarray
    with x.writable() as values:
        values[0] = 5.0
    file.flush()
    assert np.fromfile(tmp_path / "values").tolist() == [5.0, 1.0, 2.0]


def test_the_array_lives_as_long_as_the_tensor_and_no_longer() -> None:
    array = np.ones(3)
    alive = weakref.ref(array)
    x = tensor(array, share=True)
    del array
    gc.collect()
    assert alive() is not None and x.data.tolist() == [1.0, 1.0, 1.0]
    del x
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ([1.0], r"a NumPy array is shared.*found list\. Copy it"),
        (np.ma.array([1.0]), r"no subclass but a memory map; found Masked"),
        (np.ones((2, 3)).T, r"C-contiguous.*strides \(8, 24\) for shape \(3, 2\).*np\.ascontiguousarray"),
        (np.ones(3)[::2], r"C-contiguous"),
        (np.zeros(17, np.uint8)[1:].view(np.float64), r"aligned"),
        (np.ones(2, np.dtype(float).newbyteorder()), r"of native byte order"),
        (np.ones(2, complex), r"floats, integers or booleans; found complex128"),
        (np.array(["text"]), r"floats, integers or booleans; found <U4"),
    ],
)
def test_memory_that_cannot_be_shared_is_refused_with_the_remedy(array: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tensor(array, share=True)


# --- shared memory in a computation


class Same(Function):
    """A Function that returns its input's memory, in one of several ways."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, result: Any) -> Any:
        return result(x)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Tensor, None]:
        return adj, None


@pytest.mark.parametrize("result", [lambda x: x, lambda x: x.data, lambda x: x.data[:], lambda x: x.detach()])
@pytest.mark.parametrize("recorded", [False, True])
def test_results_own_their_memory(result: Any, recorded: bool) -> None:
    x = tensor(np.ones(2), share=True).requires_grad_(recorded)
    y, (z,) = Same.apply(x, result), Same.apply(x, lambda x: (result(x),))
    for made in (y, z, x.clone(), x.reshape(2, 1), x[:1]):
        assert not np.shares_memory(made.data, x.data) and not made._shared


def test_an_alias_of_shared_memory_is_shared_too() -> None:
    alias = tensor(np.ones(2), share=True).detach()
    assert alias._shared and not tensor([1.0]).detach()._shared


def test_a_write_through_the_tensor_after_saving_is_noticed_and_a_gradient_is_the_leaf_s_own() -> None:
    array = np.array([2.0, 3.0])
    x = tensor(array, share=True).requires_grad_()
    y = (x * x).sum()
    y.backward(retain_graph=True)
    assert x.grad is not None and x.grad.data.tolist() == [4.0, 6.0] and not np.shares_memory(x.grad.data, array)
    with x.writable() as values:
        values[0] = 9.0
    with pytest.raises(RuntimeError, match="was changed after forward"):
        y.backward()


# --- DLPack, outwards


def test_numpy_gets_a_copy_that_is_its_own() -> None:
    x = tensor([[1.0, 2.0]])
    array = np.from_dlpack(Exported(x))
    assert array.tolist() == [[1.0, 2.0]] and array.dtype == x.dtype and not np.shares_memory(array, x.data)
    assert x.__dlpack_device__() == np.ones(1).__dlpack_device__()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32, np.bool_])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_dtypes_and_shapes_survive_the_way_out_and_back(dtype: Any, shape: tuple[int, ...]) -> None:
    x = tensor(np.random.default_rng(0).integers(0, 2, shape), dtype=dtype)
    y = from_dlpack(Exported(x))
    assert y.shape == shape and y.dtype == dtype and np.array_equal(x.data, y.data)


@pytest.mark.skipif(OLD_NUMPY, reason="NumPy before 2.1 cannot export read-only memory")
def test_without_a_copy_numpy_gets_the_locked_memory() -> None:
    x = tensor([1.0, 2.0])
    before, array = x._shared, np.from_dlpack(Exported(x), copy=False)
    assert np.shares_memory(array, x.data) and (before, x._shared) == (False, True)
    with pytest.raises(ValueError):
        array[0] = 7.0
    with pytest.raises(ValueError):
        array.flags.writeable = True


def test_memory_is_not_shared_with_a_consumer_that_does_not_know_of_read_only_memory() -> None:
    with pytest.raises(ExportError, match=r"consumers of DLPack 1\.0.*copy=None"):
        tensor([1.0]).__dlpack__(copy=False)
    with pytest.raises(ExportError, match="max_version"):
        tensor([1.0]).__dlpack__(copy=False, max_version=(0, 8))


def test_a_tensor_in_a_graph_and_another_device_are_refused_by_the_protocol() -> None:
    x = tensor([1.0], requires_grad=True)
    for part in (x, x * 2.0):
        with pytest.raises(BufferError, match=r"Tensor\.__dlpack__.*detach\(\)") as error:
            np.from_dlpack(Exported(part))
        assert isinstance(error.value, InputError)
    assert np.from_dlpack(Exported((x * 2.0).detach())).tolist() == [2.0]
    for options in ({"dl_device": (2, 0)}, {"stream": 1}):
        with pytest.raises(BufferError, match="the CPU"):
            tensor([1.0]).__dlpack__(**options)


# --- DLPack, inwards


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3).T, np.full((), 2.5, np.float32), np.arange(3)])
def test_values_come_in_as_a_copy_of_the_same_dtype(array: np.ndarray) -> None:
    for external in (array, Foreign(array)):
        x = from_dlpack(external)
        assert x.dtype == array.dtype and x.data.flags.c_contiguous and not x._shared
        assert np.array_equal(x.data, array) and not np.shares_memory(x.data, array)


@pytest.mark.skipif(OLD_NUMPY, reason="NumPy before 2.1 imports all memory as read-only")
def test_with_share_it_has_the_same_memory() -> None:
    array = np.zeros(2)
    x = from_dlpack(array, share=True)
    array[0] = 1.0
    with x.writable() as values:
        values[1] = 2.0
    assert np.shares_memory(x.data, array) and x.data.tolist() == array.tolist() == [1.0, 2.0] and x._shared


@pytest.mark.parametrize("external", [Exported(tensor([1.0])), Foreign(np.ones(1))])
def test_memory_that_the_owner_does_not_call_writable_is_not_shared(external: Any) -> None:
    with pytest.raises(InputError, match="from_dlpack: shared memory is writable"):
        from_dlpack(external, share=True)


@pytest.mark.parametrize(
    ("external", "share", "message"),
    [
        ([1.0], False, r"an array in memory of the CPU, exported by DLPack; found list: .*__dlpack__"),
        (Exported(tensor([1.0], requires_grad=True)), False, r"found Exported: Tensor\.__dlpack__.*detach"),
        (np.ones(2, complex), False, "floats, integers or booleans; found complex128"),
        (np.ones((2, 3)).T, True, "C-contiguous"),
    ],
)
def test_an_array_that_cannot_be_imported_is_refused_with_the_remedy(external: Any, share: bool, message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_dlpack(external, share=share)


@pytest.mark.skipif(OLD_NUMPY, reason="NumPy before 2.1 does not ask whether there will be a copy")
def test_sharing_is_refused_where_the_owner_cannot_promise_it() -> None:
    class Old(Foreign):
        def __dlpack__(self, stream: None = None) -> Any:  # type: ignore[override]
            return self.array.__dlpack__()

    assert from_dlpack(Old(np.ones(2))).data.tolist() == [1.0, 1.0]
    with pytest.raises(InputError, match=r"that can be shared.*share=False"):
        from_dlpack(Old(np.ones(2)), share=True)


# --- PyTorch

NO_TORCH = "PyTorch is not installed (pip install 'simphys[torch]')"


def test_torch_gets_a_copy_that_is_its_own() -> None:
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    x = tensor([[1.0, 2.0]])
    for options in ({}, {"copy": True}, {"device": "cpu"}):
        values = torch.from_dlpack(Exported(x), **options)
        values += 1.0
        assert values.tolist() == [[2.0, 3.0]] and x.data.tolist() == [[1.0, 2.0]] and not x._shared


def test_memory_that_torch_asked_not_to_copy_counts_as_shared_since_torch_ignores_the_lock() -> None:
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    if OLD_NUMPY:
        pytest.skip("NumPy before 2.1 cannot export read-only memory")
    x = tensor([1.0])
    assert torch.from_dlpack(Exported(x), copy=False).data_ptr() == x.data.ctypes.data and x._shared


def test_torch_s_memory_comes_in_as_a_copy_or_shared() -> None:
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    values = torch.tensor([1.0, 2.0])
    copied = from_dlpack(values)
    shared = tensor(values.numpy(), share=True) if OLD_NUMPY else from_dlpack(values, share=True)
    values[0] = 5.0
    assert copied.data.tolist() == [1.0, 2.0] and shared.data.tolist() == [5.0, 2.0] and shared.dtype == np.float32
    with pytest.raises(InputError, match=r"found Tensor: .*require gradient"):
        from_dlpack(values.requires_grad_())
