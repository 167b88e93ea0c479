"""The response of particles, each with its own law."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.mpm.constitutive import Coefficients, adj_coefficients, coefficients, respond
from simphys.simulators.mpm.laws import LAW_PARAMETERS, LAWS
from simphys.simulators.mpm.model import MPM, Params

RANGES = {
    "young_modulus": (1, 2),
    "poisson_ratio": (0.1, 0.4),
    "bulk_modulus": (1, 2),
    "yield_stress": (0.1, 0.2),
    "friction_angle": (0.4, 0.7),
    "hardening": (4, 6),
    "critical_compression": (0.02, 0.03),
    "critical_stretch": (0.005, 0.01),
}
MIXED = ("fluid", "fixed_corotated", "neo_hookean")


def model_of(laws: tuple[str, ...], law: list[int] | None, dim: int = 2) -> MPM:
    n = 4 if law is None else len(law)
    return MPM((16,) * dim, 1 / 16, 1e-3, n, laws, None if law is None else np.array(law, np.int32))


def inputs_of(model: MPM, seed: int = 0) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """Draw deformations, hidden variables and the fields LAW_PARAMETERS; all that are not empty require a gradient."""
    random = np.random.default_rng(seed)
    n, dim, shapes = model.particles, model.dim, model.param_shapes()
    F = tensor(np.eye(dim) + 0.1 * random.normal(size=(n, dim, dim)), requires_grad=True)
    values = [random.uniform(*RANGES[name], shapes[name]) for name in LAW_PARAMETERS]
    q = random.uniform(0.9, 1.1, n if model.is_plastic else 0)
    return F, tensor(q), tuple([tensor(x, requires_grad=x.size > 0) for x in values])


def response(model: MPM, q: Tensor) -> Any:
    return lambda F, *fields: respond(model, F, q, Coefficients.apply(model, *fields))


def test_the_fields_of_laws_are_those_that_laws_read() -> None:
    assert set(LAW_PARAMETERS) == {name for law in LAWS.values() for name in law.PARAMETERS} | set(RANGES)
    assert set(LAW_PARAMETERS) <= set(Params.names())


@pytest.mark.parametrize(
    ("laws", "law"), [(("fixed_corotated",), None), (("neo_hookean", "fluid"), None), (MIXED, [0, 2, 1, 2, 0])]
)
def test_every_element_of_the_jacobian_is_right(laws: tuple[str, ...], law: list[int] | None) -> None:
    model = model_of(laws, law)
    F, q, fields = inputs_of(model)
    gradcheck(response(model, q), (F, *fields), tolerance=1e-8)
    dot_product_test(response(model, q), (F, *fields), tolerance=1e-12)


def test_the_hidden_variable_is_unchanged_for_particles_of_laws_that_have_none() -> None:
    plastic = [name for name in LAWS if LAWS[name].HIDDEN]
    if not plastic:
        pytest.skip("no law has a hidden variable")
    model = model_of((plastic[0], "fluid"), [1, 0, 1, 0])
    F, q, fields = inputs_of(model)
    c = Coefficients.apply(model, *fields)
    hidden = tensor(q.data, requires_grad=True)
    _, q_new, _ = respond(model, F, hidden, c)
    np.testing.assert_array_equal(q_new.data[::2], q.data[::2])
    q_new.sum().backward()
    assert hidden.grad is not None
    np.testing.assert_array_equal(hidden.grad.data[::2], 1)


@pytest.mark.gpu
def test_each_particle_responds_by_its_own_law() -> None:
    law = [0, 2, 1, 2, 0]
    model = model_of(MIXED, law)
    F, q, fields = inputs_of(model)
    F_new, _, tau = response(model, q)(F, *fields)
    for k, name in enumerate(MIXED):
        alone = model_of((name,), [0] * len(law))
        shapes = alone.param_shapes()
        read = [tensor(f.data[: shapes[name][0]]) for name, f in zip(LAW_PARAMETERS, fields, strict=True)]
        expected = response(alone, q)(F, *read)
        members = np.array(law) == k
        np.testing.assert_allclose(F_new.data[members], expected[0].data[members], rtol=1e-6)
        np.testing.assert_allclose(tau.data[members], expected[2].data[members], rtol=1e-5, atol=1e-6)


def test_parameters_that_a_particles_law_does_not_read_have_no_gradient() -> None:
    model = model_of(MIXED, [0, 2, 1, 2, 0])
    fields = inputs_of(model)[2]
    params = {name: field.data for name, field in zip(LAW_PARAMETERS, fields, strict=True)}
    c = coefficients(model, params)
    assert c.shape == (5, model.width)
    np.testing.assert_array_equal(c[[0, 4], 1], 0)  # a fluid has one coefficient
    adj = adj_coefficients(model, params, np.ones_like(c))
    assert {name: adj[name].shape for name in LAW_PARAMETERS} == {name: params[name].shape for name in LAW_PARAMETERS}
    np.testing.assert_array_equal(adj["bulk_modulus"], [1, 0, 0, 0, 1])
    np.testing.assert_array_equal(adj["young_modulus"] != 0, [False, True, True, True, False])
