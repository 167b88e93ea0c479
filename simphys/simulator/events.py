"""Events of a motion with contacts: where its course is not smooth in the state, and what that means for gradients.

The state after an isolated impact is a smooth function of that before: the time of the impact moves with the state,
and the adjoint goes through it (saltation; Bernardo et al. 2008, Piecewise-smooth Dynamical Systems, section 2.5).
At a graze, at impacts that coincide, or where sticking begins or ends exactly, the derivatives from two sides differ,
and a gradient is one of them: such an event says why it is one-sided.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    """Something that happened within a step."""

    step: int
    """The step that it happened in, counted from 0: between states `step` and `step + 1`."""
    time: float
    """[s]"""
    kind: str
    """A word: impact, contact, release, stick, slip, rest, graze ..."""
    what: str
    """Who took part, such as "ball 0 and ball 3"."""
    one_sided: str = ""
    """Why the gradient is one-sided here; empty where it is not."""


def one_sided(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Those at which a gradient is one-sided."""
    return tuple([event for event in events if event.one_sided])


def by_kind(events: tuple[Event, ...]) -> dict[str, tuple[Event, ...]]:
    """The events of each kind, in the order in which kinds first appear."""
    kinds = dict.fromkeys([event.kind for event in events])
    return {kind: tuple([event for event in events if event.kind == kind]) for kind in kinds}
