"""The stress of actuators along fibres, and its adjoint."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import GradcheckError, dot_product_test, gradcheck
from simphys.simulators.mpm.actuate import FibreStress
from simphys.simulators.mpm.model import MPM

from ...helpers.rounding import assert_equal_but_for_rounding
from . import substeps
from .systems import system

DIMS = pytest.mark.parametrize("dim", [2, 3])


def parts(dim: int) -> tuple[MPM, tuple[Tensor, Tensor, Tensor]]:
    """Build five particles: two with the first actuator, one with the second, two with none."""
    model, _, state, control = system(dim, particles=5, steps=1)
    assert model.actuator is not None and sorted(model.actuator) == [-1, -1, 0, 0, 1]
    assert control is not None
    stress = tensor(np.random.default_rng(5).normal(size=(5, dim, dim)), requires_grad=True)  # not symmetric
    return model, (stress, state.deformation, tensor(control.data[0], requires_grad=True))


@DIMS
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    model, inputs = parts(dim)
    gradcheck(lambda *x: substeps.actuate(model, *x), inputs, tolerance=1e-8)
    dot_product_test(lambda *x: substeps.actuate(model, *x), inputs, tolerance=1e-13)


@pytest.mark.gpu
@DIMS
def test_a_control_pulls_along_the_fibre_as_it_lies_now(dim: int) -> None:
    model, (stress, F, u) = parts(dim)
    assert model.actuator is not None and model.fibre is not None
    along = np.einsum("nij,nj->ni", F.data, model.fibre)
    signals = np.array([u.data[k] if k >= 0 else 0.0 for k in model.actuator])
    expected = stress.data + signals[:, None, None] * along[:, :, None] * along[:, None, :]
    found = substeps.actuate(model, stress.detach(), F.detach(), u.detach()).data
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_without_a_direction_the_fibres_lie_along_the_last_axis() -> None:
    model, (stress, _, u) = parts(2)
    model = replace(model, fibre=None)
    still = tensor(np.broadcast_to(np.eye(2), (5, 2, 2)).copy())
    added = substeps.actuate(model, stress.detach(), still, u.detach()).data - stress.data
    assert not added[:, 0].any() and not added[:, :, 0].any()
    size = float(abs(stress.data).max())
    assert_equal_but_for_rounding(added[:, 1, 1], [0, *u.data, 0, u.data[0]], size=size)


def test_a_missing_term_of_the_adjoint_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    model, inputs = parts(2)
    backward = FibreStress.backward

    def forgetful(ctx: Any, adj: Tensor) -> Any:
        *others, adj_u = backward(ctx, adj)
        adj_u[0] *= 0.5  # as if one of its two particles were missing
        return *others, adj_u

    monkeypatch.setattr(FibreStress, "backward", staticmethod(forgetful))
    with pytest.raises(GradcheckError, match="input 2"):
        gradcheck(lambda *x: substeps.actuate(model, *x), inputs)
