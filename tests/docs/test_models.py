"""docs/models.md and docs/scene_files.md are what the sources say."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_models_is_made_from_the_sources() -> None:
    made = runpy.run_path(str(DOCS / "make_models.py"))["make_page"]()
    assert made == (DOCS / "models.md").read_text(), "Run python docs/make_models.py."
    assert "| `stiffness` | Spring stiffness. | N/m | [springs] |" in made


def test_the_page_of_scene_files_is_made_from_the_schema() -> None:
    made = runpy.run_path(str(DOCS / "make_scene_files.py"))["make_page"]()
    assert made == (DOCS / "scene_files.md").read_text(), "Run python docs/make_scene_files.py."
    assert "| `dt` | s | number | required | > 0 |" in made and "## mass_spring" in made
