"""Lattices against loops that spell out the order of nodes and springs."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.scenefile.shared import place_lattice
from simphys.simulators.mass_spring.lattice import lattice_face, lattice_springs


def test_a_chain_joins_neighbours() -> None:
    assert lattice_springs([4]).tolist() == [[0, 1], [1, 2], [2, 3]]


def test_a_sheet_has_horizontal_then_vertical_springs_then_both_diagonals() -> None:
    nx, ny = 4, 3

    def node(i: int, j: int) -> int:
        return i * ny + j

    expected = [[node(i, j), node(i + 1, j)] for i in range(nx - 1) for j in range(ny)]
    expected += [[node(i, j), node(i, j + 1)] for i in range(nx) for j in range(ny - 1)]
    expected += [[node(i, j), node(i + 1, j + 1)] for i in range(nx - 1) for j in range(ny - 1)]
    expected += [[node(i + 1, j), node(i, j + 1)] for i in range(nx - 1) for j in range(ny - 1)]
    assert lattice_springs([nx, ny]).tolist() == expected


def test_a_block_has_the_axes_and_both_diagonals_of_every_face() -> None:
    springs = lattice_springs([2, 2, 2])
    assert len(springs) == 12 + 2 * 6
    lengths = np.linalg.norm(np.diff(place_lattice([0, 0, 0], [2, 2, 2], 1.0)[springs], axis=1)[:, 0], axis=1)
    assert lengths == pytest.approx([1.0] * 12 + [np.sqrt(2)] * 12)
    assert len({frozenset(pair) for pair in springs.tolist()}) == len(springs)


def test_springs_are_pairs_of_int32_also_where_there_are_none() -> None:
    assert lattice_springs([1, 1]).shape == (0, 2)
    assert lattice_springs([3, 2]).dtype == np.int32


@pytest.mark.parametrize(("face", "nodes"), [("x-", [0, 1]), ("x+", [4, 5]), ("y-", [0, 2, 4]), ("y+", [1, 3, 5])])
def test_faces_are_named_by_axis_and_side(face: str, nodes: list[int]) -> None:
    assert lattice_face([3, 2], face).tolist() == nodes
