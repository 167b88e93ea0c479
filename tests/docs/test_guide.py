"""The code blocks of docs/autograd.md run in order and print the output shown there; its examples run at full size."""

import doctest
import re
import runpy
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = DOCS / "autograd.md"
FENCES = re.compile(r"^```python\n(.*?)^```\n(?:```(text|console)\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """Block of Python in a guide, and the output shown below it."""

    line: int
    source: str
    shown: str
    exact: bool
    """Comparison: all of it (`text`; ... stands for anything), or words alone (`console`: the numbers of one run)."""

    def agrees_with(self, printed: str) -> bool:
        if self.exact:
            return doctest.OutputChecker().check_output(self.shown, printed, FLAGS)
        return sorted(re.findall("[A-Za-z]{2,}", self.shown)) == sorted(re.findall("[A-Za-z]{2,}", printed))


def blocks(text: str) -> Iterator[Block]:
    for found in FENCES.finditer(text):
        yield Block(text.count("\n", 0, found.start(1)), found[1], found[3] or "", found[2] != "console")


def outputs(chosen: list[Block], folder: Path) -> Iterator[str]:
    """Run the blocks in one file, at the guide's line numbers, as kernels are read from there; return their outputs."""
    lines: list[str] = []
    for block in chosen:
        lines += [""] * (block.line - len(lines)) + block.source.splitlines()
    (folder / "guide.py").write_text("\n".join(lines))
    namespace: dict[str, Any] = {"__name__": "guide"}
    for block in chosen:
        printed = StringIO()
        with redirect_stdout(printed), np.errstate(divide="ignore"):
            exec(compile("\n" * block.line + block.source, "guide.py", "exec"), namespace)
        yield printed.getvalue()


@pytest.mark.parametrize("with_torch", [False, True], ids=["numpy", "torch"])
def test_the_guide_prints_what_it_shows(with_torch: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if with_torch:
        pytest.importorskip("torch", reason="one block of the guide is about PyTorch")
    monkeypatch.chdir(tmp_path)
    chosen = [block for block in blocks(GUIDE.read_text()) if with_torch or "import torch" not in block.source]
    assert len(chosen) > 15
    for block, printed in zip(chosen, outputs(chosen, tmp_path), strict=True):
        assert block.agrees_with(printed), f"{GUIDE.name}, line {block.line + 1}, prints:\n{printed}"
    assert (tmp_path / "graph.png").stat().st_size > 10_000


def test_the_links_of_the_guide_lead_somewhere() -> None:
    text = GUIDE.read_text()
    titles = [line.lstrip("# ") for line in text.splitlines() if line.startswith("## ")]
    anchors = {"#" + re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles}
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert len(targets) > 5
    for target in targets:
        assert target in anchors or (DOCS / target).exists(), target


# --- the examples


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "examples" / name))


def test_own_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    example("own_kernels.py")["main"]()
    printed = capsys.readouterr().out
    for expected in (
        "gradcheck passed",
        "loss 9.805625",
        "DragBackward",
        "kernel drag, argument c: it is a 1-d array of",
    ):
        assert expected in printed


def test_a_function_around_two_kernels_of_ones_own_takes_at_most_25_lines() -> None:
    source = (DOCS / "examples" / "own_kernels.py").read_text()
    function = source.partition("# --- the Function\n")[2].partition("# --- its use")[0]
    assert "kernel(drag), kernel(adj_drag)" in function
    assert len(function.strip().splitlines()) <= 25


def test_fit_pendulum() -> None:
    module = example("fit_pendulum.py")
    np.testing.assert_allclose(module["main"](), module["TRUE"], atol=0.02)


def test_compose() -> None:
    reports = example("compose.py")["main"]()  # raises where the ways disagree
    assert len(reports) == 3
    for report in reports:
        assert "nested:   nodes 1" in report and "combined: nodes 1," in report


def test_second_order() -> None:
    norms = example("second_order.py")["main"]()
    assert norms[-1] < 1e-9 and norms[-2] > norms[-1] ** 0.6  # it ends in the steps of Newton's method
