"""Records of Tensors: what parameters and states are, whatever the simulator."""

from __future__ import annotations

import functools
import inspect
from dataclasses import fields, replace
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np
import numpy.typing as npt

from simphys.autograd import Tensor, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.look.html import html_table

from .arrays import Arrays
from .declare import declare
from .summary import describe_field, describe_record

RESERVED = ("names", "tensors", "arrays", "replace")
"""Methods of a record, whose names no field may have."""


@dataclass_transform(field_specifiers=(declare,), frozen_default=True)
class Record:
    """Base of Params and State: a frozen dataclass whose fields are Tensors, see `declare`."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init_subclass__(cls, **options: Any) -> None:
        """Give each class this text for itself: a dataclass writes one of its own where it finds none."""
        super().__init_subclass__(**options)
        for name in inspect.get_annotations(cls):
            if name in Record.__dict__:
                constraint = f"a field has another name than {', '.join(RESERVED)}, methods of a record"
                raise InputError(f"{cls.__name__}.{name}", constraint, name, "Give this field another name.")
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Record.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        return describe_record(type(self).__name__, {name: np.asarray(x) for name, x in self.arrays().items()})

    def _repr_html_(self) -> str:
        rows = [(name, *_split(describe_field("", values))) for name, values in self.arrays().items()]
        return html_table(type(self).__name__, ("field", "shape", "values"), rows)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Names of the fields, in order."""
        return _names(cls)  # type: ignore[arg-type]  # mypy takes the hash of a record for that of its class

    def tensors(self) -> tuple[Tensor, ...]:
        """Tensors of all fields, in order."""
        return tuple([getattr(self, name) for name in self.names()])

    def arrays(self) -> Arrays:
        """Values of all fields by name."""
        return {name: getattr(self, name).data for name in self.names()}

    def replace(self, **changes: Tensor | npt.ArrayLike) -> Self:
        """Return a copy with other values in some fields.

        A number fills its field; a list or an array has the field's present shape; a Tensor is taken as it is, and
        gradients flow to it, as is a tensor of torch, for `to_torch`.
        Errors: InputError for an unknown name, a shape that does not fit, or no numbers.
        """
        for name in changes:
            if name not in self.names():
                known = f"the fields are {', '.join(self.names())}"
                raise InputError(f"{type(self).__name__}.replace", known, name, "Name one of these.")
        values = {n: v if _is_tensor(v) else self._tensor_for(n, v) for n, v in changes.items()}
        return replace(self, **values)

    def _tensor_for(self, name: str, value: npt.ArrayLike) -> Tensor:
        """Make a Tensor of the present shape and precision of a field. Errors: InputError."""
        present: Tensor = getattr(self, name)
        source, shape = f"{type(self).__name__}.replace, {name}", list(present.shape)
        try:
            array = np.asarray(value)
        except ValueError:  # rows of different lengths
            array = np.asarray(None)
        if array.dtype.kind not in "iuf":
            raise InputError(source, f"must be numbers, of shape {shape}", repr(value), "Pass one number, or an array.")
        if array.ndim and array.shape != present.shape:
            remedy = "Pass one number to fill the field, an array of that shape, or a Tensor, which may be a batch."
            raise InputError(source, f"must be of shape {shape}", f"shape {list(array.shape)}", remedy)
        return tensor(np.broadcast_to(array, present.shape), dtype=present.dtype)


@functools.cache
def _names(cls: type[Record]) -> tuple[str, ...]:
    return tuple([field.name for field in fields(cls)])


def _is_tensor(value: object) -> bool:
    return isinstance(value, Tensor) or type(value).__module__.partition(".")[0] == "torch"


def _split(text: str) -> tuple[str, str]:
    """Split the description of a field into shape and numbers."""
    shape, _, numbers = text.rpartition(": ") if ": " in text else text.rpartition("= ")
    return shape.strip(" :"), numbers
