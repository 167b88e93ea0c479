"""The element functions of billiards by themselves, applied to pairs of partners: [pairs, ...]."""

from __future__ import annotations

from typing import Any

from simphys.substep import per_element

SEARCH = {"min_step": "shortest interval", "rounding": "tolerance", "end": "end"}


def make_impact(func: Any) -> Any:
    """Make the Function of (x_i, v_i, x_j, v_j, m_i, m_j [pairs, ...], c []): velocities after the impact."""
    own = {name: name for name in ("x_i", "v_i", "x_j", "v_j", "m_i", "m_j")}
    return per_element(func, over="pairs", own=own, shared={"c": "c"}, results={"v_i": "v_i", "v_j": "v_j"})


def make_bounce(func: Any) -> Any:
    """Make the Function of (v [balls, 2], c [], side): the velocities after a bounce."""
    return per_element(func, over="balls", own={"v": "v"}, shared={"c": "c"}, constant={"side": "side"})


def make_time_of_impact(func: Any) -> Any:
    """Make the Function of the parameters of the element function: times of impact [pairs], and uncertainties."""
    own = {name: name for name in ("x_i", "v_i", "r_i", "x_j", "v_j", "r_j")}
    results = {"time": "r_i", "uncertainty": "r_i"}
    return per_element(func, over="pairs", own=own, shared={"a": "a"}, constant=SEARCH, results=results)


def make_time_of_bounce(func: Any) -> Any:
    """Make the Function of the parameters of the element function: times of bounces [balls], and uncertainties."""
    own, shared = {name: name for name in "xvr"}, {name: name for name in ("a", "lower", "upper")}
    constant, results = {"side": "side", **SEARCH}, {"time": "r", "uncertainty": "r"}
    return per_element(func, over="balls", own=own, shared=shared, constant=constant, results=results)
