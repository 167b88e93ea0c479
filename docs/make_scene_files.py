"""Make docs/scene_files.md: every section and key of scene files, as their schema describes them.

python docs/make_scene_files.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from simphys.app.key_docs import KeyDoc, list_keys

KEY = r"[a-z_]+(, [a-z_]+)*( \[[^\]]*\])?: "
"""Begin of a line that describes a key."""
PAGE = Path(__file__).with_name("scene_files.md")
HEAD = """# Scene files: every section and key

Made from the schema by `python docs/make_scene_files.py`; `simphys docs KEY` prints the same for one key, and `simphys
new NAME --simulator S` writes a commented scene to start from. Scene files are [TOML](https://toml.io). The unit of a
number is 1 if it has no dimension; — stands at what is no quantity: a text, a switch, an index or a count. Any other
consistent units do as well. In a path, `0` stands for each entry of a list, and `NAME` for a name of one's own.

A value on the command line replaces one of the file: `simphys run SCENE time.dt=1e-3`.
"""
AGAIN = ("experiments.0.observations.", "experiments.0.control.", "experiments.0.values.")
"""Sections that an experiment may have of its own: their keys are those of the scene."""


def make_page() -> str:
    """Make the page: what all simulators share, then the sections of each."""
    docs = [doc for doc in list_keys() if not doc.path.startswith(AGAIN)]
    simulators = list(dict.fromkeys(name for doc in docs for name in doc.simulators))
    shared = [doc for doc in docs if len(doc.simulators) == len(simulators)]
    lines = [HEAD, "## All simulators", *describe(shared)]
    for name in simulators:
        own = [doc for doc in docs if name in doc.simulators and doc not in shared]
        lines += [f"\n## {name}", *describe(own)]
    return "\n".join(lines) + "\n"


def describe(docs: Sequence[KeyDoc]) -> Iterator[str]:
    """Describe keys, section by section."""
    for (parent, text), group in groupby(docs, lambda doc: (doc.path.rpartition(".")[0], doc.section)):
        keys = list(group)
        if parent:
            kinds = [doc.kind for doc in keys if doc.path.endswith(".kind") and doc.kind.count('"') == 2]
            yield f"\n### `{parent}`" + "".join(f", kind {kind}" for kind in kinds)
        yield f"\n{_in_markdown(text)}\n\n| key | unit | value | default | bounds |\n| --- | --- | --- | --- | --- |"
        for doc in keys:
            cells = (f"`{doc.path.rpartition('.')[2]}`", doc.unit or "—", doc.kind, doc.default, doc.bounds)
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _in_markdown(text: str) -> str:
    """Join the lines of each paragraph; one that begins with a key begins an item. Brackets with units are no links."""
    blocks: list[str] = []
    for paragraph in text.split("\n\n"):
        for number, line in enumerate(paragraph.splitlines()):
            if re.match(KEY, line):
                blocks.append(f"- {line}")
            elif number == 0:
                blocks.append(line)
            else:
                blocks[-1] += f" {line.strip()}"
    return "\n\n".join(blocks).replace("[", "\\[").replace("]", "\\]")


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
