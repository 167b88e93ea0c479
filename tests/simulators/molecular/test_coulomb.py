"""Charges against a direct sum, Madelung's constant, and forces against slopes of the energy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.simulators.molecular import Molecular, Params
from simphys.simulators.molecular.lattice import fill
from simphys.simulators.molecular.step import find_force, find_sums

CONSTANT = 1.7


def make(damping: float, cutoff: float = 3.9) -> tuple[Molecular, Params, np.ndarray]:
    """Make 512 ions of rock salt, at distances of 1, and no other forces."""
    position, box = fill("rocksalt", [4, 4, 4], 1.0)
    n = len(position)
    options: dict[str, Any] = {"dt": 0.01, "cutoff": cutoff, "switch_on": 1.0, "skin": 0.05, "neighbours": 280}
    model = Molecular(n, tuple(box.tolist()), coulomb=CONSTANT, damping=damping, **options)
    values: list[Any] = [np.ones(n), 0.0, 1.0, 1.0, 1.0, 1.0, *[np.zeros(0)] * 4, np.resize([1.0, -1.0], n)]
    return model, Params(*[tensor(value) for value in values]), position


@pytest.mark.parametrize(("reduced", "error"), [(2.0, 2.1e-3), (3.0, 3e-5)])
def test_the_energy_of_rock_salt_approaches_that_of_madelung(reduced: float, error: float) -> None:
    """1.747565 (Kittel): damping that reaches further towards 0 at the cut-off comes closer."""
    model, params, position = make(reduced / 3.9)
    sums = find_sums(model, params, tensor(position)).data
    np.testing.assert_allclose(sums[:, 0], sums[0, 0], rtol=1e-12)
    np.testing.assert_allclose(sums[0, 0], -0.5 * CONSTANT * 1.7475645946, rtol=error)
    np.testing.assert_allclose(find_force(model, params, tensor(position)).data, 0, atol=1e-12)


def test_force_virial_and_energy_agree_with_a_direct_sum_and_each_other() -> None:
    damping = 0.6
    model, params, position = make(damping, cutoff=2.45)
    x = position + np.random.default_rng(3).uniform(-0.1, 0.1, position.shape)
    moved = tensor(x, requires_grad=True)
    sums = find_sums(model, params, moved)
    i, j = np.triu_indices(len(x), 1)
    d = x[i] - x[j]
    d -= 8 * np.round(d / 8)
    r = np.sqrt((d * d).sum(axis=1))
    near, R = r < model.cutoff, model.cutoff
    q = params.charge.data
    erfc = np.vectorize(math.erfc)
    slope = math.erfc(damping * R) / R**2
    slope += 2 * damping / math.sqrt(math.pi) * math.exp(-((damping * R) ** 2)) / R
    v = erfc(damping * r[near]) / r[near] - math.erfc(damping * R) / R + slope * (r[near] - R)
    own = damping / math.sqrt(math.pi) + 0.5 * (math.erfc(damping * R) / R + slope * R)
    energy = CONSTANT * ((q[i] * q[j])[near] @ v - own * (q * q).sum())
    g = erfc(damping * r[near]) / r[near] + 2 * damping / math.sqrt(math.pi) * np.exp(-((damping * r[near]) ** 2))
    virial = CONSTANT * ((q[i] * q[j])[near] @ (g - slope * r[near]))
    np.testing.assert_allclose(sums.data.sum(axis=0), [energy, virial], rtol=1e-11)
    sums[:, 0].sum().backward()
    assert moved.grad is not None
    np.testing.assert_allclose(find_force(model, params, moved).data, -moved.grad.data, rtol=1e-10, atol=1e-11)
