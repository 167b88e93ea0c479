"""The page of all scenes holds what was measured, and nothing that no longer exists."""

from __future__ import annotations

import json
from pathlib import Path

from PIL import Image

from benchmarks.gallery import COLOURS, FEWER, MEASURED, PAGE, PICTURES, WIDTH, make_page

SCENES = Path(__file__).resolve().parents[2] / "scenes"


def test_the_page_is_made_of_the_measurements() -> None:
    """`python -m benchmarks.gallery SCENE` measures one again."""
    measured = json.loads(MEASURED.read_text())
    made, page = (text.partition("\n## ")[2] for text in (make_page(measured), PAGE.read_text()))
    assert page == made  # the head names the machine


def test_every_row_is_a_scene_that_ships_with_a_small_picture() -> None:
    measured = json.loads(MEASURED.read_text())
    assert len(measured) > 30 and set(FEWER) <= set(measured)
    for name, about in measured.items():
        assert (SCENES / f"{name}.toml").exists(), name
        with Image.open(PICTURES / about["picture"]) as image:
            assert image.width == WIDTH and len(image.getcolors() or ()) <= COLOURS
