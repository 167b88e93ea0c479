"""Scenes, trajectories, fits and runs at a prompt and in a notebook: a few lines, tables and pictures."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from simphys.app.identification import Identification
from simphys.app.workflow import identify
from simphys.autograd import Graph, InputError, profile, tensor
from simphys.diagnose.check import check
from simphys.diagnose.health import scene_health
from simphys.experiment.scene import Scene, load_scene

from ..helpers import oscillator

SCENES = Path(__file__).resolve().parents[2] / "scenes"


class Balanced(HTMLParser):
    """Elements that are opened and closed; pictures need a text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag == "img":
            assert dict(attrs)["alt"]
        else:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return load_scene(oscillator.write(tmp_path_factory.mktemp("scene")))


@pytest.fixture(scope="module")
def fit(scene: Scene) -> Identification:
    return identify(scene)


@pytest.mark.parametrize("name", ["mass_spring/jelly", "smoke/picture", "rigid/walker_2d", "charges/find_charges"])
def test_any_scene_is_six_lines_that_fit_a_screen(name: str) -> None:
    lines = repr(load_scene(SCENES / f"{name}.toml")).splitlines()
    assert len(lines) == 6
    assert all(len(line) <= 140 for line in lines)
    assert name.partition("/")[0] in lines[0]


def test_a_scene_names_its_horizon_fields_unknowns_and_measurement() -> None:
    text = repr(load_scene(SCENES / "mass_spring" / "air_track.toml"))
    for part in ("29,031 steps x 0.001 s", "position [2, 1] -72 ... -10 px", "drag 1/s", "829 times, 1 channel"):
        assert part in text


def test_parameters_have_the_units_of_their_simulator_unless_the_scene_has_others() -> None:
    for name, part in (("rigid/walker_2d", "mass [5] 0.7 ... 4 kg;"), ("mass_spring/air_track", "mass [2] 1;")):
        assert part in repr(load_scene(SCENES / f"{name}.toml"))


def test_a_field_is_a_line_with_mean_spread_and_range() -> None:
    scene = load_scene(SCENES / "smoke" / "picture.toml")
    (line,) = [line for line in repr(scene.state).splitlines() if "smoke" in line]
    values = scene.state.smoke.data
    assert line == (
        f"  smoke [110, 110]: mean {values.mean():.4g}, spread {values.std():.3g}, from {values.min():.4g} to "
        f"{values.max():.4g}"
    )


def test_a_trajectory_is_a_line_for_each_field_and_draws_them(scene: Scene) -> None:
    trajectory = scene.rollout(steps=20)
    assert repr(trajectory).splitlines()[0] == "Trajectory of 20 steps, 21 states"
    assert "position [21, " in repr(trajectory)
    figure = trajectory.plot("velocity")
    assert figure.axes[0].get_ylabel() == "velocity [m/s]"
    assert figure._repr_png_().startswith(b"\x89PNG")  # a notebook shows it without pyplot
    with pytest.raises(InputError, match="position, velocity"):
        trajectory.plot("colour")


def test_curves_of_a_trajectory_have_the_names_of_bodies() -> None:
    balls = load_scene(SCENES / "rigid" / "two_balls.toml").rollout(steps=5)
    for field, labels in (
        ("angular_velocity", ["left ball", "right ball"]),
        ("position", ["left ball x", "left ball y", "right ball x", "right ball y"]),
    ):
        assert [line.get_label() for line in balls.plot(field).axes[0].lines] == labels


def test_a_fit_is_the_table_of_its_values(fit: Identification) -> None:
    text = repr(fit)
    assert len(text.splitlines()) <= 12
    for estimate in fit.unknowns:
        assert estimate.label in text and estimate.unit in text
    assert fit.result.status in text and "standard error" in text


def test_a_fit_draws_its_pictures_by_name(fit: Identification) -> None:
    assert isinstance(fit.plot(), Figure)
    assert "loss" in fit.plot("convergence").axes[0].get_ylabel()
    with pytest.raises(InputError, match="convergence"):
        fit.plot("portrait")


def test_a_scene_is_shown_without_a_folder(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = scene.show()
    assert "MB of HTML" in repr(page)
    assert "srcdoc=" in page._repr_html_()
    assert list(tmp_path.iterdir()) == []
    assert 'class="replay"' in page.save("motion.html").read_text()


def test_everything_has_a_form_for_notebooks(scene: Scene, fit: Identification) -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    with profile() as measured:
        loss = (x * x).sum()
    model = scene.model
    certificate = check(model, scene.params, scene.state, steps=3)
    known = scene.params.replace(stiffness=scene.params.stiffness.detach().requires_grad_())
    plan = scene.rollout(known, steps=20).plan
    assert plan is not None
    health = scene_health(scene)
    for shown in (
        scene,
        scene.params,
        fit,
        fit.recording,
        certificate,
        plan,
        health,
        measured,
        Graph(loss),
        scene.show(),
    ):
        assert Balanced(shown._repr_html_()).seen & {"table", "img", "pre", "iframe"}
        assert len(repr(shown).splitlines()) < 30
    assert {"table", "img"} <= Balanced(fit._repr_html_()).seen
    assert "MulBackward" in repr(Graph(loss)) and "proven" in repr(certificate)
