"""Contract between a simulator and the machinery that all simulators share."""

from .arrays import Array, Arrays, Rows, Shape
from .bodies import Bodies
from .contract import Engine, Model, Quantity, Rewinding
from .declare import declare
from .events import Event
from .grids import Grid
from .markers import Markers
from .record import Record
from .step_limit import StepLimit
from .units import SI, Units
from .waves import Waves

__all__ = [
    "SI",
    "Array",
    "Arrays",
    "Bodies",
    "Engine",
    "Event",
    "Grid",
    "Markers",
    "Model",
    "Quantity",
    "Record",
    "Rewinding",
    "Rows",
    "Shape",
    "StepLimit",
    "Units",
    "Waves",
    "declare",
]
