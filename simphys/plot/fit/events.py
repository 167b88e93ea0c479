"""Events of a motion along time: a row of marks for each kind, and diamonds where the gradient is one-sided."""

from __future__ import annotations

from matplotlib.axes import Axes

from simphys.plot import style
from simphys.simulator.events import Event, group_by_kind, select_one_sided

ROW = 0.28
"""Height of a kind's row [inch]."""
DOUBTFUL = style.COLORS[1]


def draw_events(axes: Axes, events: tuple[Event, ...]) -> None:
    """Draw marks at the times of the events, the first kind on top, with their number; coinciding marks are darker."""
    kinds = group_by_kind(events)
    times = [[event.time for event in alike] for alike in kinds.values()]
    axes.eventplot(times, lineoffsets=range(len(kinds)), linelengths=0.7, linewidths=0.9, colors=style.INK, alpha=0.5)
    doubtful = select_one_sided(events)
    if doubtful:
        rows = [list(kinds).index(event.kind) for event in doubtful]
        axes.scatter(
            [event.time for event in doubtful],
            rows,
            marker="D",
            s=22,
            color=DOUBTFUL,
            label=f"the gradient is one-sided ({len(doubtful)})",
            clip_on=False,
            zorder=3,
        )
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), handlelength=1)
    axes.set_title("events")
    axes.set_yticks(range(len(kinds)), [f"{kind} ({len(alike)})" for kind, alike in kinds.items()])
    axes.set_ylim(len(kinds) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
