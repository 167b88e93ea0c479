"""The update of the deformation gradient by the velocity gradient, and its adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import GradcheckError, dot_product_test, gradcheck
from simphys.simulators.mpm.deformation import Deform
from simphys.simulators.mpm.model import MPM

from . import substeps
from .systems import system

DIMS = pytest.mark.parametrize("dim", [2, 3])


def parts(dim: int) -> tuple[MPM, tuple[Tensor, Tensor]]:
    model, _, state, _ = system(dim, particles=3)
    return model, (state.affine, state.deformation)


@DIMS
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    model, inputs = parts(dim)
    gradcheck(lambda *x: substeps.deform(model, *x), inputs, tolerance=1e-9)
    dot_product_test(lambda *x: substeps.deform(model, *x), inputs, tolerance=1e-13)


@pytest.mark.gpu
@DIMS
def test_the_material_follows_the_velocity_gradient(dim: int) -> None:
    model, (C, F) = parts(dim)
    expected = F.data + model.dt * C.data @ F.data
    np.testing.assert_allclose(substeps.deform(model, C.detach(), F.detach()).data, expected, rtol=0, atol=1e-6)


@DIMS
def test_a_small_turn_keeps_the_volume_to_second_order(dim: int) -> None:
    """A skew W of angular velocity w gives det(I + h W) - 1 = h^2 w^2."""
    model, _ = parts(dim)
    C = np.zeros((3, dim, dim))
    C[:, 0, 1], C[:, 1, 0] = -2.0, 2.0
    turned = substeps.deform(model, tensor(C), tensor(np.broadcast_to(np.eye(dim), C.shape).copy())).data
    np.testing.assert_allclose(np.linalg.det(turned), 1 + (2.0 * model.dt) ** 2, rtol=1e-13)


def test_a_missing_term_of_the_adjoint_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    model, inputs = parts(2)
    backward = Deform.backward

    def forgetful(ctx: Any, adj: Tensor) -> Any:
        _, adj_C, _, _ = backward(ctx, adj)
        return None, adj_C, adj.data, None  # without h C^T G

    monkeypatch.setattr(Deform, "backward", staticmethod(forgetful))
    with pytest.raises(GradcheckError, match="input 1"):
        gradcheck(lambda *x: substeps.deform(model, *x), inputs)
