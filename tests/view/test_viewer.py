"""Runs in a live view: in a browser, side by side, and while they are being written."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser", reason="simphys view is the extra 'view' (pip install 'simphys[view]')")

from simphys.app.workflow import simulate
from simphys.autograd.errors import InputError
from simphys.experiment.scene import load_scene
from simphys.record import PartRecorder, Recorder, name_group
from simphys.report.packing import pack, unpack
from simphys.view import Viewer, server
from simphys.view.arrows import scale_arrows
from simphys.view.world import EDGE, World

from ..helpers.browser import Page

SCENES = Path(__file__).resolve().parents[2] / "scenes"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "never true"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Runs of rigid bodies, of balls on a table, and of a field on a grid."""
    folder = tmp_path_factory.mktemp("runs")
    chosen = ("rigid/two_balls", "billiards/carom", "heat/conductivity")
    for name in chosen:
        simulate(load_scene(SCENES / f"{name}.toml", ["output.every=8"]), folder=folder / name)
    return [folder / name for name in chosen]


def test_two_runs_side_by_side_are_drawn_in_a_browser(runs: list[Path], tmp_path: Path) -> None:
    with Viewer(runs[:2], port=free_port()) as viewer:
        left, right = (each.world for each in viewer._shown)
        assert left.shift[0] + left.width / 2 < right.shift[0] - right.width / 2
        viewer.show(0.5)
        with Page(viewer.address, tmp_path) as page:
            page.wait("document.querySelector('canvas') && document.body.innerText.includes('time [s]')")
            assert "Two balls" in page.evaluate("document.body.innerText")
            wait_until(lambda: count_colours(page.screenshot()) > 3)
            failures = [said for said in page.said if "error" in said.lower()]
            assert failures == []
        port = viewer._server.get_port()
    with socket.socket() as after:  # the server has stopped
        assert after.connect_ex(("127.0.0.1", port)) != 0


def count_colours(picture: bytes) -> int:
    """Count the vivid colours of a screenshot, beside the panel of controls: none on an empty stage."""
    from PIL import Image

    pixels = np.asarray(Image.open(BytesIO(picture)).convert("RGB"))[150:, :800].astype(int)
    vivid = pixels[np.ptp(pixels, axis=2) > 60]
    return len(np.unique(vivid // 16, axis=0))


def test_experiments_of_a_run_stand_side_by_side(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run", kind="run", provenance={"seed": 0}, scene={"title": "Drops"}) as recorder:
        for name in ("low", "high"):
            write(PartRecorder(recorder, name_group(name)), 0, 4)
        recorder.write(f"{name_group('failed')}/start", position=np.zeros(2))  # has no motion
    with Viewer([tmp_path / "run"], port=free_port()) as viewer:
        assert {each.title for each in viewer._shown} == {"Drops, low", "Drops, high"}
        left, right = (each.world for each in viewer._shown)
        assert left.high[0] < right.low[0]


def test_a_slider_moves_bodies_to_their_recorded_places(runs: list[Path]) -> None:
    with Viewer(runs, port=free_port()) as viewer:
        balls, table, _ = viewer._shown
        viewer.show(1.0)
        for each, word in ((balls, "rigid"), (table, "billiards")):
            recording = server.Recording(each.folder)
            time_at = recording["particles/nodes/position/time"]
            row = int(np.searchsorted(time_at, min(1.0, time_at[-1]) + 1e-9) - 1)
            place = each.world(recording["particles/nodes/position/value"][row])
            assert each.layers.places is not None
            assert each.layers.places[each.frame(1.0)] == pytest.approx(place, abs=2e-3), word
        places = balls.layers.places
        assert places is not None
        handle = viewer._scene._handle_from_node_name["/run0/1_bodies/0"]
        assert np.asarray(handle.position) == pytest.approx(places[balls.frame(1.0), 0], abs=1e-6)


def test_a_run_that_goes_on_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "POLL", 0.05)
    monkeypatch.setattr("simphys.record.recorder.FLUSH_SECONDS", 0.0)
    scene = {"title": "goes on", "simulator": {"name": "charges"}}
    with Recorder(tmp_path / "run", kind="run", provenance={"seed": 0}, scene=scene) as recorder:
        write(recorder, 0, 4)
        recorder.flush()
        with Viewer([tmp_path / "run"], port=free_port()) as viewer:
            assert viewer.end == pytest.approx(0.3)
            write(recorder, 4, 12)
            recorder.flush()
            wait_until(lambda: viewer.end > 1.0)
            assert viewer._time.max == pytest.approx(1.1)


def write(recorder: Any, first: int, last: int) -> None:
    steps = np.arange(first, last)
    value = np.stack([0.1 * steps[:, None] * [1.0, 2.0], np.ones((len(steps), 2))], axis=1)
    rows = {"step": steps, "time": 0.1 * steps, "value": value}
    paths = ("particles/nodes/position", "particles/nodes/velocity")
    recorder.extend({path: rows for path in paths}, units={path: {"value": "m", "time": "s"} for path in paths})


def test_a_run_without_a_motion_is_invalid_input(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run", kind="run", provenance={"seed": 0}, scene={}):
        pass
    with pytest.raises(InputError, match="needs a run with a motion"):
        Viewer([tmp_path / "run"])


@pytest.mark.parametrize("bits", [8, 16])
def test_what_is_packed_is_read_back(bits: int) -> None:
    values = np.random.default_rng(0).uniform(-1, 3, (7, 5, 2))
    again = unpack(pack(values, np.array([-1.0, -1.0]), np.array([3.0, 3.0]), bits=bits))
    assert again == pytest.approx(values, abs=2.01 / (2**bits - 1))


def test_a_world_turns_bodies_as_it_turns_places() -> None:
    world = World({"low": [0.0, 0.0], "high": [4.0, 2.0], "dim": 2, "layers": []})
    assert np.ptp(world(np.array([[0.0, 0.0], [4.0, 2.0]])), axis=0) == pytest.approx([EDGE, 0, EDGE / 2])
    w, x, y, z = world.rotation(np.array([np.pi / 2]))  # of (1, 0) to (0, 1), which is up
    rotated = np.array([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)])
    assert rotated == pytest.approx([0, 0, 1])


def test_arrows_of_bodies_on_a_line_lie_along_it() -> None:
    world = World({"low": [-1.0, 0.0], "high": [1.0, 0.0], "dim": 2, "layers": []})
    assert world.direction(np.array([[3.0], [-2.0]])).tolist() == [[3.0, 0.0, 0.0], [-2.0, 0.0, 0.0]]


def test_arrows_keep_their_directions_and_the_longest_has_the_length() -> None:
    vectors = np.array([[[3.0, 0, 4.0], [0, 1e-3, 0]]])
    plain, decades = (scale_arrows(vectors, 0.5, logarithmic=way) for way in (False, True))
    assert np.linalg.norm(plain[0], axis=1) == pytest.approx([0.5, 1e-4])
    assert decades[0, 0] == pytest.approx([0.3, 0, 0.4]) and 0.1 < decades[0, 1, 1] < 0.3
