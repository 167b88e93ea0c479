"""The notebooks of the tutorials are those of their pages, run as a whole, and show tables and pictures."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from .test_guide import DOCS, blocks

maker = runpy.run_path(str(DOCS / "make_notebooks.py"))
PAGES: list[Path] = maker["pages"]()
RUN = [page for page in PAGES if page.stem in ("first_fit", "new_simulator")]
"""Pages that run as notebooks: a scene, and kernels written in cells. test_tutorials.py runs the code of all."""


def printed(cell: Any) -> str:
    return "".join(output["text"] for output in cell["outputs"] if output.get("name") == "stdout")


def test_there_is_a_notebook_of_every_tutorial() -> None:
    tutorials = {*(DOCS / "tutorials").glob("*.md"), DOCS / "new_simulator.md"}
    assert set(PAGES) == tutorials
    assert {path.with_suffix(".md") for path in DOCS.rglob("*.ipynb")} == tutorials


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_notebook_is_made_from_its_page(page: Path) -> None:
    text = page.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert text == maker["write_notebook"](page), "Run python docs/make_notebooks.py."
    code = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert ["".join(cell["source"]) for cell in code] == [block.source.strip() for block in blocks(page.read_text())]


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_a_notebook_shows_what_its_page_does_and_pictures(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # with it, a kernel of Jupyter does not show what compiled code prints
    nbformat = pytest.importorskip("nbformat", reason="notebooks need the extra 'docs' (pip install 'simphys[docs]')")
    nbclient = pytest.importorskip("nbclient", reason="notebooks need the extra 'docs'")
    pytest.importorskip("ipykernel", reason="notebooks need the extra 'docs'")
    notebook = nbformat.reads(maker["write_notebook"](page), as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=200, resources={"metadata": {"path": str(tmp_path)}}).execute()
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for block, cell in zip(blocks(page.read_text()), code, strict=True):
        assert block.agrees_with(printed(cell)), f"{page.name}, line {block.line + 1}, prints:\n{printed(cell)}"
    assert not [output for cell in code for output in cell["outputs"] if output.get("name") == "stderr"], "red lines"
    shown = [output["data"] for cell in code for output in cell["outputs"] if "data" in output]
    assert any({"text/html", "image/png"} & data.keys() for data in shown)
