"""Controls of actuators, which drive some elements (springs, particles) of a model and not others.

An extended control has a last entry, 0, which stands for the actuator of all elements that have none. So every element
has an entry of the extended control, and kernels need no case for those without an actuator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import Array


def extend_control(control: Array) -> Array:
    """Append a control of 0, for the elements without an actuator: [..., A] to [..., A + 1]."""
    return np.concatenate([control, np.zeros((*control.shape[:-1], 1), control.dtype)], axis=-1)


def find_control_columns(actuator: np.ndarray[Any, Any], actuators: int) -> np.ndarray[Any, Any]:
    """Index of each element's entry in an extended control, from its actuator or -1 for none, [n]."""
    return np.where(actuator < 0, actuators, actuator).astype(np.int32)
