"""Events of a motion with contacts, at which it is not smooth in time, and their effect on gradients.

The state after an isolated impact is a smooth function of the state before: the time of impact depends on the state,
and the adjoint goes through it (saltation; Bernardo et al. 2008, Piecewise-smooth Dynamical Systems, section 2.5).
At a graze, at simultaneous impacts, or exactly at a transition between sticking and sliding, the derivatives from the
two sides differ. A gradient is then one of them, and the event states why it is one-sided.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    """Event within a step of a motion."""

    step: int
    """Step of the event, counted from 0: between states `step` and `step + 1`."""
    time: float
    """Time of the event [s]."""
    kind: str
    """Kind in one word: impact, contact, release, stick, slip, rest, graze ..."""
    what: str
    """Bodies that take part, such as "ball 0 and ball 3"."""
    one_sided: str = ""
    """Reason why the gradient is one-sided here; empty if it is not."""


def select_one_sided(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Select the events at which a gradient is one-sided."""
    return tuple([event for event in events if event.one_sided])


def group_by_kind(events: tuple[Event, ...]) -> dict[str, tuple[Event, ...]]:
    """Group the events by kind, in the order in which kinds first appear."""
    kinds = dict.fromkeys([event.kind for event in events])
    return {kind: tuple([event for event in events if event.kind == kind]) for kind in kinds}
