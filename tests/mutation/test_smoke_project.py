"""Every term of the projection of a fluid is needed: its adjoint and tangent are the same loops, swapped."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from simphys.autograd.proof.gradcheck import gradcheck
from simphys.autograd.proof.mutation import ERRORS
from simphys.simulators.smoke import differences, divergence, project

from ..simulators.smoke import projections, test_project
from ..simulators.smoke.parts import check_parts_of_arrays
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep

EACH = 1
"""Number of mutants per rule in a sample."""

ALSO = (*ERRORS, TypeError, AttributeError, RuntimeError)
"""Errors of mutants; the compiler raises RuntimeError for an unused variable."""

P, C, O, I = test_project.P, test_project.C, test_project.O, test_project.I  # noqa: E741
BOXES = {
    "staggered": [
        ((3, 35), (I, O, P, P)),
        ((3, 32), (C, C, C, C)),
        ((4, 3), (O, I, I, C)),
        ((3, 2, 35), (C, C, P, P, I, O)),
    ],
    "collocated": [((3, 35), (C, C, P, P)), ((4, 35), (P, P, C, C)), ((4, 3, 35), (C, C, P, P, P, P))],
}
"""Boxes with rows of one block of cells, of less and of more, and each kind of side along and across them."""


def projections_of(module: Any) -> None:
    for grid, boxes in BOXES.items():
        projected(module, grid, boxes[:1])


def projected(module: Any, grid: str, boxes: list[Any]) -> None:
    """Check the derivatives, and that no divergence is left and no energy gained."""
    for cells, sides in boxes:
        model = test_project.model_of(cells, sides, grid=grid, projection="conjugate_gradients", tolerance=1e-13)
        velocity = test_project.leaf(model)
        gradcheck(lambda u, m=model: module.Project.apply(m, u), velocity, mode="projected", repeats=1)
        with patch.multiple(projections, RUNS=dict(zip(projections.RUNS, rules_of(module), strict=True))):
            if grid == "staggered":
                test_project.test_on_a_staggered_grid_no_divergence_is_left(cells, sides, "conjugate_gradients")
            else:
                test_project.test_a_collocated_projection_is_approximate(cells, sides)


def rules_of(module: Any) -> tuple[Any, ...]:
    return module.project, module.adj_project, module.jvp_project


def loops(grid: str) -> Any:
    def checked(module: Any) -> None:
        project._workspace.cache_clear()
        try:
            with patch.object(differences, "divergence", module):
                projected(project, grid, BOXES[grid])
                for cells, sides in BOXES[grid]:
                    model = test_project.model_of(cells, sides, grid=grid, projection="jacobi", sweeps=3)
                    given = {"velocity": test_project.some(model, seed=1)}
                    check_parts_of_arrays(model, project.Project, project.adj_project, given, "projected_velocity")
        finally:
            project._workspace.cache_clear()

    return checked


SWEEPS = [
    Sweep(project, ("adj_*", "jvp_*"), projections_of, errors=ALSO),
    *[
        Sweep(divergence, (f"{grid}_*.divergence", f"{grid}_*.correct", other), loops(grid), errors=ALSO)
        for grid, other in (("staggered", "*.cross_outflow"), ("collocated", "sign"))
    ],
]
