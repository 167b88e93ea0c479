"""Contacts with closed forms: scenes, quantities of their final states, and the values they are differentiated by.

A closed form takes the values of the scene's parameters and start, and the horizon T. It is differentiated by complex
steps, f(x + i h) = f(x) + i h f'(x), h = 1e-30: exact to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

Array = np.ndarray[Any, Any]
Values = Mapping[str, Array]
Closed = Callable[[Values, float], Any]
Place = tuple[str, tuple[int, ...]]
"""Field of the parameters or the state, and an index into it."""

R, G = 0.1, 9.81
"""Radius of the balls [m] and gravity [m/s^2], in all scenes."""
PART = 0.3
"""Fraction of a step at which events happen in motions with O(dt) errors, so that half the step has half the error."""

COMPLIANT = ("simulator.law=compliant", "contact.stiffness=2000", "time.dt=2.5e-5")


@dataclass(frozen=True)
class Case:
    """Quantity of the final state of a motion."""

    what: str
    law: str
    scene: str
    end: Place
    by: Mapping[str, Place]
    closed: Closed
    overrides: tuple[str, ...] = ()
    start: Callable[[float], Mapping[Place, float]] | None = None
    """Values that depend on the time step, see PART; None for an exact simulation."""

    @property
    def exact(self) -> bool:
        """True if simulation and closed form agree to rounding; else their difference is of O(dt)."""
        return self.start is None


HEIGHT: Place = ("position", (0, 1))
ALONG: Place = ("position", (0, 0))
SPEED: Place = ("velocity", (0, 0))
FALL: Place = ("velocity", (0, 1))
SPIN: Place = ("angular_velocity", (0, 0))
MU: Place = ("friction", (0,))
E: Place = ("restitution", (0,))
K: Place = ("contact_stiffness", ())
C: Place = ("contact_damping", ())
DOWNHILL: Place = ("gravity", (0,))


def at(values: Values, place: Place) -> Any:
    """Value at a place."""
    return values[place[0]][place[1]]


def dropped(values: Values, T: float) -> Any:
    """Height of a dropped ball after one bounce."""
    fall = np.sqrt(2 * (at(values, HEIGHT) - R) / G)
    return R + at(values, E) * G * fall * (T - fall) - G * (T - fall) ** 2 / 2


def dropped_on_springs(values: Values, T: float) -> Any:
    """Height after a bounce with x'' = -w^2 x - g in contact: from -u to u in 2 / w (pi - arctan(u w / g))."""
    fall, w = np.sqrt(2 * (at(values, HEIGHT) - R) / G), np.sqrt(at(values, K) / values["mass"][0])
    left = T - fall - 2 / w * (np.pi - np.arctan(fall * w))
    return R + G * fall * left - G * left**2 / 2


def sent_back(values: Values, T: float) -> Any:
    """Speed u after a damped contact: c v - ln(1 + c v) is the same for v and -u (Hunt and Crossley 1975)."""
    c, v = at(values, C), -at(values, FALL)
    wanted, u = c * v - np.log(1 + c * v), v + 0
    for _ in range(60):
        u = u - (-c * u - np.log(1 - c * u) - wanted) * (1 - c * u) / (c * c * u)
    return u


def met(values: Values, T: float) -> tuple[Any, Any, Any]:
    """Position x, y and spin of a disc after an oblique impact, in which it sticks, or slides at the friction limit."""
    y, v_x, v_y, w, mu, e = [at(values, place) for place in (HEIGHT, SPEED, FALL, SPIN, MU, E)]
    t, slip = (y - R) / -v_y, v_x + R * w
    sticks = abs(slip.real) / 3 < (-mu * (1 + e) * v_y).real
    lost = slip / 3 if sticks else -mu * (1 + e) * v_y * np.sign(slip.real)
    return at(values, ALONG) + v_x * t + (v_x - lost) * (T - t), R - e * v_y * (T - t), w - 2 * lost / R


def pushed(values: Values, T: float) -> Any:
    """Position of the second of two balls after a head-on impact."""
    (x, X), v, (M, m) = values["position"][:, 0], at(values, SPEED), values["mass"]
    e = values["restitution"].mean()
    return X + (1 + e) * M / (M + m) * v * (T - (X - x - 2 * R) / v)


def slid(values: Values, T: float) -> Any:
    """Position at which a block stops."""
    return at(values, ALONG) + at(values, SPEED) ** 2 / (2 * (at(values, MU) * G - at(values, DOWNHILL)))


def rolled(values: Values, T: float) -> Any:
    """Position of a disc that slides without spin until it rolls, with two thirds of its speed, after v / (3 mu g)."""
    v, mu = at(values, SPEED), at(values, MU)
    t = v / (3 * mu * G)
    return at(values, ALONG) + v * t - mu * G * t * t / 2 + 2 / 3 * v * (T - t)


def rolling(values: Values, T: float) -> Any:
    """Spin of that disc."""
    return -2 / 3 * at(values, SPEED) / R


def fallen(dt: float) -> dict[Place, float]:
    """Height from which the ball hits the floor at the same PART of a step."""
    return {HEIGHT: R + G * ((round(0.4 / dt) + PART) * dt) ** 2 / 2}


def fallen_on_springs(dt: float) -> dict[Place, float]:
    """Height and stiffness: contact begins and ends at that part of a step."""
    height = fallen(dt)[HEIGHT]
    fall, lasts = np.sqrt(2 * (height - R) / G), round(0.05 / dt) * dt
    w = brentq(lambda w: 2 / w * (np.pi - np.arctan(fall * w)) - lasts, 20.0, 200.0, xtol=1e-13)
    return {HEIGHT: height, K: 0.5 * w * w}


def thrown(dt: float) -> dict[Place, float]:
    """Height, falling speed and contact damping for a motion without gravity."""
    return {HEIGHT: R + 1.2 * (round(0.2 / dt) + PART) * dt, FALL: -1.2, C: 0.3}


def stopping(dt: float) -> dict[Place, float]:
    """Speed that friction stops at that part of a step."""
    return {SPEED: 0.5 * G * (round(0.3 / dt) + PART) * dt}


def rolls(dt: float) -> dict[Place, float]:
    """Speed with which sliding ends at that part of a step."""
    return {SPEED: 3 * 0.4 * G * (round(0.25 / dt) + PART) * dt}


def aside(values: Values, T: float) -> Any:
    """Transverse speed of the second of two balls after an oblique impact; n is the direction between them."""
    d, w, m = np.diff(values["position"], axis=0)[0], -values["velocity"][0], values["mass"]
    t = (-(d @ w) - np.sqrt((d @ w) ** 2 - (w @ w) * (d @ d - 4 * R * R))) / (w @ w)
    n = (d + w * t) / (2 * R)
    return -(1 + values["restitution"].mean()) * m[0] / m.sum() * (n @ w) * n[1]


def tipped(values: Values, T: float) -> Any:
    """Speed of a spinning box after hitting a smooth floor with its lower left corner."""
    a, b, m, J = 0.2, 0.1, values["mass"][0], values["inertia"][0, 0]
    y, q, v, w = at(values, HEIGHT), values["orientation"][0, 0], at(values, FALL), at(values, SPIN)
    t = 0.0
    for _ in range(60):
        s, c = np.sin(q + w * t), np.cos(q + w * t)
        t = t - (y + v * t - a * s - b * c) / (v + w * (b * s - a * c))
    arm = b * np.sin(q + w * t) - a * np.cos(q + w * t)
    return v - (1 + at(values, E)) * (v + w * arm) / (1 + m * arm * arm / J)


def ran_up(values: Values, T: float) -> Any:
    """Upward speed of a disc after sliding without friction against a ramp; n is the ramp's normal."""
    n, e, v = RAMP_NORMAL, at(values, E), at(values, SPEED)
    t = ((RAMP_OFFSET + R - n[1] * R) / n[0] - at(values, ALONG)) / v
    return -(1 + e) * n[0] * n[1] * v - G * (T - t)


