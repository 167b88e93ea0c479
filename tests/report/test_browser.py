"""Reports in a real browser without a network: nothing fails, the replay plays, and there is something to see."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from simphys.app.workflow import identify, simulate
from simphys.experiment.scene import load_scene
from simphys.report import write_report

from ..helpers.browser import Page

SCENES = Path(__file__).resolve().parents[2] / "scenes"
FIT = "mass_spring/air_track"
READY = "document.querySelector('.replay').classList.contains('ready')"
in_one = pytest.mark.parametrize("report", ["mass_spring/jelly"], indirect=True)
"""Of what does not depend on the scene."""
CANVAS = "document.querySelector('canvas').toDataURL()"


@pytest.fixture(scope="module", params=[FIT, "rigid/two_balls", "smoke/taylor_green", "mass_spring/jelly"])
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a fit, and of motions in a plane, on a grid and in space."""
    scene = load_scene(SCENES / f"{request.param}.toml", ["output.every=8"])
    recording = identify(scene).recording if request.param == FIT else simulate(scene)
    return write_report(recording, tmp_path_factory.mktemp("report") / "report.html")


def colours(picture: bytes) -> tuple[int, float]:
    """Count the colours of a PNG, and give the mean lightness of its corner."""
    from PIL import Image

    pixels = np.asarray(Image.open(BytesIO(picture)).convert("RGB"))
    return len(np.unique(pixels.reshape(-1, 3), axis=0)), float(pixels[:8, :8].mean())


def test_a_report_opens_without_an_error_and_is_not_blank(report: Path, tmp_path: Path) -> None:
    with Page(report, tmp_path) as page:
        page.wait(READY)
        count, lightness = colours(page.screenshot())
        assert page.said == []
        assert [address for address in page.requested if not address.startswith(("data:", "file:"))] == []
        assert len([address for address in page.requested if address.startswith("file:")]) == 1
    assert count > 50
    assert lightness > 200


def test_no_text_of_a_picture_is_cut_off_or_leaves_the_page(report: Path, tmp_path: Path) -> None:
    """Check letters that the browser makes wider than those that the picture was laid out with: all stay to be seen."""
    with Page(report, tmp_path) as page:
        page.wait(READY)
        page.evaluate("document.querySelectorAll('figure svg text').forEach(e => { e.style.letterSpacing = '0.1px'; })")
        pictures = "[...document.querySelectorAll('figure svg')]"
        cut = page.evaluate(f"{pictures}.filter(e => getComputedStyle(e).overflow !== 'visible').length")
        outside = page.evaluate(
            "[...document.querySelectorAll('figure svg text')].filter(e => { const r = e.getBoundingClientRect();"
            " return r.left < 0 || r.right > innerWidth; }).map(e => e.textContent)"
        )
    assert (cut, outside) == (0, [])


@in_one
def test_it_is_dark_where_the_browser_prefers_that(report: Path, tmp_path: Path) -> None:
    with Page(report, tmp_path, dark=True) as page:
        page.wait(READY)
        count, lightness = colours(page.screenshot())
        assert page.said == []
    assert count > 50
    assert lightness < 60


def test_the_replay_plays_and_pauses(report: Path, tmp_path: Path) -> None:
    with Page(report, tmp_path) as page:
        page.wait(READY)
        first = page.evaluate(CANVAS)
        page.press(".play")
        page.wait("Number(document.querySelector('.time').value) > 3")
        assert page.evaluate("document.querySelector('.play').getAttribute('aria-pressed')") == "true"
        page.press(".play")
        assert page.evaluate("document.querySelector('.play').textContent") == "Play"
        held = page.evaluate("document.querySelector('.time').value")
        assert page.evaluate(CANVAS) != first
        page.evaluate("new Promise((done) => setTimeout(done, 200))")
        assert page.evaluate("document.querySelector('.time').value") == held
        assert page.said == []


def test_the_slider_moves_by_the_keyboard_and_shows_another_moment(report: Path, tmp_path: Path) -> None:
    with Page(report, tmp_path) as page:
        page.wait(READY)
        first, start = page.evaluate(CANVAS), page.evaluate("document.querySelector('.now').textContent")
        page.evaluate("document.querySelector('.time').focus()")
        page.key("End")
        page.wait("document.querySelector('.time').value === document.querySelector('.time').max")
        assert page.evaluate("document.querySelector('.now').textContent") != start
        assert page.evaluate(CANVAS) != first
        assert page.said == []


@in_one
def test_the_button_changes_between_light_and_dark(report: Path, tmp_path: Path) -> None:
    with Page(report, tmp_path) as page:
        page.wait(READY)
        page.press(".theme")
        _, lightness = colours(page.screenshot())
        assert lightness < 60 and page.said == []
