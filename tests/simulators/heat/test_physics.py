"""Heat conduction against closed forms: decay of Fourier modes, orders in space and in time, balance of energy."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.errors import InputError
from simphys.rollout import rollout
from simphys.rollout.stability import require_stable_step
from simphys.simulators.heat import Heat, Params, State

from .systems import MODELS, make_system

LENGTH, K, CAPACITY = 2.0, 1.3, 0.8
ALPHA = K / CAPACITY


def uniform(model: Heat, temperature: np.ndarray, *, sides: float = 0.0, source: float = 0.0) -> tuple[Params, State]:
    params = Params(
        conductivity=tensor(np.full(model.cells, K)),
        heat_capacity=tensor(np.full(model.cells, CAPACITY)),
        source=tensor(np.full(model.cells, source)),
        side_temperature=tensor(np.full(2 * model.dim, sides)),
    )
    return params, State(tensor(temperature))


def mode(model: Heat) -> tuple[np.ndarray, float]:
    """Build the product of the slowest wave along each axis, and its rate of decay [1/s].

    It vanishes at fixed sides, and its slope at insulated ones; both sides of an axis are alike.
    """
    axes = np.meshgrid(*[model.spacing * (np.arange(n) + 0.5) for n in model.cells], indexing="ij")
    waves = [
        (np.sin if model.sides[2 * axis] == "fixed" else np.cos)(math.pi * x / (model.spacing * model.cells[axis]))
        for axis, x in enumerate(axes)
    ]
    rate = sum([ALPHA * (math.pi / (model.spacing * n)) ** 2 for n in model.cells])
    return np.prod(waves, axis=0), rate


def find_error(model: Heat, duration: float) -> float:
    start, rate = mode(model)
    params, state = uniform(model, start)
    final = rollout(model, params, state, steps=round(duration / model.dt), keep="final").final.temperature.data
    return float(np.abs(final - start * math.exp(-rate * duration)).max())


SIDES = {2: ("fixed", "fixed", "insulated", "insulated"), 3: ("fixed",) * 2 + ("insulated",) * 2 + ("fixed",) * 2}


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("scheme", ["explicit", "crank_nicolson"])
def test_a_fourier_mode_decays_at_its_rate_to_order_2_in_space(dim: int, scheme: Any) -> None:
    errors = []
    for n in (6, 12):
        cells = (n, n + n // 2, n)[:dim]
        dt = 0.002 * (6 / n) ** 2 if scheme == "explicit" else 0.005
        model = Heat(cells, LENGTH / n, dt, scheme, SIDES[dim])
        errors.append(find_error(model, 0.05))
    assert errors[1] < 0.01
    assert math.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.15)


@pytest.mark.parametrize(("scheme", "order"), [("explicit", 1), ("implicit", 1), ("crank_nicolson", 2)])
def test_the_order_in_time_is_that_of_the_scheme(scheme: Any, order: int) -> None:
    """A wave that the grid carries exactly decays at the grid's own rate; only time steps are in error."""
    n, duration = 6, 0.2
    model = Heat((n, n), LENGTH / n, 1.0, scheme, SIDES[2])
    start, _ = mode(model)
    rate = 2 * ALPHA * (2 - 2 * math.cos(math.pi / n)) / model.spacing**2
    params, state = uniform(model, start)
    errors = []
    for steps in (10, 20):
        fine = replace(model, dt=duration / steps)
        final = rollout(fine, params, state, steps=steps, keep="final").final.temperature.data
        errors.append(np.abs(final - start * math.exp(-rate * duration)).max())
    assert math.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.1)


def test_two_layers_in_a_row_conduct_like_two_resistances() -> None:
    """In the steady state the temperature is that of the layers exactly: the faces have the harmonic mean."""
    model = Heat((8, 2), 0.25, 50.0, "implicit", ("fixed", "fixed", "insulated", "insulated"))
    k = np.where(np.arange(8) < 4, 2.0, 0.5)[:, None] * np.ones((8, 2))
    params, state = uniform(model, np.zeros(model.cells))
    params = params.replace(conductivity=k, side_temperature=np.array([10.0, 0.0, 0.0, 0.0]))
    final = rollout(model, params, state, steps=60, keep="final").final.temperature.data
    flux = 10.0 / (1 / 2.0 + 1 / 0.5)
    x = 0.25 * (np.arange(8) + 0.5)
    expected = np.where(x < 1, 10 - flux * x / 2.0, flux * (2 - x) / 0.5)
    np.testing.assert_allclose(final, expected[:, None] * np.ones((8, 2)), atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_energy_changes_by_the_sources_alone_in_an_insulated_box(name: str) -> None:
    model = replace(MODELS[name], sides=())
    _, params, state, _ = make_system(model)
    final = rollout(model, params, state, steps=5).final.temperature.data
    energy = [(params.heat_capacity.data * field).sum() for field in (state.temperature.data, final)]
    assert energy[1] - energy[0] == pytest.approx(5 * model.dt * params.source.data.sum(), abs=1e-11)


def test_steps_beyond_the_limit_are_refused_with_what_limits_them() -> None:
    model = Heat((4, 5), 0.5, 0.01, sides=("fixed", "insulated", "insulated", "insulated"))
    params, state = uniform(model, np.zeros(model.cells))
    k = params.conductivity.data.copy()
    k[0, 2] = 7.0
    params = params.replace(conductivity=k)
    limit = model.step_limits(params.arrays(), state.arrays())[0].dt
    require_stable_step(replace(model, dt=limit), params, state)
    with pytest.raises(InputError, match=rf"is {limit:.4g}, by conductivity 7 .* of cell \[0, 2\]"):
        require_stable_step(replace(model, dt=1.01 * limit), params, state)
    require_stable_step(replace(model, dt=100 * limit, scheme="implicit"), params, state)


def test_the_limit_is_sharp_for_a_large_uniform_grid() -> None:
    """Beyond the limit of a large insulated grid the alternating wave grows."""
    model = Heat((20, 20), 0.5, 1.0)
    params, state = uniform(model, np.zeros(model.cells))
    limit = model.step_limits(params.arrays(), state.arrays())[0].dt
    checks = (-1.0) ** np.add.outer(np.arange(20), np.arange(20))
    for factor, grows in ((0.99, False), (1.05, True)):
        chosen = replace(model, dt=factor * limit)
        final = rollout(chosen, params, State(tensor(checks)), steps=40, keep="final").final.temperature.data
        assert (np.abs(final).max() > 1) == grows


def test_a_model_that_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="1, 2 or 3 dimensions"):
        Heat((), 0.1, 0.1)
    with pytest.raises(InputError, match="one for each side"):
        Heat((2, 2), 0.1, 0.1, sides=("fixed",))
    with pytest.raises(InputError, match="must be one of"):
        Heat((2, 2), 0.1, 0.1, "upwind")  # type: ignore[arg-type]
