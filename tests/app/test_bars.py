"""Bars of progress in notebooks, by a stand-in for IPython that keeps what a cell would show."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from simphys.app import bars
from simphys.app.workflow import identify, simulate

from ..helpers.small_scenes import oscillator


class Cell:
    """Everything that a cell of a notebook shows, as HTML; one text for each time that it changes."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def display(self, shown: Any, *, display_id: bool) -> Cell:
        assert display_id
        return self.update(shown)

    def update(self, shown: Any) -> Cell:
        self.texts.append(shown._repr_html_())
        return self


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    found, package, display = Cell(), ModuleType("IPython"), ModuleType("IPython.display")
    vars(package)["get_ipython"] = lambda: SimpleNamespace(kernel=object())
    vars(display)["display"] = found.display
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(bars, "SECONDS", 0.0)
    return found


def test_a_cell_shows_how_far_a_simulation_and_a_fit_are(cell: Cell, tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt")
    cell.texts.clear()
    simulate(scene)
    assert f'value="{scene.steps}" max="{scene.steps}"' in cell.texts[-1]
    assert "<progress" in cell.texts[0] and f"step {scene.steps} of {scene.steps}, " in cell.texts[-1]
    fit = identify(scene)
    assert any(f"iteration 0 of at most {scene.config.optimizer.iterations}, loss" in text for text in cell.texts)
    assert 'value="1" max="1"' in cell.texts[-1] and f"{fit.result.status} after" in cell.texts[-1]


def test_elsewhere_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bars.bar_of_steps() is None  # no IPython
    prompt = ModuleType("IPython")
    vars(prompt)["get_ipython"] = SimpleNamespace
    monkeypatch.setitem(sys.modules, "IPython", prompt)
    assert bars.bar_of_iterations(3) is None and bars.bar_of_members() is None
