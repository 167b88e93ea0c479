"""Picture of a gradient's health."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from simphys.autograd import tensor
from simphys.autograd.errors import InputError
from simphys.diagnose.health import Health, health
from simphys.plot.fit.health import health as draw

from ..helpers import tanks
from ..rollout.pendulums import Params, Pendulums, State
from ..simulators.mass_spring.systems import springs_only

UNITS = {"angle": "rad", "rate": "rad/s"}


def pendulums(*, stiffness: float, steps: int) -> Health:
    params, state = Params(tensor([stiffness]), tensor(0.0)), State(tensor([0.0]), tensor([0.0]))
    return health(Pendulums(n=1, dt=0.01), params, state, steps=steps)


def panels(found: Health, units: dict[str, str], *, bodies: Sequence[str] = ()) -> list[Axes]:
    return draw(found, units=units, bodies=bodies).axes


def legend(axes: Axes) -> list[str]:
    shown = axes.get_legend()
    return [] if shown is None else [text.get_text() for text in shown.get_texts()]


def test_every_axis_has_its_unit_and_sizes_are_on_log_axes() -> None:
    above, middle, beneath = panels(pendulums(stiffness=-4.0, steps=2500), UNITS)
    assert above.get_ylabel() == "|∂loss/∂angle|\n[loss / rad]"
    assert middle.get_ylabel() == "|∂loss/∂rate|\n[loss / (rad/s)]"
    assert beneath.get_ylabel() == "growth [1]"
    assert beneath.get_xlabel() == "time [s]"
    assert {axes.get_yscale() for axes in (above, middle, beneath)} == {"log"}


def test_adjoint_fit_tangent_and_1_over_eps_are_drawn() -> None:
    found = pendulums(stiffness=-4.0, steps=2500)
    above, _, beneath = panels(found, UNITS)
    adjoint, fitted, tangent, limit = beneath.get_lines()[:4]
    np.testing.assert_allclose(np.asarray(adjoint.get_ydata()), np.exp(found.log_growth))
    slope = np.diff(np.log(np.asarray(fitted.get_ydata()))) / np.diff(np.asarray(fitted.get_xdata()))
    np.testing.assert_allclose(slope, -2.0, rtol=1e-3)  # the adjoint grows to the left
    np.testing.assert_allclose(np.asarray(tangent.get_ydata())[0], 1.0)
    np.testing.assert_allclose(np.asarray(limit.get_ydata()), 2.0**52)
    names = legend(beneath)
    assert names[0] == "adjoint, back from the end"
    assert names[1:] == ["fitted: 2 / s", "tangent, forward from the start, 2 / s", "1/eps"]
    curve, line = (np.asarray(each.get_ydata()) for each in above.get_lines()[:2])
    np.testing.assert_allclose(curve, np.abs(found.adjoint["angle"][:, 0]))
    np.testing.assert_allclose(line, curve[: len(line)], rtol=0.1)


def test_the_unusable_part_is_shaded_on_every_panel_and_the_title_names_the_usable_one() -> None:
    found = pendulums(stiffness=-4.0, steps=2500)
    edge = (2500 - found.usable_steps) * 0.01
    for axes in panels(found, UNITS):
        (shade,) = axes.patches
        assert shade.get_window_extent().transformed(axes.transData.inverted()).x1 == pytest.approx(edge)
    seconds = f"{found.usable_steps * 0.01:.3g} s"
    assert axes.get_title(loc="left") == f"usable gradient: the last {found.usable_steps} of 2500 steps, {seconds}"
    sound = panels(pendulums(stiffness=4.0, steps=500), UNITS)
    assert not any(axes.patches for axes in sound)
    assert sound[-1].get_title(loc="left") == "usable gradient: the whole horizon, 5 s"


def test_free_components_of_bodies_are_named_and_pinned_ones_left_out() -> None:
    hanging: tuple[Any, ...] = springs_only([[2, 0], [0, 1]], [[1.0, 0], [2, 0.1], [0, 0]], pinned=[2], rest_length=0.7)
    found = health(*hanging, steps=50)
    above, middle, _ = panels(found, {}, bodies=["position", "velocity"])
    assert legend(above) == legend(middle) == ["node 0 x", "node 0 y", "node 1 x", "node 1 y"]
    assert above.get_ylabel() == "|∂loss/∂position|\n[loss]"


def test_many_components_are_drawn_as_their_spread_with_their_norm() -> None:
    n = 9
    params, state = Params(tensor(np.linspace(1, 2, n)), tensor(0.1)), State(tensor(np.ones(n)), tensor(np.ones(n)))
    above = panels(health(Pendulums(n=n), params, state, steps=50), {})[0]
    assert "norm of all" in legend(above)
    assert len(above.collections) == 1


def test_a_field_without_effect_on_the_loss_is_marked() -> None:
    params, state = tanks.Params(tensor(1.0)), tanks.State(tensor([4.0, 9.0]))
    found = health(tanks.Tanks(), params, state, steps=20, loss=lambda t: (0.0 * t.final.level).sum())
    assert [text.get_text() for text in panels(found, {})[0].texts] == ["zero throughout"]


def test_the_title_names_a_value_that_is_not_finite() -> None:
    params, state = tanks.Params(tensor(1.0)), tanks.State(tensor([4.0, 1.0]))
    figure = draw(health(tanks.Tanks(), params, state, steps=60), title="Tanks", units={})
    assert figure.get_suptitle() == "Tanks: level[1] is not finite"


def test_the_picture_is_written_and_without_a_sound_step_there_is_none(tmp_path: Path) -> None:
    draw(pendulums(stiffness=4.0, steps=50), tmp_path / "health.png", title="Hanging", units=UNITS)
    assert (tmp_path / "health.png").read_bytes().startswith(b"\x89PNG")
    broken = health(tanks.Tanks(1), tanks.Params(tensor(1.0)), tanks.State(tensor([-1.0])), steps=3)
    with pytest.raises(InputError, match="needs a sound step"):
        draw(broken, units={})


@pytest.mark.parametrize(("count", "felt", "named"), [(3, 1, ["[0]"]), (9, 2, ["all"]), (9, 5, ["all"]), (41, 1, [])])
def test_a_component_that_is_zero_throughout_has_no_entry_in_the_legend(
    count: int, felt: int, named: list[str]
) -> None:
    """Check the legend: zeros have no curve on a log axis; a spread is named by its median or else by its band."""
    params, state = Params(tensor(np.ones(count)), tensor(0.1)), State(tensor(np.ones(count)), tensor(np.ones(count)))
    found = health(Pendulums(n=count), params, state, steps=50, loss=lambda t: t.final.angle[:felt].sum())
    above = panels(found, {})[0]
    assert [each for each in legend(above) if each != "norm of all"] == named
    median = np.median(np.abs(found.adjoint["angle"]), axis=1)
    if count == 9:
        np.testing.assert_array_equal(np.asarray(above.get_lines()[1].get_ydata()), median)
        assert (median > 0).any() == (felt == 5)


@pytest.mark.parametrize(("bodies", "named"), [([], ["[0]", "[1]"]), (["angle"], ["node 0", "node 1"])])
def test_a_vector_of_one_component_has_no_letter(bodies: list[str], named: list[str]) -> None:
    params, state = Params(tensor(np.ones(2)), tensor(0.1)), State(tensor(np.ones(2)), tensor(np.ones(2)))
    found = health(Pendulums(n=2), params, state, steps=20)
    angles = replace(
        found,
        adjoint={"angle": found.adjoint["angle"][..., None]},
        moving={"angle": found.moving["angle"][:, None]},
    )
    assert legend(panels(angles, UNITS, bodies=bodies)[0]) == named
