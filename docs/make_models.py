"""Make docs/models.md from the sources of the simulators: the fields of their parameters and states.

python docs/make_models.py
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

from simphys.simulator import Model
from simphys.simulator.declare import Declaration, declarations, meanings

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "simphys" / "simulators"
HEAD = """# Models: fields, parameters, units

Made from the sources by `python docs/make_models.py`. The fields of a state are what channels see
(`observations.channels.field`) and what loss terms compare; parameters and initial states are what `[unknowns]` and
`[values]` name. Shapes are written by the model's attributes: [nodes, dim] has dim components of each node, [*cells]
all axes of the grid. `simphys docs SIMULATOR` lists the keys of its scenes.

What channels may show besides components, such as markers on bodies and links, accelerations and pixels: see
[The sensor](fitting.md#the-sensor).
"""
SIGNS = {"positive": "positive", "not_negative": "0 or more"}


def describe_field(about: Declaration, text: str) -> str:
    """Describe a field: its meaning, its unit with its sign, and its shape."""
    sign = f", {SIGNS[about.sign]}" if about.sign in SIGNS else ""
    empty = f"; [0] unless {about.only_if}" if about.only_if else ""
    return f"{text.replace('|', chr(92) + '|')} | {about.unit}{sign} | [{about.shape}]{empty}"


def describe(path: Path) -> Iterator[str]:
    """Describe the model of one file."""
    parts = path.parent.relative_to(FOLDER).parts
    module = importlib.import_module(f"simphys.simulators.{'.'.join(parts)}.model")
    yield f"\n## {', '.join(parts)}\n"
    models = [each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == module.__name__]
    (model,) = [each for each in models if issubclass(each, Model)]
    yield " ".join((inspect.getdoc(model) or "").split("\n\n")[0].split())
    for title, record in (("parameter", model.Params), ("state", model.State)):
        yield f"\n| {title} | meaning | unit | shape |\n| --- | --- | --- | --- |"
        for name, about in declarations(record).items():
            yield f"| `{name}` | {describe_field(about, meanings(record)[name])} |"


def make_page() -> str:
    """Make the page."""
    paths = sorted(FOLDER.rglob("model.py"))
    return HEAD + "\n".join([line for path in paths for line in describe(path)]) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "models.md").write_text(make_page(), encoding="utf-8")
