"""Declared sub-steps: an element function with its adjoint and tangent, and the pattern that applies it.

A declaration gives the sub-step's Function. A step that applies declared sub-steps can be read as a program, from
which engines are generated.
"""

from simphys.numerics.element import element

from .along import Along, along
from .collect import collect
from .concatenate import concatenate, part
from .dense import dense
from .edges import edges
from .faces import faces
from .from_grid import from_grid
from .launched import Chain, Entries, KernelCall, Launch, Target, launched
from .neighbours import neighbours
from .operation import operation
from .pairs import pairs
from .per_element import per_element
from .points import read_at, spread_from
from .routine import Fields, Functions, Setting, routine
from .routine_text import Static
from .sequence import Event, Move, sequence, trace_of
from .sequence_call import Parameters
from .sides import sides
from .stencil import stencil
from .to_grid import to_grid
from .total import total
from .weighted import Weights, weighted

__all__ = [
    "Along",
    "Chain",
    "Entries",
    "Event",
    "Fields",
    "Functions",
    "KernelCall",
    "Launch",
    "Move",
    "Parameters",
    "Setting",
    "Static",
    "Target",
    "Weights",
    "along",
    "collect",
    "concatenate",
    "dense",
    "edges",
    "element",
    "faces",
    "from_grid",
    "launched",
    "neighbours",
    "operation",
    "pairs",
    "part",
    "per_element",
    "read_at",
    "routine",
    "sequence",
    "sides",
    "spread_from",
    "stencil",
    "to_grid",
    "total",
    "trace_of",
    "weighted",
]
