"""The documentation site is built strictly: no broken link, no page outside of the navigation; fields with units."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

pytest.importorskip("mkdocstrings", reason="the site needs the extra 'docs' (pip install 'simphys[docs]')")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def test_pages_need_nothing_from_outside(site: Path) -> None:
    for page in (site / "index.html", site / "tutorials" / "first_fit.html", site / "reference" / "simulators.html"):
        loaded = re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="(https?://[^"]+)"', page.read_text())
        assert loaded == [], page


def test_formulas_are_drawn_without_a_script(site: Path) -> None:
    pages = {page: page.read_text() for page in site.rglob("*.html")}
    assert pages[site / "contact.html"].count("<math") == 10
    for page, text in pages.items():
        prose = re.sub(r"<(pre|code|script|style|annotation)\b.*?</\1>", "", text, flags=re.DOTALL)
        assert not re.search(r"\$[^$\n]*\$|\\[(\[]", prose), page
        assert "<merror" not in text


def test_the_reference_gives_fields_with_their_units_and_shapes(site: Path) -> None:
    text = unescape(re.sub(r"<[^>]+>", "", (site / "reference" / "simulators.html").read_text()))
    assert re.search(r"position: Tensor = declare\('particles, dim', 'm'\)\s+Positions of the particles\.", text)
    assert "rest_length" in text
