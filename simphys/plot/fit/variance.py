"""Quality of the gradient of a smoothed loss: the variances of its two estimates, and their mixture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from simphys.plot import style
from simphys.record import Recording

NEEDS = tuple(
    f"iterations/{name}"
    for name in ("variance_first", "variance_zeroth", "gradient_norm", "alpha", "alpha_by_variance")
)
REMEDY = "Only `simphys optimize` with [optimizer.smoothing] records it."


def variance(recording: Recording, path: str | Path | None = None) -> Figure:
    """Draw the variances of the first- and zeroth-order estimates over iterations, and below them the share alpha.

    An estimate with a variance above the gradient's square is mostly noise. If alpha is below the share of least
    variance, the gradients of the samples do not explain their losses. Iterates with a variance of zero or infinity are
    marked at the axes' edge. Saved at `path` if given. Errors: NotRecorded without smoothing.
    """
    style.require(recording, "variance", NEEDS, REMEDY)
    first, zeroth, gradient_norm, alpha, by_variance = (recording[name] for name in NEEDS)
    iterates = np.arange(alpha.size)
    marker = ".-" if alpha.size <= 100 else "-"
    with style.style():
        figure = style.new_figure(recording, 5.2, "the gradient of the smoothed loss")
        above, beneath = figure.subplots(2, 1, sharex=True)
        curves = (("first order", first, style.COLORS[1]), ("zeroth order", zeroth, style.COLORS[0]))
        if any((values > 0).any() for _, values, _ in curves):
            above.set_yscale("log", nonpositive="mask")
        above.plot(iterates, gradient_norm**2, color=style.INK, linewidth=1, label="|gradient|\N{SUPERSCRIPT TWO}")
        for name, values, color in curves:
            drawn = np.where(np.isfinite(values), values, np.nan)
            above.plot(iterates, drawn, marker, color=color, markersize=5, label=name)
            for lost, edge, symbol in ((values == 0, 0.0, "v"), (np.isinf(values), 1.0, "^")):
                if lost.any():
                    edges = np.full(int(lost.sum()), edge)
                    above.plot(iterates[lost], edges, symbol, color=color, transform=above.get_xaxis_transform())
        above.set_ylabel("variance of the estimate\n[(loss / scaled unknown)\N{SUPERSCRIPT TWO}]")
        style.legend_above(above)
        beneath.plot(iterates, by_variance, "--", color=style.COLORS[2], label="of least variance")
        beneath.plot(iterates, alpha, marker, color=style.COLORS[2], markersize=5, label="taken")
        beneath.set_ylim(-0.05, 1.05)
        beneath.set_ylabel("alpha\n(1: first order, 0: zeroth)")
        beneath.set_xlabel("iteration")
        beneath.xaxis.set_major_locator(MaxNLocator(integer=True))
        limited = int(np.sum(alpha < by_variance))
        beneath.set_title(f"alpha cut in {limited} of {alpha.size} iterates")
        style.legend_above(beneath)
        figure.align_ylabels([above, beneath])
        style.save(figure, path)
    return figure
