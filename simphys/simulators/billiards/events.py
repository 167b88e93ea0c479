"""Events of a motion: impacts, balls coming to rest and near misses; and the events at which a gradient is one-sided.

The state after an isolated impact is a smooth function of the state before. It is not smooth

- at a graze, where the partners approach at almost zero speed: slightly to the side they would miss each other, and the
  derivative of the velocity after grows without bound. A near miss is the same event seen from the other side, where
  the derivative is finite. It includes all paths that rounding cannot distinguish from a miss (see search.py);
- if another impact of one of the balls takes place at the same time: the result depends on which is first. Impacts are
  resolved in the order of ball numbers (see search.py), and the derivative belongs to that order;
- if one of the balls comes to rest at that very moment, since the derivative of its velocity jumps there;
- at the very start, since any closer the balls would overlap; and at the very end, where the last state may be the one
  before or after the impact.

When a ball comes to rest, its position is smooth and its velocity has a kink. The kink shows only if the ball stops at
the last state. Two events count as near each other if rounding could not distinguish them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simphys.autograd import runtime, tensor
from simphys.simulator import Array, Arrays
from simphys.simulator.events import Event

from . import search
from .legs import Leg, describe_endless_impacts, trace_legs
from .model import Billiards, Params, State

GRAZE = "a graze: the partners approach at almost zero speed, and slightly to the side they miss each other"
NEAR_MISS = "a near miss: slightly to the side they touch"
SAME_TIME = "another impact of {} at the same time: impacts are resolved in the order of ball numbers"
RESTING = "{} comes to rest at this moment, where its velocity has a kink"
AT_START = "at the very start: any closer, they would overlap"
AT_END = "at the very end: the last state may be the one before it or after it"

HALVINGS = 60
NEAR = 4.0
"""Depth of a graze, or distance of a near miss, in units of the search's tolerance."""


def find_events(model: Billiards, params: Arrays, states: Arrays, control: Array | None = None) -> tuple[Event, ...]:
    """Return the events of a motion with these states [rows, n, 2], in the order of time."""
    watch = _EventCollector(model, params, len(states["position"]) - 1)
    for step in range(watch.steps):
        state = _as_state({name: values[step] for name, values in states.items()})
        for leg in trace_legs(model, watch.params, state):
            watch.add(step, leg)
    return tuple(sorted(watch.found, key=lambda event: event.time))


def explain_endless_impacts(model: Billiards, params: Arrays, state: Arrays) -> str:
    """Name the balls whose impacts do not end in the step from this state, and suggest what to do."""
    given = _as_params(params)
    endless = describe_endless_impacts(model, given, trace_legs(model, given, _as_state(state)))
    if endless is None:
        return "Impacts have an end here: look at the start, the masses and the velocities."
    constraint, found, remedy = endless
    return f"There may be {constraint}; found were {found}. {remedy}"


def _as_params(params: Arrays) -> Params:
    return Params(**{name: tensor(values.astype(runtime.real_dtype())) for name, values in params.items()})


def _as_state(state: Arrays) -> State:
    return State(**{name: tensor(values.astype(runtime.real_dtype())) for name, values in state.items()})


