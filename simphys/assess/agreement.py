"""Agreement between recordings: does a parameter have the same value in all of them?

A parameter with one value for each of n recordings has found values v with the covariance C. For an unknown that they
share, v is what each one alone would have found (shared.py). With the differences D v of neighbours,

    chi^2 = (D v)^T (D C D^T)^-1 (D v)

is that of the values about their weighted mean. The scale of C is the variance of residuals with f degrees of freedom,
so chi^2 / (n - 1) has the distribution F of n - 1 and f degrees of freedom. Of two tests the milder one counts: that of
independent residuals, and that of residuals made so, if their noise has a memory. A covariance of correlated residuals
that knows nothing of their kind (Newey and West 1987) is too small for this where recordings are short.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.experiment.setup import Setup
from simphys.experiment.unknowns import Block

from .criteria import Criterion
from .shared import Estimates, Recordings, prepare_recordings
from .uncertainty import Uncertainty

Array = np.ndarray[Any, Any]

LEAST_P = 0.01
"""Probability below which values disagree; all compared numbers share it."""
SAME = 1e-6
"""Difference, relative to the largest value, up to which values are the same: a search ends no closer."""
MOST = 8
"""Largest number of values that are told one by one."""


@dataclass(frozen=True)
class Agreement:
    """Values of one number of a parameter, in the recordings that tell it."""

    label: str
    values: Array
    """Values [n], in their unit."""
    chi_square: float
    p_value: float
    """Probability of such a chi^2, or a larger one, if there is one true value."""

    @property
    def test(self) -> str:
        """The test in words."""
        freedom = self.values.size - 1
        return f"chi^2 {self.chi_square:.3g} for {freedom} degree{'s' * (freedom > 1)} of freedom"


def judge_agreement(scene: Setup, uncertainty: Uncertainty) -> Criterion | None:
    """Judge whether recordings agree about parameters and about all that they share; None if there is nothing.

    Of what has one value for each, initial values, and numbers of sensors, controls and designs, differ by nature.
    """
    if len(uncertainty.series) < 2 or not np.isfinite(uncertainty.standard.values).any():
        return None
    recordings = prepare_recordings(uncertainty)
    parameters = _list_parameters(scene, uncertainty)
    found = [agreement for blocks in parameters for agreement in _compare(blocks, uncertainty, recordings)]
    found += _compare_shared(uncertainty, recordings)
    if not found:
        return None
    differ = [each for each in found if each.p_value * len(found) < LEAST_P]
    worst = min(found, key=lambda each: each.p_value)
    if differ:
        words = [
            f"{each.label} differs between recordings by more than its errors allow: {_tell(each)} ({each.test})"
            for each in differ
        ]
        remedy = (
            "Either it is not one thing, or its model is incomplete: the values scatter by more than their errors say. "
            "Look for what differs between the recordings, or for a force that the model lacks; with "
            'experiments = "each" each finds its own.'
        )
        return Criterion("agreement", worst.chi_square, "doubtful", "; ".join(words), remedy)
    about = worst.label if len(found) == 1 else f"{len(found)} numbers, least about {worst.label}"
    return Criterion("agreement", worst.chi_square, "passed", f"recordings agree about {about}: {worst.test}")


def _list_parameters(scene: Setup, uncertainty: Uncertainty) -> Iterator[list[Block]]:
    """Iterate over the blocks of each parameter of the model that has one value for each recording."""
    own: dict[str, list[Block]] = {}
    for block in uncertainty.unknowns.blocks:
        if block.experiment is not None and block.parameter in scene.params.names() and block.smooth is None:
            own.setdefault(block.unknown, []).append(block)
    yield from own.values()


def _compare(blocks: list[Block], uncertainty: Uncertainty, recordings: Sequence[Recordings]) -> Iterator[Agreement]:
    """Compare the values of each number of a parameter, where at least two recordings tell it."""
    count = blocks[0].scale.size
    for number in range(count):
        told = [block for block in blocks if np.isfinite(uncertainty.standard.values[block.where.start + number])]
        if len(told) < 2:
            continue
        label = blocks[0].unknown if count == 1 else f"{blocks[0].unknown}[{number}]"
        places = np.array([block.where.start + number for block in told])
        # Errors are symmetrical in theta, whose unit is that of each block.
        units = np.ones(places.size) if blocks[0].log else np.array([block.scale[number] for block in told])
        values = uncertainty.natural[places]
        begin = np.log(values) if blocks[0].log else values
        estimates = [each.refine(places) for each in recordings]
        yield _mildest(
            label,
            values,
            [(begin + units * each.changes, each.covariance * np.outer(units, units), each) for each in estimates],
        )


def _compare_shared(uncertainty: Uncertainty, recordings: Sequence[Recordings]) -> Iterator[Agreement]:
    """Compare what recordings would find for each number that they share, where at least two tell it."""
    unknowns = uncertainty.unknowns
    for block in unknowns.blocks:
        if block.experiment is not None or block.smooth is not None:
            continue
        for place in range(block.where.start, block.where.stop):
            estimates = [found for each in recordings if (found := each.estimate(place)) is not None]
            if estimates:
                moved = uncertainty.theta + estimates[0].changes[:, None] * (np.arange(uncertainty.theta.size) == place)
                values = np.array([unknowns.natural(theta)[place] for theta in moved])
                tried = [(each.changes, each.covariance, each) for each in estimates]
                yield _mildest(unknowns.labels[place], values, tried)


def _mildest(label: str, values: Array, tried: Sequence[tuple[Array, Array, Estimates]]) -> Agreement:
    """Test whether values [n] are one, by coordinates whose errors are symmetrical; of several tests, the mildest."""
    from scipy.special import fdtrc  # scipy.stats takes half a second more to import

    if np.ptp(values) <= SAME * np.abs(values).max():
        return Agreement(label, values, 0.0, 1.0)
    found = []
    for coordinates, covariance, estimates in tried:
        chi, freedom = _chi_square(coordinates, covariance), coordinates.size - 1
        p_value = float(fdtrc(freedom, estimates.freedom, chi / freedom)) if estimates.freedom > 0 else 1.0
        found.append((p_value, chi))
    p_value, chi = max(found)
    return Agreement(label, values, chi, p_value)


def _chi_square(values: Array, covariance: Array) -> float:
    """Compute chi^2 of values [n] about their weighted mean."""
    differ = np.diff(np.eye(values.size), axis=0)
    away = differ @ values
    return float(away @ np.linalg.pinv(differ @ covariance @ differ.T, hermitian=True) @ away)


def _tell(found: Agreement) -> str:
    """Format the values with as many digits as tell them apart."""
    values = found.values
    digits = 3 + int(np.clip(np.log10(np.abs(values).max() / np.ptp(values)), 0, 6))
    numbers = values if values.size <= MOST else np.array([values.min(), values.max()])
    return (", " if values.size <= MOST else " to ").join([f"{each:.{digits}g}" for each in numbers])
