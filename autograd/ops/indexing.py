"""Reading and placing elements by NumPy's indices: the rule of each operation stands beside its forward."""

from __future__ import annotations

import math
import types
from typing import Any, NamedTuple

import numpy as np

from ..context import Context
from ..tensor import Array, Tensor
from .operands import Operand, Operation, as_tensor, operand, plain

_BASIC = (int, slice, types.EllipsisType, types.NoneType, np.integer)


class Key(NamedTuple):
    """An index whose arrays are copies, so that later changes to them do not reach backward."""

    index: Any
    repeats: bool
    """True if it can name an element twice, as only arrays of integers can that do not ascend."""


def _key(index: Any) -> Key:
    if type(index) is not tuple:
        return _part(index)
    parts = [_part(part) for part in index]
    return Key(tuple([part.index for part in parts]), any(part.repeats for part in parts))


def _part(index: Any) -> Key:
    if isinstance(index, _BASIC):
        return Key(index, False)
    array = np.array(plain(index))
    if array.size == 0 and isinstance(index, list):
        array = array.astype(np.intp)  # NumPy reads [] as no index, but makes a float array of it
    return Key(array, array.dtype.kind != "b" and not _ascends(array))


def _ascends(array: Array) -> bool:
    """True if the numbers of an array ascend, all from the start or all from the end: each names another place.

    So do several such arrays together: where two elements of an index differ, at least one of the arrays does.
    """
    numbers = array.ravel()
    if numbers.dtype.kind not in "iu" or numbers.size < 2:
        return numbers.size < 2
    return bool((numbers[1:] > numbers[:-1]).all() and (numbers[0] >= 0 or numbers[-1] < 0))


def _places(shape: tuple[int, ...], index: Any) -> Array:
    """The flat positions, in an array of `shape`, of the elements that the index names."""
    return np.arange(math.prod(shape)).reshape(shape)[index].ravel()


def _add_at(values: Array, key: Key, shape: tuple[int, ...]) -> Array:
    """Zeros of `shape` with the values added at the index."""
    if key.repeats:
        places = _places(shape, key.index)
        return np.bincount(places, weights=values.ravel(), minlength=math.prod(shape)).reshape(shape)
    result = np.zeros(shape, values.dtype)
    result[key.index] = values
    return result


class Index(Operation):
    """x[index]"""

    @staticmethod
    def forward(ctx: Context, x: Tensor, key: Key) -> Array:
        ctx.shape = x.data.shape
        ctx.key = key
        return x.data[key.index]

    @staticmethod
    def backward(ctx: Context, adj: Any) -> tuple[Any, None]:
        if type(adj) is Tensor:
            return IndexAdd.apply(adj, ctx.key, ctx.shape), None
        return _add_at(adj, ctx.key, ctx.shape), None

    @staticmethod
    def jvp(ctx: Context, dx: Array, key: None) -> Array:
        return dx[ctx.key.index]


class IndexAdd(Operation):
    """Zeros with values added at an index: the adjoint of x[index], as x[index] is its adjoint"""

    @staticmethod
    def forward(ctx: Context, values: Tensor, key: Key, shape: tuple[int, ...]) -> Array:
        ctx.key = key
        return _add_at(values.data, key, shape).astype(values.data.dtype, copy=False)

    @staticmethod
    def backward(ctx: Context, adj: Any) -> tuple[Any, None, None]:
        return adj[ctx.key.index], None, None

    @staticmethod
    def jvp(ctx: Context, dvalues: Array, key: None, shape: None) -> Array:
        return _add_at(dvalues, ctx.key, ctx.outputs[0][0])


class IndexPut(Operation):
    """The base, with base[index] = values"""

    @staticmethod
    def forward(ctx: Context, base: Tensor, key: Key, values: Operand) -> Array:
        ctx.key = key
        result = base.data.astype(np.result_type(base.data, plain(values)))
        result[key.index] = plain(values)
        return result

    @staticmethod
    def backward(ctx: Context, adj: Any) -> tuple[Any, None, Any]:
        need_base, _, need_values = ctx.edges
        index, repeats = ctx.key
        adj_base = adj_values = None
        if need_base and type(adj) is Tensor:
            adj_base = IndexPut.apply(adj, ctx.key, 0)
        elif need_base:
            adj_base = adj.copy()
            adj_base[index] = 0
        if need_values:
            adj_values = adj[index]
            if repeats:  # of values placed on one element only the last is in the result
                places = _places(adj.shape, index)
                last = np.empty(adj.size, np.intp)
                last[places] = order = np.arange(places.size)
                adj_values = np.where((last[places] == order).reshape(adj_values.shape), adj_values, 0)
        return adj_base, None, adj_values

    @staticmethod
    def jvp(ctx: Context, dbase: Array, key: None, dvalues: Array | None) -> Array:
        result = dbase.astype(ctx.outputs[0][1])
        result[ctx.key.index] = 0
        if dvalues is not None:  # the values are no number
            result[ctx.key.index] = dvalues
        return result


def getitem(x: Any, index: Any) -> Tensor:
    """x[index], by NumPy's basic and advanced indexing; an element that is named twice receives both adjoints."""
    return Index.apply(as_tensor(x), _key(index))


def put(base: Any, index: Any, values: Any) -> Tensor:
    """A copy of `base` with `values` (which broadcast) at `index`; `base` itself is not written to.

    Where an index is repeated, the last value stays and alone receives the adjoint. The dtype is the one to which base
    and values promote.
    """
    return IndexPut.apply(as_tensor(base), _key(index), operand(values))
