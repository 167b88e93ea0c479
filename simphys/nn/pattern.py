"""Central pattern: waves of a single frequency that give a controller the rhythm of a gait.

    u[t, m] = sin(frequency t dt + 2 pi m / waves),   m = 0 ... waves - 1                       [1]

Source: Hu et al. 2020 (DiffTaichi), mass_spring.py. The name is that of the central pattern generators of animals
(Ijspeert 2008, Neural Networks 21:642).
"""

from __future__ import annotations

import numpy as np

from ..simulator import Array


def pattern(steps: int, *, dt: float, frequency: float, waves: int) -> Array:
    """Evaluate the waves at each of `steps` steps of dt [s], [steps, waves]; frequency [rad/s]."""
    phase = 2 * np.pi * np.arange(waves) / waves
    return np.sin(frequency * dt * np.arange(steps)[:, None] + phase)
