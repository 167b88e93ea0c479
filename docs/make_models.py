"""Make docs/models.md from the sources of the simulators: the fields of their parameters and states.

python docs/make_models.py
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from simphys.simulator import Model
from simphys.simulator.declare import declarations, meanings

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "simphys" / "simulators"
HEAD = """# Models: fields, parameters, units

Made from the sources by `python docs/make_models.py`. The fields of a state are what channels see
(`observations.channels.field`) and what loss terms compare; parameters and initial states are what `[unknowns]` and
`[values]` name. Shapes are written by the model's attributes: `*cells` are all axes of the grid, n bodies, S springs,
dim components. `simphys docs SIMULATOR` lists the keys of its scenes.

What channels may show besides components, such as markers on bodies and links, accelerations and pixels: see
[The sensor](fitting.md#the-sensor).
"""
SIGNS = {"any": "", "positive": "positive", "not_negative": "0 or more"}


def read_fields(record: type[Any]) -> Iterator[tuple[str, str, str, str]]:
    """Iterate over name, meaning, unit and shape of the fields of a record, declared or told by the texts behind."""
    declared, texts = declarations(record), meanings(record)
    for each in fields(record):
        text = texts[each.name]
        if about := declared.get(each.name):
            empty = f"; [0] without {about.only_if}" if about.only_if else ""
            sign = f", {SIGNS[about.sign]}" if SIGNS[about.sign] else ""
            yield each.name, text, f"{about.unit}{sign}", f"[{about.shape}]{empty}"
        else:
            unit, shape = re.search(r"(?: \[([^\[\]]+)\])?,\s(\[[^\[\]]*\])", text).groups()  # type: ignore[union-attr]
            yield each.name, text, unit or "", shape


def describe(path: Path) -> Iterator[str]:
    """Describe the model of one file."""
    name = path.parent.relative_to(FOLDER).as_posix()
    module = importlib.import_module(f"simphys.simulators.{name.replace('/', '.')}.model")
    yield f"\n## {name.replace('/', ', ')}\n"
    models = [each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == module.__name__]
    (model,) = [each for each in models if issubclass(each, Model)]
    yield " ".join((inspect.getdoc(model) or "").split("\n\n")[0].split())
    for title, record in (("parameter", model.Params), ("state", model.State)):
        yield f"\n| {title} | meaning | unit | shape |\n| --- | --- | --- | --- |"
        for field, text, unit, shape in read_fields(record):
            yield f"| `{field}` | {text.replace('|', chr(92) + '|')} | {unit} | {shape} |"


def make_page() -> str:
    """Make the page."""
    paths = sorted(FOLDER.rglob("model.py"))
    return HEAD + "\n".join([line for path in paths for line in describe(path)]) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "models.md").write_text(make_page(), encoding="utf-8")
