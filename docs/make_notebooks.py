"""Make the notebooks of the tutorials from their pages: text becomes cells of text, and code becomes cells that run.

python docs/make_notebooks.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
CODE = re.compile(r"^```python\n(.*?)^```\n(?:```(?:text|console)\n.*?^```\n)?", re.DOTALL | re.MULTILINE)
"""A block of Python, and the output that the page shows: a notebook shows its own."""


def pages() -> list[Path]:
    """List the pages of which there is a notebook: each links to its own."""
    return sorted(path for path in DOCS.rglob("*.md") if f"({path.stem}.ipynb)" in path.read_text(encoding="utf-8"))


def make_notebook(page: Path) -> dict[str, Any]:
    """Make the notebook of a page, without outputs, in the format of Jupyter (nbformat 4.5)."""
    cells = list(_cells(page.read_text(encoding="utf-8")))
    for number, cell in enumerate(cells):
        cell["id"] = f"{page.stem}-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def write_notebook(page: Path) -> str:
    """Give the text of a page's notebook file."""
    return json.dumps(make_notebook(page), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _cells(text: str) -> Iterator[dict[str, Any]]:
    end = 0
    for code in CODE.finditer(text):
        yield from _text(text[end : code.start()])
        source = code[1].strip().splitlines(keepends=True)
        yield {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}
        end = code.end()
    yield from _text(text[end:])


def _text(text: str) -> Iterator[dict[str, Any]]:
    if text.strip():
        yield {"cell_type": "markdown", "metadata": {}, "source": text.strip().splitlines(keepends=True)}


if __name__ == "__main__":
    for page in pages():
        page.with_suffix(".ipynb").write_text(write_notebook(page), encoding="utf-8")
