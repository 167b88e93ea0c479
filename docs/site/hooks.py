"""Hooks of mkdocs: pages outside of docs/, pages of the reference, links that lead out of the site, formulas."""

from __future__ import annotations

import posixpath
import re
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "results.md": "benchmarks/RESULTS.md",
}
"""Pages made of files elsewhere in the project."""
REFERENCE = {
    "scenes": (
        "Scenes and fits",
        ["experiment.scene", "app.workflow", "app.identification", "app.assessment", "assess.quality"],
    ),
    "runs": ("Runs, pictures, views", ["record.recording", "plot", "report.build", "runs.export", "view.server"]),
    "rollout": (
        "Rollouts, searches, checks",
        ["rollout.trajectory", "rollout.plan", "optimize.minimization", "optimize.result", "diagnose.check"],
    ),
    "autograd": (
        "The autograd layer",
        [
            "autograd.tensor",
            "autograd.function",
            "autograd.context",
            "autograd.compose.functional",
            "autograd.proof.gradcheck",
        ],
    ),
    "substep": ("Declared sub-steps", ["substep", "simulator.contract", "simulator.bodies", "simulator.grids"]),
    "simulators": (
        "Simulators: their parameters and states",
        [
            *(
                f"simulators.{name}.model"
                for name in (
                    "mass_spring",
                    "charges",
                    "billiards",
                    "rigid",
                    "mpm",
                    "heat",
                    "smoke",
                    "elastic",
                    "molecular",
                    "sph",
                )
            ),
            *(f"simulators.{name}.model" for name in ("wave", "wave.shallow", "pendulum.chain", "pendulum.spherical")),
        ],
    ),
}
"""Pages of the reference: titles and modules, whose docstrings give meanings, shapes and units."""
PICTURES = {"growth.png": "benchmarks/growth.png"}
"""Pictures on these pages that lie elsewhere in the project."""
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made of other files, and their pictures."""
    for page, source in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        text = LINK.sub(partial(_at_home, posixpath.dirname(source)), text)
        text = re.sub(r"(!\[[^\]]*\])\(docs/", r"\1(", text)
        files.append(File.generated(config, page, content=text))
    for name, source in PICTURES.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / source)))
    for name, (title, modules) in REFERENCE.items():
        text = "\n\n".join([f"# {title}", *(f"::: simphys.{module}" for module in modules)])
        files.append(File.generated(config, f"reference/{name}.md", content=text + "\n"))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Keep links within the site; of those to other files of the project, keep the text."""
    home = posixpath.dirname(page.file.src_uri)
    return LINK.sub(lambda link: _within(link, home, files), markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Write formulas as MathML, which browsers draw by themselves: pages load nothing from elsewhere."""
    return FORMULA.sub(_in_mathml, html)


def _in_mathml(found: re.Match[str]) -> str:
    tag, latex = found.groups()
    formula = convert(unescape(latex).strip(), display="block" if tag == "div" else "inline")
    return f'<{tag} class="arithmatex">{formula}</{tag}>'


def _at_home(folder: str, link: re.Match[str]) -> str:
    """Rewrite a link of a file elsewhere in the project as seen from the site's root."""
    text, (path, _, anchor) = link[1], link[2].partition("#")
    if "://" in path or not path:
        return link[0]
    path = posixpath.normpath(posixpath.join(folder, path))
    named = {source: page for page, source in PAGES.items()}.get(path, path.removeprefix("docs/"))
    return f"[{text}]({named}{'#' if anchor else ''}{anchor})"


def _within(link: re.Match[str], home: str, files: Files) -> str:
    text, (path, _, anchor) = link[1], link[2].partition("#")
    if "://" in path or not path:
        return link[0]
    found = posixpath.normpath(posixpath.join(home, path))
    there = files.get_file_from_path(found)
    if there is not None and not there.inclusion.is_excluded():
        return link[0]
    outside = found.removeprefix("../")
    for page, source in PAGES.items():
        if outside == source:
            return f"[{text}]({posixpath.relpath(page, home or '.')}{'#' if anchor else ''}{anchor})"
    known = (ROOT / outside).exists() or (ROOT / "docs" / found).exists()
    return text if known else link[0]  # a file of the project, or a broken link, which mkdocs reports
