"""Bonds and angles against closed forms: frequencies of molecules, and energy, virial and forces of each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from simphys.autograd import jvp, no_grad, tensor
from simphys.rollout import rollout
from simphys.simulators.molecular import Molecular, Params, State
from simphys.simulators.molecular.step import find_force, find_sums

Array = np.ndarray[Any, Any]
STIFFNESS, LENGTH, ANGLE_STIFFNESS, ANGLE = 37.0, 1.1, 9.0, 1.9


def make(masses: list[float], bonds: list[list[int]], angles: list[list[int]]) -> tuple[Molecular, Params]:
    """Make a molecule in the plane."""
    counted = {"bonds": np.array(bonds, np.int32), "angles": np.array(angles, np.int32).reshape(-1, 3)}
    options: dict[str, Any] = {"dt": 0.01, "cutoff": 2.5, "switch_on": 2.0, "skin": 0.3, "neighbours": 3}
    model = Molecular(len(masses), (math.inf, math.inf), **options | counted)
    own = [np.full(len(bonds), value) for value in (STIFFNESS, LENGTH)]
    own += [np.full(len(angles), value) for value in (ANGLE_STIFFNESS, ANGLE)]
    values = [np.array(masses), *[np.array(1.0)] * 5, *own]
    return model, Params(*[tensor(value) for value in values])


def bent() -> Array:
    """Positions of a symmetric molecule without forces."""
    half = 0.5 * ANGLE
    return LENGTH * np.array([[math.sin(half), math.cos(half)], [0, 0], [-math.sin(half), math.cos(half)]])


def test_two_atoms_oscillate_with_the_frequency_of_the_steps() -> None:
    """Velocity Verlet turns a harmonic motion by h' per step, cos h' = 1 - k h^2 / (2 mu), mu the reduced mass."""
    model, params = make([1.0, 3.0], [[0, 1]], [])
    stretch, reduced, steps = 0.2, 0.75, 60
    position = tensor(np.array([[LENGTH + stretch, 0.3], [0.0, 0.3]]))
    empty = [tensor(np.zeros(shape)) for shape in ((), 0, 0)]
    with no_grad():
        x = rollout(model, params, State(position, tensor(np.zeros((2, 2))), *empty), steps=steps).states.position.data
    turn = math.acos(1 - STIFFNESS * model.dt**2 / (2 * reduced))
    expected = LENGTH + stretch * np.cos(turn * np.arange(steps + 1))
    np.testing.assert_allclose(x[:, 0, 0] - x[:, 1, 0], expected, rtol=1e-12)


def test_a_bent_molecule_has_its_normal_modes() -> None:
    """Frequencies of XY2 from the tangent of the forces (Herzberg 1945, Infrared and Raman spectra, II 187-190)."""
    y, x = 1.3, 4.1
    model, params = make([y, x, y], [[0, 1], [1, 2]], [[0, 1, 2]])
    masses = np.repeat([y, x, y], 2)

    def force(position: Any) -> Any:
        return find_force(model, params, position)

    columns = [jvp(force, (tensor(bent()),), (row.reshape(3, 2),))[1] for row in np.eye(6)]
    hessian = -np.stack([np.asarray(column).reshape(6) for column in columns])
    found = np.linalg.eigvalsh(hessian / np.sqrt(masses * masses[:, None]))
    np.testing.assert_allclose(found[:3], 0, atol=1e-11 * STIFFNESS)  # two shifts and a rotation
    sine, cosine, bend = math.sin(ANGLE / 2), math.cos(ANGLE / 2), ANGLE_STIFFNESS / LENGTH**2
    asymmetric = STIFFNESS / y * (1 + 2 * y / x * sine**2)
    total = STIFFNESS / y * (1 + 2 * y / x * cosine**2) + 2 * bend / y * (1 + 2 * y / x * sine**2)
    product = 2 * STIFFNESS * bend / y**2 * (1 + 2 * y / x)
    symmetric = np.roots([1, -total, product])
    np.testing.assert_allclose(np.sort([asymmetric, *symmetric]), found[3:], rtol=1e-11)


def test_force_and_virial_are_slopes_of_the_energy() -> None:
    """By positions, and by the size of a molecule; atoms of a molecule interact in no other way."""
    model, params = make([1.0, 2.0, 1.0], [[0, 1], [1, 2]], [[0, 1, 2]])
    x = bent() + np.array([[0.1, -0.05], [0.02, 0.03], [-0.06, 0.04]])
    position = tensor(x, requires_grad=True)
    sums = find_sums(model, params, position)
    energy, virial = sums.data.sum(axis=0)
    sums[:, 0].sum().backward()
    assert position.grad is not None
    slope = position.grad.data
    np.testing.assert_allclose(find_force(model, params, position).data, -slope, rtol=1e-12, atol=1e-12)
    assert math.isclose(virial, -(slope * x).sum(), rel_tol=1e-12)
    u, w = x[0] - x[1], x[2] - x[1]
    lengths = np.sqrt([u @ u, w @ w])
    turn = math.acos(u @ w / lengths.prod()) - ANGLE
    expected = 0.5 * STIFFNESS * ((lengths - LENGTH) ** 2).sum() + 0.5 * ANGLE_STIFFNESS * turn**2
    assert math.isclose(energy, expected, rel_tol=1e-12)
