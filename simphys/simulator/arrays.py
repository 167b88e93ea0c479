"""Names of the types of arrays that models and engines exchange."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]
"""Arrays by the name of the field that they belong to."""
Shape = tuple[int, ...]
