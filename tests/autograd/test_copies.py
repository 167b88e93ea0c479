"""Copies of Tensors, by copy, deepcopy and pickle, are leaves of their own."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simphys.autograd import InputError, Tensor, tensor

COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
}


def leaf() -> Tensor:
    return tensor([1.0, 2.0, 3.0], requires_grad=True)


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_of_a_leaf_has_its_own_gradient(name: str) -> None:
    x = leaf()
    z = COPIES[name](x)
    ((x * x).sum() + (3.0 * z).sum()).backward()
    assert x.grad is not None and x.grad.data.tolist() == [2, 4, 6]
    assert z.is_leaf and z.grad.data.tolist() == [3, 3, 3]
    assert not z.data.flags.writeable and not COPIES[name](x.detach()).requires_grad


@pytest.mark.parametrize("name", ["deepcopy", "pickle"])
def test_a_deep_copy_has_its_own_memory_and_version(name: str) -> None:
    x = leaf()
    x.raise_version()
    z = COPIES[name](x)
    assert z.version == 0 and not np.shares_memory(z.data, x.data)


def test_a_shallow_copy_shares_memory_and_version() -> None:
    x = leaf()
    z = copy.copy(x)
    with z.writable() as a:
        a[0] = 9
    assert x.data[0] == 9 and x.version == z.version == 1
    assert copy.copy(tensor(np.zeros(2), share=True))._shared


def test_a_deep_copy_has_the_gradient_so_far() -> None:
    x = leaf()
    (x * x).sum().backward()
    z = copy.deepcopy(x)
    z.sum().backward()
    assert x.grad is not None and x.grad.data.tolist() == [2, 4, 6]
    assert z.grad is not None and z.grad.data.tolist() == [3, 5, 7]


def test_what_is_held_twice_is_copied_once() -> None:
    x = leaf()
    first, second = copy.deepcopy([x, x])
    assert first is second and first is not x


def test_a_shallow_copy_of_a_result_keeps_its_place_in_the_graph() -> None:
    x = leaf()
    copy.copy(x * x).sum().backward()
    assert x.grad is not None and x.grad.data.tolist() == [2, 4, 6]


@pytest.mark.parametrize("name", ["deepcopy", "pickle"])
def test_a_deep_copy_of_a_result_is_refused(name: str) -> None:
    x = leaf()
    with pytest.raises(InputError, match=f"{name}: a copy is a leaf, .* found <MulBackward>"):
        COPIES[name](x * x)
    assert COPIES[name]((x * x).detach()).data.tolist() == [1, 4, 9]


def test_a_copied_module_of_torch_has_leaves_of_its_own() -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Module()
    module.inside = leaf()
    other = copy.deepcopy(module)
    other.inside.sum().backward()
    assert module.inside.grad is None and other.inside.grad.data.tolist() == [1, 1, 1]