def sliding_up(dt: float) -> dict[Place, float]:
    """Position from which the disc hits the ramp at that part of a step."""
    met = (RAMP_OFFSET + R - RAMP_NORMAL[1] * R) / RAMP_NORMAL[0]
    return {ALONG: met - 2.0 * (round(0.15 / dt) + PART) * dt}


def swung(values: Values, T: float) -> tuple[Any, Any]:
    """Angle and spin of a pendulum of length 1, without gravity: at rest, then hit, then hitting a wall."""
    m, J, v = values["mass"][0], values["inertia"][0, 0], at(values, SPEED)
    spin = (m * v + J * at(values, SPIN)) / (m + J)  # the joint combines both
    return WALL_ANGLE - at(values, E) * (T * spin - WALL_ANGLE), -at(values, E) * spin


def swinging(dt: float) -> dict[Place, float]:
    """Speed and spin with which the pendulum hits the wall at that part of a step."""
    spin = WALL_ANGLE / ((round(0.25 / dt) + PART) * dt)
    return {SPEED: spin, SPIN: spin}


SLIDING = ("bodies.0.friction=0.1", "bodies.0.angular_velocity=30.0")
SLOW = (*COMPLIANT, "environment.gravity=[0.0,0.0]", "time.duration=0.5")

RAMP_NORMAL, RAMP_OFFSET = (-0.6, 0.8), -0.3
RAMP = (
    "planes=[{normal=[0.0,1.0]},{normal=[-0.6,0.8],offset=-0.3}]", "bodies.0.friction=0.0",
    "bodies.0.velocity=[2.0,0.0]", "bodies.0.restitution=0.9", "time.duration=0.4",
)  # fmt: skip

