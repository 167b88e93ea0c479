"""Server of live replays: runs side by side, a slider for time, colours, arrows; it follows runs that go on."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from simphys.autograd.errors import InputError, StorageError
from simphys.plot.style import NotRecorded
from simphys.record import Recording, list_parts
from simphys.report.replay import make_replay
from simphys.view.arrows import read_gradient, scale_arrows
from simphys.view.layers import Layers
from simphys.view.world import GAP, World

RATE = 25.0
"""Frames a second."""
POLL = 2.0
"""Time between two looks at runs that go on [s]."""
LENGTH = 10.0
"""Largest duration of a replay at speed 1 [s]; a shorter motion takes its own time, but 3 s at least."""
ARROW_COLOUR = (204, 121, 167)
FEW = 100
"""Number of bodies up to which arrows are shown from the start; more of them hide the colours."""
NOTHING = "one colour"


@dataclass
class _Shown:
    """A run, or one experiment of a run of several, as it is shown."""

    folder: Path
    part: str
    """Name of the experiment; empty for a run of a single one."""
    title: str
    time: np.ndarray
    layers: Layers
    world: World
    rows: int
    """Number of recorded states when it was read."""
    unit: str
    """Unit of time."""
    goes_on: bool
    gradient: tuple[np.ndarray, np.ndarray] | None
    damage: str = ""
    """Sentences on what the run has lost, see `Recording.damage`."""
    arrows: Any = None

    @property
    def line(self) -> str:
        """Title and folder, in Markdown, with what is lost."""
        return f"- **{self.title}** ({self.folder})" + (f": {self.damage}" if self.damage else "")

    def frame(self, moment: float) -> int:
        """Find the last frame at or before a time [s]."""
        return int(np.clip(np.searchsorted(self.time, moment + 1e-12, side="right") - 1, 0, len(self.time) - 1))


class Viewer:
    """Server that shows runs in browsers, at `address`, until `stop`."""

    def __init__(self, runs: Sequence[str | Path], *, port: int = 8080, host: str = "127.0.0.1") -> None:
        """Read the runs and start the server, at the next free port from `port` on.

        Errors: InputError without viser, for no run, or for one without a motion so far; StorageError.
        """
        if not runs:
            raise InputError("view", "needs a run", "none", "Name the folder of a run.")
        viser = _import_viser()
        replays = [found for run in runs for found in _read(Path(run))]  # before there is a server
        self._server = viser.ViserServer(host=host, port=port, verbose=False)
        self._server.gui.configure_theme(show_share_button=False, show_logo=False)
        self._server.gui.main_panel.dock_right()
        self._scene, self._lock, self._ended = self._server.scene, threading.RLock(), threading.Event()
        self._scene.set_up_direction("+z")
        self._shown: list[_Shown] = []
        for number, found in enumerate(replays):
            self._shown.append(self._add(number, found))
        self._build_controls()
        self._look_at()
        self._update()
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._play_on, self._follow)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """Address to open in a browser."""
        return f"http://{self._server.get_host()}:{self._server.get_port()}"

    @property
    def end(self) -> float:
        """Time of the last state of any run [s]."""
        return max(float(each.time[-1]) for each in self._shown)

    def show(self, moment: float) -> None:
        """Show a time [s] of all runs."""
        self._time.value = float(np.clip(moment, 0.0, self.end))
        self._update()

    def wait(self) -> None:
        """Wait until `stop`, or Ctrl-C."""
        while not self._ended.wait(0.2):
            pass

    def stop(self) -> None:
        """Stop the server."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._server.stop()

    def _add(self, number: int, found: _Found) -> _Shown:
        folder, part, recording, replay = found
        left = sum([each.world.width + GAP for each in self._shown[:number]])
        world = World(replay, left)
        layers = Layers(self._scene, f"/run{number}", replay, world)
        title = ", ".join(filter(None, [str(recording.scene.get("title") or folder.name), part]))
        differ = number == 0 or len({each.title for each in self._shown} | {title}) > 1
        caption = part or (title if differ else folder.name)  # experiments stand close together: the panel says whose
        above = np.array([world.shift[0] - world.width / 2, 0.0, world.high[2] + 0.12])
        self._scene.add_label(f"/run{number}/title", caption, position=above)
        moments = np.array(replay["time"])
        shown = None if layers.places is None else layers.places.shape[1]
        gradient = None if shown is None else read_gradient(recording, moments, shown)
        rows, goes_on = _count_rows(recording), "motion" not in recording
        unit = str(replay["time_unit"])
        damage = recording.damage
        return _Shown(folder, part, title, moments, layers, world, rows, unit, goes_on, gradient, damage)

    def _build_controls(self) -> None:
        gui = self._server.gui
        gui.add_markdown("\n".join([each.line for each in self._shown]))
        units = " or ".join(dict.fromkeys([each.unit for each in self._shown]))
        self._time = gui.add_slider(f"time [{units}]", 0.0, self.end, max(self.end / 1000, 1e-9), 0.0)
        self._playing = gui.add_checkbox("play", False)
        self._speed = gui.add_slider("speed, log2", -4.0, 4.0, 0.5, 0.0)
        names = list(dict.fromkeys([name for each in self._shown for name in each.layers.colours]))
        self._colour = gui.add_dropdown("colour", [*names, NOTHING] if names else [NOTHING])
        self._range = gui.add_markdown("")
        self._height = gui.add_slider("height of fields", 0.0, 1.0, 0.05, 0.0, visible=self._has("picture"))
        there = any(each.gradient is not None for each in self._shown)
        few = there and all(each.gradient is None or len(each.gradient[0]) <= FEW for each in self._shown)
        self._arrows = gui.add_checkbox("arrows of -∂loss/∂position", few, visible=there)
        self._length = gui.add_slider("length of arrows, log10", -2.0, 1.0, 0.1, -0.5, visible=there)
        self._logarithmic = gui.add_checkbox("lengths by decades", False, visible=there)
        for each in (self._time, self._colour, self._height, self._arrows, self._length, self._logarithmic):
            each.on_update(lambda event: self._update())

    def _has(self, kind: str) -> bool:
        return any(each.layers.has(kind) for each in self._shown)

    def _look_at(self) -> None:
        low = np.min([each.world.low for each in self._shown], axis=0)
        high = np.max([each.world.high for each in self._shown], axis=0)
        middle, size = (low + high) / 2, float(np.linalg.norm(high - low))
        up = 0.35 if any(each.world.dim == 3 for each in self._shown) else 0.0
        camera = self._server.initial_camera
        camera.position = tuple(middle + np.array([0.25 * up, -1.0, up]) * max(0.75 * size, 1.0))
        camera.look_at = tuple(middle)

    def _update(self) -> None:
        """Move all runs to the time of the slider."""
        with self._lock, self._server.atomic():
            ranges = [each.layers.ranges.get(str(self._colour.value), "") for each in self._shown]
            self._range.content = "; ".join(dict.fromkeys(filter(None, ranges)))
            for number, each in enumerate(self._shown):
                each.layers.colour = str(self._colour.value)
                each.layers.height = float(self._height.value)
                frame = each.frame(float(self._time.value))
                each.layers.show(frame)
                self._draw_arrows(number, each, frame)

    def _draw_arrows(self, number: int, run: _Shown, frame: int) -> None:
        if run.gradient is None or run.layers.places is None:
            return
        if not self._arrows.value:
            if run.arrows is not None:
                run.arrows.visible = False
            return
        chosen, gradient = run.gradient
        length = 10.0 ** float(self._length.value)
        vectors = scale_arrows(run.world.direction(-gradient), length, logarithmic=bool(self._logarithmic.value))[frame]
        tails = run.layers.places[frame][chosen]
        ends = np.stack([tails, tails + vectors], axis=1).astype(np.float32)
        if run.arrows is None:
            sizes: dict[str, Any] = {"shaft_radius": 0.006, "head_radius": 0.016, "head_length": 0.04}
            run.arrows = self._scene.add_arrows(f"/run{number}/arrows", ends, ARROW_COLOUR, **sizes)
        run.arrows.points = ends
        run.arrows.visible = True

    def _play_on(self) -> None:
        before = time.monotonic()
        while not self._ended.wait(1 / RATE):
            now = time.monotonic()
            if self._playing.value:
                pace = self.end / float(np.clip(self.end, 3.0, LENGTH)) * 2.0 ** float(self._speed.value)
                moment = float(self._time.value) + (now - before) * pace
                self.show(moment if moment <= self.end else 0.0)
            before = now

    def _follow(self) -> None:
        """Read runs that go on again when they have more states."""
        while not self._ended.wait(POLL):
            for number, each in enumerate(self._shown):
                if each.goes_on:
                    self._read_again(number, each)

    def _read_again(self, number: int, old: _Shown) -> None:
        try:
            recording = _read_parts(old.folder)[old.part]
            if _count_rows(recording) == old.rows and "motion" not in recording:
                return
            replay = make_replay(recording)
        except (InputError, StorageError, KeyError, ValueError, IndexError):  # in the middle of a write
            return
        with self._lock:
            self._scene.remove_by_name(f"/run{number}")
            self._shown[number] = self._add(number, _Found(old.folder, old.part, recording, replay))
            self._time.max = self.end
            self._time.step = max(self.end / 1000, 1e-9)
        self._update()


