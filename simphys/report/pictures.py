"""Pictures of a report: SVG that follows the page's colours where it is lines, else PNG."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO, StringIO

import matplotlib
from matplotlib.figure import Figure

from simphys import plot
from simphys.record import Recording
from simphys.report.dots import join_dots

LARGEST_SVG = 350_000
"""Largest size of an SVG [characters]; a larger one becomes a PNG."""
DPI = 110
COLOURS = {
    "#222222": "--ink",
    "#000000": "--ink",
    "#555555": "--soft",
    "#888888": "--edge",
    "#e4e4e4": "--grid",
    "#ececec": "--line",
    "#cfcfcf": "--line",
    "#0072b2": "--measured",
    "#d55e00": "--model",
}
"""Colours of lines and text, and the page's colours that take their place."""
CAPTIONS = {
    "fit": "Measured values and the fitted model, with their residuals.",
    "gather": "Measured and predicted values of all receivers.",
    "convergence": "Loss and length of the gradient at each iteration.",
    "assessment": "Autocorrelation of the residuals, correlations, ends from other starts, and recovered values.",
    "recovery": "Errors of the values found in simulated recordings.",
    "posterior": "Samples of the posterior, and the normal distribution of the standard errors.",
    "waterfall": "Ends from many starts, and their distances from the best.",
    "variance": "Quality of the gradient of the smoothed loss.",
    "adjoint": "Gradient of the loss by the state along time: where the motion still matters for the loss.",
    "particles": "Particles at six times.",
    "trajectory": "The motion.",
    "fields": "Values of the state along time.",
    "control": "Control along time.",
    "snapshots": "A field at several times.",
    "medium": "An unknown field: start, result and gradients.",
}
GROUPS = (
    ("fits", "Fit", ("fit", "gather", "medium")),
    ("search", "Convergence", ("convergence", "waterfall", "variance")),
    ("trust", "Can one believe it?", ("assessment", "recovery", "posterior")),
    ("motions", "Motion", ("particles", "trajectory", "fields", "control", "snapshots")),
    ("gradients", "Gradient along time", ("adjoint",)),
)


@dataclass(frozen=True)
class Picture:
    """Picture as SVG, or as PNG in base64; one of them is empty."""

    name: str
    caption: str
    alt: str
    svg: str = ""
    png: str = ""


@dataclass(frozen=True)
class Group:
    """Pictures under one heading."""

    id: str
    title: str
    pictures: tuple[Picture, ...]


def make_groups(
    recording: Recording, problems: list[Exception], on_picture: Callable[[int, int], None] | None = None
) -> tuple[Group, ...]:
    """Draw all pictures of a run, in groups; groups without pictures are left out.

    Errors of pictures that cannot be drawn from a damaged run are added to `problems`.
    `on_picture(done, whole)` is called before each one.
    """
    made = list(_draw(recording, problems, on_picture))
    found = []
    for name, title, kinds in GROUPS:
        inside = tuple(each for kind in kinds for each in made if each.name.partition("_")[0] == kind)
        if inside:
            found.append(Group(name, title, inside))
    return tuple(found)


def _draw(
    recording: Recording, problems: list[Exception], on_picture: Callable[[int, int], None] | None
) -> Iterator[Picture]:
    title = str(recording.scene.get("title", ""))
    for name, figure in plot.draw_figures(recording, problems, on_picture):
        kind, _, field = name.partition("_")
        caption = CAPTIONS[kind].removesuffix(".") + (f": {field}." if field else ".")
        remark = figure.get_suptitle().removeprefix(title).removeprefix(": ")  # the page has the title, too
        figure.suptitle(remark, x=0.01, ha="left")
        yield make_picture(name, figure, caption)


def make_picture(name: str, figure: Figure, caption: str) -> Picture:
    """Make a picture for a page of a figure: SVG, in which very many dots are joined, or PNG where it is too large."""
    svg = to_svg(figure, name)
    if len(svg) > LARGEST_SVG:
        svg = join_dots(svg)
    if len(svg) <= LARGEST_SVG:
        return Picture(name, caption, describe(figure, caption), svg=svg)
    return Picture(name, caption, describe(figure, caption), png=to_png(figure))


def describe(figure: Figure, caption: str) -> str:
    """Describe a picture for those who do not see it: the caption and the titles of its axes."""
    titles = [axes.get_title(loc="left") or axes.get_title() for axes in figure.axes]
    said = [re.sub(r"[$\\{}]|mathdefault|times", "", title).replace("\n", " ") for title in titles if title]
    return " ".join([caption, *dict.fromkeys(f"{each}." for each in said)])


def to_svg(figure: Figure, name: str) -> str:
    """Draw a figure as SVG for a page: text as text, colours of the page, ids of its own, and no outside address."""
    file = StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "simphys", "font.family": "sans-serif"}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None}, dpi=DPI)
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r' xmlns(:xlink)?="[^"]*"', "", text)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", text)
    for colour, variable in COLOURS.items():
        text = re.sub(rf"{colour}\b", f"var({variable})", text, flags=re.I)
    text = re.sub(r"font: ([^;\"]*?)'DejaVu Sans'[^;\"]*", r"font: \1system-ui, sans-serif", text)
    text = re.sub(r"<text style=\"(?![^\"]*fill)", '<text style="fill: var(--ink); ', text)
    return re.sub(r"\n+", "\n", text)


def to_png(figure: Figure) -> str:
    """Draw a figure as PNG, in base64; few colours make a small file."""
    from PIL import Image

    file, small = BytesIO(), BytesIO()
    figure.savefig(file, format="png", dpi=DPI)
    Image.open(file).convert("RGB").quantize(255, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
    return base64.b64encode(small.getvalue()).decode()
