"""Agreement between recordings: does a parameter have the same value in all of them?

A parameter with one value for each of n recordings has found values v with the covariance C. For an unknown that they
share, v is what each one alone would have found (shared.py). With the differences D v of neighbours,

    chi^2 = (D v)^T (D C D^T)^-1 (D v)

is that of the values about their weighted mean, with n - 1 degrees of freedom. The smaller one counts of two: with the
covariance of independent residuals, and with the one that allows for residuals correlated in time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.experiment.setup import Setup
from simphys.experiment.unknowns import Block

from .criteria import Criterion
from .shared import Recordings
from .uncertainty import Uncertainty

Array = np.ndarray[Any, Any]

LEAST_P = 0.01
"""Probability of chi^2 below which values disagree; all compared numbers share it."""
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
    parameters = _list_parameters(scene, uncertainty)
    found = [agreement for blocks in parameters for agreement in _compare(blocks, uncertainty)]
    found += _compare_shared(uncertainty)
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


def _compare(blocks: list[Block], uncertainty: Uncertainty) -> Iterator[Agreement]:
    """Compare the values of each number of a parameter, where at least two recordings tell it."""
    count = blocks[0].scale.size
    for number in range(count):
        told = [block for block in blocks if np.isfinite(uncertainty.standard.values[block.where.start + number])]
        if len(told) > 1:
            label = blocks[0].unknown if count == 1 else f"{blocks[0].unknown}[{number}]"
            yield _compare_number(label, told, number, uncertainty)


def _compare_number(label: str, blocks: list[Block], number: int, uncertainty: Uncertainty) -> Agreement:
    """Compare the values of one number of a parameter in several recordings."""
    places = [block.where.start + number for block in blocks]
    values, scale = uncertainty.natural[places], np.array([block.scale[number] for block in blocks])
    log = blocks[0].log  # errors are symmetrical in the logarithm
    coordinates, slopes = (np.log(values), np.ones(len(places))) if log else (values, scale)
    standard, robust = [
        each[np.ix_(places, places)] * np.outer(slopes, slopes)
        for each in (uncertainty.standard.covariance, uncertainty.robust_covariance)
    ]
    return _test(label, values, coordinates, (standard, robust))


def _compare_shared(uncertainty: Uncertainty) -> Iterator[Agreement]:
    """Compare what recordings would find for each number that they share, where at least two tell it."""
    if len(uncertainty.series) < 2:
        return
    recordings, unknowns = Recordings(uncertainty), uncertainty.unknowns
    for block in unknowns.blocks:
        if block.experiment is not None or block.smooth is not None:
            continue
        for place in range(block.where.start, block.where.stop):
            if (found := recordings.estimate(place)) is not None:
                moved = uncertainty.theta + found.changes[:, None] * (np.arange(uncertainty.theta.size) == place)
                values = np.array([unknowns.natural(theta)[place] for theta in moved])
                yield _test(unknowns.labels[place], values, found.changes, found.covariances)


def _test(label: str, values: Array, coordinates: Array, covariances: tuple[Array, Array]) -> Agreement:
    """Test whether values [n] are one, by coordinates whose errors are symmetrical."""
    from scipy.special import chdtrc  # scipy.stats takes half a second more to import

    chi = 0.0
    if np.ptp(values) > SAME * np.abs(values).max():
        chi = min([_chi_square(coordinates, each) for each in covariances])
    return Agreement(label, values, chi, float(chdtrc(values.size - 1, chi)))


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
