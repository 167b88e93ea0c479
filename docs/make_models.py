"""Make docs/models.md from the sources of the simulators: the fields of their parameters and states.

python docs/make_models.py
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "simphys" / "simulators"
HEAD = """# Models: fields, parameters, units

Made from the sources by `python docs/make_models.py`. The fields of a state are what channels see
(`observations.channels.field`) and what loss terms compare; parameters and initial states are what `[unknowns]` and
`[values]` name. Units stand in brackets, then the shape: n bodies, S springs, dim components. `simphys docs SIMULATOR`
lists the keys of its scenes.

What channels may show besides components, such as markers on bodies and links, accelerations and pixels: see
[The sensor](fitting.md#the-sensor).
"""


def read_fields(record: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Iterate over the fields of a class and the docstrings behind them."""
    for field, text in zip(record.body, record.body[1:], strict=False):
        named = isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if named and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            yield ast.unparse(field).partition(":")[0], " ".join(str(text.value.value).split())


def describe(path: Path) -> Iterator[str]:
    """Describe the model of one file."""
    classes = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)]
    name = path.parent.relative_to(FOLDER).as_posix().replace("/", ", ")
    yield f"\n## {name}\n"
    model = next(each for each in classes if any(isinstance(b, ast.Name) and b.id == "Model" for b in each.bases))
    yield " ".join((ast.get_docstring(model) or "").split("\n\n")[0].split())
    for title, kind in (("parameter", "Params"), ("state", "State")):
        record = next(each for each in classes if each.name == kind)
        yield f"\n| {title} | meaning [unit], shape |\n| --- | --- |"
        for field, text in read_fields(record):
            yield f"| `{field}` | {text.replace('|', chr(92) + '|')} |"


def make_page() -> str:
    """Make the page."""
    paths = sorted(FOLDER.rglob("model.py"))
    return HEAD + "\n".join([line for path in paths for line in describe(path)]) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "models.md").write_text(make_page(), encoding="utf-8")
