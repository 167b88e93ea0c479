"""Contact events of a motion, and where a gradient is one-sided; every step is computed once more.

Under the impulse law two bodies, or a body and the world, touch in a step if a normal impulse is positive. Features
that begin to touch make an `impact`, or a `rest` if they are slower than the restitution threshold and do not bounce.
The end of a pair's last contact is its `release`; in between, friction may change from sticking to `slip` and back to
`stick`. A `graze` is a contact that is active, or not, by less than rounding: features that pass each other without any
speed or at a distance below rounding (near_misses.py), that need no impulse, or that meet just as the motion ends.
Derivatives are one-sided

- at a graze: slightly to the side there is no contact, or no impulse;
- if the approach is as fast as the threshold: slightly faster, the body bounces;
- if friction is exactly at the edge of its cone and nothing slides: slightly beyond, something does;
- if features of one body meet others at the same time: one impact would change the next, and the derivative belongs to
  impulses that are solved for simultaneously.

Under the compliant law a pair is in `contact` if features overlap at the start of a step. Forces are continuous, so the
only kink is at features that exactly touch: a graze.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simphys.autograd import no_grad, runtime, tensor
from simphys.simulator import Array, Arrays
from simphys.simulator.events import Event

from .checks import COMPLIANT
from .contacts.islands import IMPACT, NONE, REST
from .contacts.near_misses import find_near_misses
from .contacts.pair import FAR
from .contacts.time_of_impact import SIMULTANEOUS
from .joints.joint import WORLD
from .model import Params, RigidBodies, State
from .step import StepSolution, solve_step

EDGE = "a graze: slightly to the side there is no contact"
THRESHOLD = "as fast as the restitution threshold: slightly faster it bounces, slightly slower it does not"
CONE = "friction is exactly at the edge of its cone: on one side it slides, on the other it sticks"
SAME_TIME = "impacts of one body at the same time, which are solved for simultaneously"
TOUCHING = "exactly touching, where the derivative is that without contact"

ROUNDINGS = 64.0
"""Tolerance within which numbers count as equal, in units of rounding of their terms."""

SLIP = 1e-6
"""Minimum slip of sliding features, relative to the speeds before the impulses: sweeps leave a small residual."""

Pair = tuple[int, int]


def find_events(model: RigidBodies, params: Arrays, states: Arrays, control: Array | None) -> tuple[Event, ...]:
    """Return the events of a motion with these states [rows, *shape], in the order of time."""
    real = runtime.real_dtype()
    given = Params(**{name: tensor(np.asarray(values, real)) for name, values in params.items()})
    steps = len(states["position"]) - 1
    found: list[Event] = []
    if not model.candidates.count:
        return ()
    last: tuple[Array, dict[Pair, bool]] = np.zeros(model.candidates.count, bool), {}
    with no_grad():
        for step in range(steps):
            state = State(**{name: tensor(np.asarray(values[step], real)) for name, values in states.items()})
            driven = None if control is None else tensor(np.asarray(control[step], real))
            solution = solve_step(model, given, state, driven)
            assert solution.contacts is not None
            gap, frame = [each.data for each in solution.contacts]
            longest_arm = float(np.abs(frame[gap < FAR]).max(initial=0.0))
            size = float(np.abs(states["position"][step]).max()) + longest_arm
            if model.law == COMPLIANT:
                touch, happened = _overlap_events(model, gap, size, last[0], step)
                last = touch, {}
            else:
                now = _StepContacts(model, given, solution, gap, frame, size, ends=step == steps - 1)
                happened = list(_step_events(model, now, step, *last))
                last = now.touch, now.slips()
            found += happened
    return tuple(sorted(found, key=lambda event: event.time))


class _StepContacts:
    """State of all candidates in a step of the impulse law, [M] each."""

    def __init__(
        self,
        model: RigidBodies,
        params: Params,
        solution: StepSolution,
        gap: Array,
        frame: Array,
        size: float,
        *,
        ends: bool,
    ) -> None:
        assert solution.target is not None and solution.limit is not None and solution.impulse is not None
        assert solution.active is not None and solution.time is not None
        dim, NJ, M = model.dim, model.joint_rows, model.candidates.count
        self.pairs = _pairs(model)
        self.rest_speed, self.time, self.limit = model.rest_speed, solution.time.data, solution.limit.data
        status = solution.active.data
        self.fast = status > REST
        arms = frame.reshape(M, 3, dim)
        self.before, self.after = (
            _contact_velocities(model, twist.data, arms) for twist in (solution.before, solution.twist)
        )
        self.target = solution.target.data[NJ:].reshape(M, dim)[:, 0]
        impulse = solution.impulse.data.sum(axis=0)[NJ:].reshape(M, dim)  # of all phases
        self.normal, self.tangent = impulse[:, 0], np.linalg.norm(impulse[:, 1:], axis=1)
        self.touch = self.normal > 0
        eps = ROUNDINGS * np.finfo(gap.dtype).eps
        fastest = float(np.abs(self.before).max()) + abs(size / model.dt) * eps
        self.speed_rounding = eps * fastest
        self.gap_rounding = eps * (size + model.dt * fastest)
        self.time_rounding = self.gap_rounding / np.maximum(np.abs(self.before[:, 0]), 1e-300)
        self.impulse_rounding = eps * float(self.normal.max(initial=0.0))
        slip = np.linalg.norm(self.after[:, 1:], axis=1)
        at_limit = self.tangent >= self.limit * self.normal - self.impulse_rounding
        self.sliding = self.touch & at_limit & (slip > SLIP * fastest)
        # Features of a pair may push against each other at their limits: their sum decides.
        held = np.array([self._norm_over_pair(pair, impulse[:, 1:]) for pair in self.pairs])
        most = np.array([self._norm_over_pair(pair, (self.limit * self.normal)[:, None]) for pair in self.pairs])
        together = held >= most - len(self.pairs) * self.impulse_rounding
        self.at_edge = self.touch & at_limit & together & (slip <= self.speed_rounding) & (self.limit > 0)
        approach, is_impact = self.before[:, 0], status == IMPACT
        left = np.where(is_impact, model.dt / 2 - self.time, model.dt + gap / np.minimum(approach, -self.rest_speed))
        at_end = ends & (is_impact | (approach < -self.rest_speed)) & (np.abs(left * approach) <= self.gap_rounding)
        passes = is_impact & (approach * approach <= self.speed_rounding * fastest)
        unmoved = np.abs(self.after[:, 0] - self.before[:, 0]) <= self.speed_rounding
        idle = (status > NONE) & (unmoved | (self.normal <= self.impulse_rounding))
        unneeded = idle & (np.abs(self.after[:, 0] - self.target) <= self.speed_rounding)
        missed = find_near_misses(model, params, solution.stage, solution.before, status, self.gap_rounding)
        self.grazes = at_end | passes | unneeded | missed

    def _norm_over_pair(self, pair: Pair, values: Array) -> float:
        """Return the norm of the sum over the touching features of a pair."""
        own = self.touch & np.array([each == pair for each in self.pairs])
        return float(np.linalg.norm(values[own].sum(axis=0)))

    def slips(self) -> dict[Pair, bool]:
        """Return all touching pairs, with True if one of their features slides."""
        found: dict[Pair, bool] = {}
        for c in np.flatnonzero(self.touch):
            found[self.pairs[c]] = found.get(self.pairs[c], False) or bool(self.sliding[c])
        return found


def _step_events(
    model: RigidBodies, now: _StepContacts, step: int, touched: Array, slid: dict[Pair, bool]
) -> Iterator[Event]:
    start, slips = step * model.dt, now.slips()
    begun = np.flatnonzero(now.touch & ~touched)
    for pair in dict.fromkeys(now.pairs[c] for c in begun):
        own = [c for c in begun if now.pairs[c] == pair]
        speed = -now.before[own, 0]
        first = int(own[int(np.argmin(now.time[own]))])
        time = start + float(np.clip(model.dt / 2 + now.time[first], 0, model.dt))
        fast = bool(now.fast[own].any())
        reason = ""
        if np.any(np.abs(speed - now.rest_speed) <= now.speed_rounding):
            reason = THRESHOLD
        elif fast and _coincides(model, now, begun, first):
            reason = SAME_TIME
        yield Event(step, time, "impact" if fast else "rest", _name_pair(pair), reason)
    for pair in slid.keys() - slips.keys():
        yield Event(step, start, "release", _name_pair(pair))
    for pair in slips.keys() & slid.keys():
        if slips[pair] != slid[pair]:
            yield Event(step, start, "slip" if slips[pair] else "stick", _name_pair(pair))
    for pair in dict.fromkeys(now.pairs[c] for c in np.flatnonzero(now.at_edge)):
        yield Event(step, start, "stick", _name_pair(pair), CONE)
    for c in np.flatnonzero(now.grazes):
        yield Event(step, start, "graze", _name_pair(now.pairs[c]), EDGE)


def _coincides(model: RigidBodies, now: _StepContacts, begun: Array, first: int) -> bool:
    """Return True if another feature of its bodies begins to touch at the same time, or acts together with it."""
    mine = {body for body in now.pairs[first] if body != WORLD and model.free[body]}

    def together(c: int) -> bool:
        apart = abs(now.time[c] - now.time[first])
        one_pair = now.pairs[c] == now.pairs[first] and apart < SIMULTANEOUS * model.dt
        return bool(one_pair or apart <= now.time_rounding[c] + now.time_rounding[first])

    return any(c != first and mine & set(now.pairs[c]) and together(c) for c in begun)


def _overlap_events(
    model: RigidBodies, gap: Array, size: float, touched: Array, step: int
) -> tuple[Array, list[Event]]:
    """Return the candidates that overlap at the start of a step, and the events of their changes."""
    found: list[Event] = []
    time = step * model.dt
    pairs = _pairs(model)
    touch = gap < 0
    for pair in dict.fromkeys(pairs):
        own = np.array([each == pair for each in pairs])
        is_close = bool((np.abs(gap[own]) <= ROUNDINGS * np.finfo(gap.dtype).eps * size).any())
        if touch[own].any() != touched[own].any():
            kind = "contact" if touch[own].any() else "release"
            found.append(Event(step, time, kind, _name_pair(pair), TOUCHING if is_close else ""))
        elif is_close:
            found.append(Event(step, time, "graze", _name_pair(pair), TOUCHING))
    return touch, found


def _pairs(model: RigidBodies) -> list[Pair]:
    """Return the bodies of each candidate, the lower number first, the world last."""
    both = zip(model.candidates.body_a.tolist(), model.candidates.body_b.tolist(), strict=True)
    return [(a, b) if b == WORLD or a < b else (b, a) for a, b in both]


def _contact_velocities(model: RigidBodies, twist: Array, frame: Array) -> Array:
    """Return velocities of a relative to b at the contact: normal component, then tangential vector, [M, 1 + dim]."""
    v, w = twist[:, : model.dim], twist[:, model.dim :]
    relative = np.zeros((len(frame), model.dim))
    for bodies, arms, sign in (
        (model.candidates.body_a, frame[:, 1], 1.0),
        (model.candidates.body_b, frame[:, 2], -1.0),
    ):
        weight = (bodies != WORLD) * sign
        spin = w[bodies]
        rotational = np.cross(spin, arms) if model.dim == 3 else spin * np.stack([-arms[:, 1], arms[:, 0]], axis=1)
        relative += weight[:, None] * (v[bodies] + rotational)
    normal_speed = np.einsum("ci,ci->c", relative, frame[:, 0])
    return np.concatenate([normal_speed[:, None], relative - normal_speed[:, None] * frame[:, 0]], axis=1)


def _name_pair(pair: Pair) -> str:
    return f"body {pair[0]} and " + ("the world" if pair[1] == WORLD else f"body {pair[1]}")
