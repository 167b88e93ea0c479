"""Neighbours that a tree finds are those that comparison of all pairs finds, across the ends of periodic axes, too."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from simphys.autograd.errors import InputError
from simphys.simulator.neighbours import advise_room, count_most, find_nearest, require_room

BOXES = [(3.0, 2.0), (3.0, np.inf), (np.inf, np.inf, np.inf), (2.0, 3.0, np.inf)]


def distances(position: np.ndarray, box: tuple[float, ...]) -> np.ndarray:
    d = position[:, None] - position
    length = np.where(np.isfinite(box), box, 1.0)
    d = np.where(np.isfinite(box), d - length * np.round(d / length), d)
    return np.linalg.norm(d, axis=-1) + np.where(np.eye(len(position)), np.inf, 0.0)


@pytest.mark.parametrize("box", BOXES)
def test_the_nearest_two_and_the_most_neighbours_are_found(box: tuple[float, ...]) -> None:
    position = np.random.default_rng(3).uniform(-1.0, 3.0, (40, len(box)))
    apart = distances(position, box)
    found, i, j = find_nearest(position, box)
    assert found == pytest.approx(apart.min()) and apart[i, j] == pytest.approx(found)
    assert count_most(position, box, 0.7) == (apart < 0.7).sum(axis=1).max()
    molecule = np.arange(40) // 4
    others = np.where(molecule[:, None] == molecule, np.inf, apart)
    assert find_nearest(position, box, molecule)[0] == pytest.approx(others.min())


def test_a_single_particle_has_no_neighbour() -> None:
    assert find_nearest(np.zeros((1, 2)), (4.0, 4.0)) == (np.inf, 0, 0)


def test_a_full_list_is_refused_at_the_start_and_named_after_a_blow_up() -> None:
    position = np.array([[0.1 * i, 0.0] for i in range(5)])
    model = SimpleNamespace(box=(np.inf, np.inf), cutoff=0.25, skin=0.0, neighbours=4)
    require_room(model, position, 1.5, "a particle")
    assert not advise_room(model, position, "A particle")
    model.neighbours = 3
    with pytest.raises(
        InputError, match=r"room for the 4 neighbours of a particle at the start.*found 3\. Set .* to 6,"
    ):
        require_room(model, position, 1.5, "a particle")
    assert advise_room(model, position, "An atom") == (
        "An atom has 4 neighbours within cut-off and skin, and room for 3: raise `neighbours`."
    )
    assert not advise_room(model, position * np.nan, "An atom")