class _EventCollector:
    """Collector of the events of a motion, leg by leg."""

    def __init__(self, model: Billiards, params: Arrays, steps: int) -> None:
        self.model, self.params, self.steps = model, _as_params(params), steps
        self.found: list[Event] = []
        self._a, self._radius = float(params["deceleration"]), np.asarray(params["radius"], np.float64)
        self._walls = np.stack([params["lower"], params["upper"]], axis=-1).reshape(-1).astype(np.float64)
        pairs = [(i, j) for i in range(model.balls) for j in range(i + 1, model.partners)]
        self._pairs = np.array(pairs, np.int64).reshape(-1, 2).T
        self._other = np.where(self._pairs[1] < model.balls, self._pairs[1], self._pairs[0])
        self._now, self._step = 0.0, -1
        self._last: dict[int, tuple[int, float]] = {}
        """Last impact of each ball: its index in `found`, and the uncertainty of its time due to rounding."""
        self._last_pair: tuple[int, int] | None = None
        self._reported: set[int] = set()
        """Pairs in a near miss that is already reported and still lasts."""

    def add(self, step: int, leg: Leg) -> None:
        """Add the events during the next leg and at its end."""
        if step != self._step:
            self._step, self._now = step, step * self.model.dt
        self._add_near_misses(leg)
        resting = self._add_rests(leg)
        if leg.collision is not None:
            self._add_impact(leg, *leg.collision, resting)
        self._last_pair = leg.collision
        self._now += leg.time

    def _add_impact(self, leg: Leg, i: int, j: int, resting: dict[int, float]) -> None:
        x, v = leg.at(self._a, leg.time)
        n, end = self.model.balls, self.steps * self.model.dt
        which = int(np.flatnonzero((self._pairs[0] == i) & (self._pairs[1] == j))[0])
        rate, near = float(self._measure_gaps(x, v)[1][which]), float(self._tolerance(x)[which])
        time = self._now + leg.time
        moved = near / abs(rate) + search.rounding() * time
        here, reason = len(self.found), ""
        if rate**2 <= 2 * NEAR * near * self._gap_acceleration(x, v, i, j):
            reason = GRAZE
        elif time <= moved:
            reason = AT_START
        elif end - time <= moved:
            reason = AT_END
        for ball in (i, j) if j < n else (i,):
            name = self.model.name_of(ball)
            if ball in resting and abs(resting[ball] - leg.time) <= moved:
                reason = reason or RESTING.format(name)
            if ball in self._last:
                other, slack = self._last[ball]
                if time - self.found[other].time <= moved + slack:
                    reason = reason or SAME_TIME.format(name)
                    same = self.found[other].one_sided or reason
                    self.found[other] = replace(self.found[other], one_sided=same)
            self._last[ball] = here, moved
        self._append("impact" if j < n else "cushion", time, i, j, reason)

    def _gap_acceleration(self, x: Array, v: Array, i: int, j: int) -> float:
        """Return the second derivative of the gap of touching partners, due to the cloth and their sideways motion."""
        speed = np.linalg.norm(v, axis=1, keepdims=True)
        slowed = -self._a * np.divide(v, speed, out=np.zeros_like(v), where=speed > 0)
        side = j - self.model.balls
        if side >= 0:
            return float((1 - 2 * (side % 2)) * slowed[i, side // 2])
        d, w = x[i] - x[j], v[i] - v[j]
        distance = float(np.linalg.norm(d))
        across = float(d[0] * w[1] - d[1] * w[0]) / distance
        return (across**2 + float(d @ (slowed[i] - slowed[j]))) / distance

    def _add_rests(self, leg: Leg) -> dict[int, float]:
        """Return times, from the start of the leg, at which balls come to rest during the leg or just after it."""
        if self._a <= 0:
            return {}
        when = np.linalg.norm(leg.velocity, axis=1) / self._a
        slack = search.rounding() * (1 + self.steps) * self.model.dt
        found = {}
        for ball in np.flatnonzero((when > 0) & (when <= leg.time + slack)):
            found[int(ball)] = float(when[ball])
            if when[ball] > leg.time and not (leg.collision is None and self._step + 1 == self.steps):
                continue  # the next leg reports it, or the ball is hit before
            time = self._now + float(when[ball])
            at_end = abs(time - self.steps * self.model.dt) <= slack
            what = self.model.name_of(int(ball))
            reason = "at the very end, where its velocity has a kink" if at_end else ""
            self.found.append(Event(self._step, time, "rest", what, reason))
        return found

    def _add_near_misses(self, leg: Leg) -> None:
        """Add pairs that almost touch and separate again, or rest there; and pairs about to collide at the end."""
        i, j = self._pairs
        speed = np.linalg.norm(leg.velocity, axis=1)
        both = speed[i] + np.where(j < self.model.balls, speed[self._other], 0.0)
        (gap, rate), (then, later) = (
            self._measure_gaps(leg.position, leg.velocity),
            self._measure_gaps(*leg.at(self._a, leg.time)),
        )
        near, slow = self._tolerance(leg.position), search.rounding() * both
        reported, self._reported = self._reported, set()
        for which in np.flatnonzero((both > 0) & (gap <= both * leg.time + near) & (rate <= slow)).tolist():
            pair = int(i[which]), int(j[which])
            if pair in (leg.collision, self._last_pair):
                continue
            if later[which] < -slow[which]:
                last = leg.collision is None and self._step + 1 == self.steps
                if last and then[which] <= NEAR * near[which]:
                    self._append(
                        "impact" if pair[1] < self.model.balls else "cushion", self._now + leg.time, *pair, AT_END
                    )
                continue
            at = self._closest_approach(leg, which)
            if abs(self._measure_gaps(*leg.at(self._a, at))[0][which]) <= NEAR * near[which]:
                self._reported.add(which)
                if which not in reported:
                    self._append("graze", self._now + at, *pair, NEAR_MISS)

    def _closest_approach(self, leg: Leg, which: int) -> float:
        """Return the time at which partners stop approaching."""
        before, after = 0.0, leg.time
        for _ in range(HALVINGS):
            middle = (before + after) / 2
            if self._measure_gaps(*leg.at(self._a, middle))[1][which] < 0:
                before = middle
            else:
                after = middle
        return after

    def _measure_gaps(self, x: Array, v: Array) -> tuple[Array, Array]:
        """Return the gaps between all partners, and the rates at which they open."""
        (i, j), o, n = self._pairs, self._other, self.model.balls
        d = x[i] - x[o]
        distance = np.linalg.norm(d, axis=1)
        distance[j >= n] = 1.0
        gap, rate = distance - self._radius[i] - self._radius[o], (d * (v[i] - v[o])).sum(axis=1) / distance
        side = j[j >= n] - n
        ball, axis, sign = i[j >= n], side // 2, 1 - 2 * (side % 2)
        gap[j >= n] = sign * (x[ball, axis] - self._walls[side]) - self._radius[ball]
        rate[j >= n] = sign * v[ball, axis]
        return gap, rate

    def _tolerance(self, x: Array) -> Array:
        """Return the gap of each pair below which rounding cannot tell whether the partners touch."""
        size = np.abs(x).max(axis=1) + self._radius
        i, j = self._pairs
        return search.rounding() * (size[i] + np.where(j < self.model.balls, size[self._other], 0.0))

    def _append(self, kind: str, time: float, i: int, j: int, reason: str) -> None:
        what = f"{self.model.name_of(i)} and {self.model.name_of(j)}"
        self.found.append(Event(self._step, float(time), kind, what, reason))