class _Found(NamedTuple):
    """A run, or an experiment of one, as it was read."""

    folder: Path
    part: str
    recording: Recording
    replay: dict[str, Any]


def _read(folder: Path) -> list[_Found]:
    """Read a run, or those experiments of it that have a motion."""
    found, failure = [], None
    for part, recording in _read_parts(folder).items():
        try:
            found.append(_Found(folder, part, recording, make_replay(recording)))
        except NotRecorded as error:
            failure = error
    if not found:
        remedy = "Wait until it has recorded its first states, or run its scene again, with states in output.fields."
        raise InputError(f"view of {folder}", "needs a run with a motion", "none so far", remedy) from failure
    return found


def _read_parts(folder: Path) -> dict[str, Recording]:
    recording = Recording(folder)
    return list_parts(recording) or {"": recording}


def _count_rows(recording: Recording) -> int:
    """Count the recorded states of a run."""
    groups = ["particles/nodes/position", *(f"fields/{name}" for name in recording.keys("fields"))]
    return max([recording.shape(f"{each}/time")[0] for each in groups if f"{each}/time" in recording], default=0)


def _import_viser() -> Any:
    try:
        import viser
    except ImportError as error:
        remedy = "pip install 'simphys[view]'"
        raise InputError("simphys view", "needs the package viser", "none installed", remedy) from error
    return viser