WALL_ANGLE = 1.0
SWINGING = (
    f"planes=[{{normal=[-1.0,0.0],offset={-np.sin(WALL_ANGLE) - R}}}]",
    'joints=[{kind="revolute",a=0,anchor=[0.0,0.0]}]', "bodies.0.position=[0.0,-1.0]", "bodies.0.friction=0.0",
    "bodies.0.restitution=0.7", "environment.gravity=[0.0,0.0]", "time.duration=0.4",
    "simulator.sweeps=50", "time.dt=2.5e-3", "unknowns={}",  # a joint does not let its velocity go
)  # fmt: skip

BOX = (
    'bodies.0.shapes=[{kind="box",half=[0.2,0.1]}]', "bodies.0.position=[0.0,0.5]", "bodies.0.orientation=0.3",
    "bodies.0.velocity=[0.0,-1.3]", "bodies.0.angular_velocity=3.0", "bodies.0.friction=0.0",
    "bodies.0.restitution=0.5", "environment.gravity=[0.0,0.0]", "time.duration=0.4",
)  # fmt: skip

CASES = (
    Case("dropped ball, height", "impulse", "dropped_ball", HEIGHT, {"height": HEIGHT, "e": E}, dropped, (), fallen),
    Case(
        "dropped ball, height", "compliant", "dropped_ball", HEIGHT, {"height": HEIGHT, "k": K}, dropped_on_springs,
        COMPLIANT, fallen_on_springs,
    ),
    Case(
        "damped bounce, speed", "compliant", "dropped_ball", FALL, {"speed": FALL, "c": C}, sent_back, SLOW, thrown
    ),
    Case(
        "bounce that sticks, x", "impulse", "oblique_bounce", ALONG, {"height": HEIGHT, "spin": SPIN},
        lambda values, T: met(values, T)[0],
    ),
    Case(
        "bounce that sticks, y", "impulse", "oblique_bounce", HEIGHT, {"height": HEIGHT, "e": E},
        lambda values, T: met(values, T)[1],
    ),
    Case(
        "bounce that slides, x", "impulse", "oblique_bounce", ALONG, {"height": HEIGHT, "mu": MU},
        lambda values, T: met(values, T)[0], SLIDING,
    ),
    Case(
        "bounce that slides, spin", "impulse", "oblique_bounce", SPIN, {"mu": MU, "e": E},
        lambda values, T: met(values, T)[2], SLIDING,
    ),
    Case(
        "two balls, x of the second", "impulse", "two_balls", ("position", (1, 0)),
        {"speed": SPEED, "x": ("position", (1, 0)), "mass": ("mass", (1,))}, pushed,
    ),
    Case(
        "two balls met obliquely, speed across", "impulse", "two_balls", ("velocity", (1, 1)),
        {"x": ALONG, "y": HEIGHT}, aside, ("bodies.1.position=[0.8,0.1]",),
    ),
    Case(
        "box on its corner, speed", "impulse", "sliding_block", FALL,
        {"height": HEIGHT, "angle": ("orientation", (0, 0))}, tipped, BOX,
    ),
    Case("block that stops, x", "impulse", "sliding_block", ALONG, {"speed": SPEED, "mu": MU}, slid, (), stopping),
    Case(
        "block that has stopped, x", "impulse", "sliding_block", ALONG, {"slope": DOWNHILL}, slid,
        (*BOX[:1], "bodies.0.position=[0.0,0.1]"), stopping,
    ),
    Case("disc that rolls, spin", "impulse", "rolling_disc", SPIN, {"speed": SPEED}, rolling),
    Case("disc that rolls, x", "impulse", "rolling_disc", ALONG, {"speed": SPEED, "mu": MU}, rolled, (), rolls),
    Case(
        "disc that meets a ramp, speed", "impulse", "rolling_disc", FALL, {"x": ALONG}, ran_up, RAMP, sliding_up
    ),
    Case(
        "pendulum that hits a wall, spin", "impulse", "rolling_disc", SPIN, {"speed": SPEED, "e": E},
        lambda values, T: swung(values, T)[1], SWINGING, swinging,
    ),
    Case(
        "pendulum that hits a wall, angle", "impulse", "rolling_disc", ("orientation", (0, 0)),
        {"speed": SPEED, "e": E}, lambda values, T: swung(values, T)[0], SWINGING, swinging,
    ),
)  # fmt: skip
