"""The loops of the fused steps over the lines of a grid and of its absorbing layers; see `advance` and `layer`."""

from __future__ import annotations

from simphys.numerics import absorbing

from .. import advance, layer
from .line_text import ALONG, OWN
from .lines import LineLoop, first, laplace, second

ELEMENTS = (
    advance.leap, advance.adj_leap, advance.jvp_leap, absorbing.remember, absorbing.adj_remember,
    layer.curvature_memory, layer.adj_curvature_memory,
)  # fmt: skip
"""The element functions that the text calls."""


def curvature(name: str, extra: str, dim: int, order: int, layers: int) -> str:
    """Expression of dx^2 laplace u, plus what layers add if there are any."""
    return laplace(name, dim, order) + (f" + {extra}[{extra}_i]" if layers else "")


def leap(dim: int, order: int, layers: int) -> LineLoop:
    """Compute the next height from the last two."""
    k = curvature("u", "extra", dim, order, layers)
    return LineLoop(
        "leap",
        {"new": f"fn_leap(u[u_i], before[before_i], kappa[kappa_i], {k})"},
        grid=("u", "before", "kappa", "extra", "new"),
        over_time=("before", "u", "new"),
    )


def adj_log_courant(dim: int, order: int, layers: int) -> LineLoop:
    """Add to l = adj log kappa, from u before a step and w = kappa adj_u after it."""
    k = curvature("u", "extra", dim, order, layers)
    return LineLoop(
        "adj_log_courant",
        {"total": "total[total_i] + adj_log"},
        grid=("u", "w", "extra", "total"),
        body=(f"adj_u, adj_before, adj_log, adj_k = fn_adj_leap(0.0, 0.0, 0.0, {k}, w[w_i])",),
        moving=("u", "w"),
    )


def jvp_leap(dim: int, order: int, layers: int) -> LineLoop:
    """Compute the tangent of the next height."""
    k, dk = (curvature(u, extra, dim, order, layers) for u, extra in (("u", "extra"), ("du", "dextra")))
    moves = f"du[du_i], dbefore[dbefore_i], dkappa[dkappa_i], {dk}"
    return LineLoop(
        "jvp_leap",
        {"new": f"fn_jvp_leap(0.0, 0.0, kappa[kappa_i], {k}, {moves})"},
        grid=("u", "du", "dbefore", "kappa", "dkappa", "extra", "dextra", "new"),
        moving=("u", "dbefore", "du", "new"),
    )


def slope_memory(order: int) -> LineLoop:
    """Compute psi'."""
    return LineLoop(
        "slope_memory",
        {"new": f"fn_remember(psi[psi_i], {first('u', ALONG, order)}, a_n, b_n)"},
        grid=("u",),
        slab=("psi", "new"),
        moving=("u", "psi", "new"),
        profiles=("a", "b"),
    )


def curvature_memory(order: int) -> LineLoop:
    """Compute zeta' and add to `extra`; psi holds psi'."""
    Dpsi, D2u = f"mask_n * {first('psi', OWN, order)}", second("u", ALONG, order)
    return LineLoop(
        "curvature_memory",
        {"new": "memory", "extra": "extra[extra_i] + added"},
        grid=("u", "extra"),
        slab=("psi", "zeta", "new"),
        body=(f"memory, added = fn_curvature_memory(zeta[zeta_i], {D2u}, {Dpsi}, a_n, b_n)",),
        moving=("u", "psi", "zeta", "new"),
        profiles=("a", "b", "mask"),
    )


def adj_curvature_memory(order: int) -> LineLoop:
    """Step adj_zeta back, and compute q and s."""
    given = "a_n, b_n, adj_zeta[adj_zeta_i], mask_n * w[w_i]"
    return LineLoop(
        "adj_curvature_memory",
        {"adj_zeta": "adj_memory", "q": "adj_bend", "s": "adj_slope"},
        grid=("w",),
        slab=("adj_zeta", "q", "s"),
        body=(f"adj_memory, adj_bend, adj_slope = fn_adj_curvature_memory(0.0, 0.0, 0.0, {given})",),
        moving=("w",),
        profiles=("a", "b", "mask"),
    )


def adj_slope_memory(order: int) -> LineLoop:
    """Step adj_psi back, and compute r."""
    P = f"adj_psi[adj_psi_i] - {first('s', OWN, order)}"
    return LineLoop(
        "adj_slope_memory",
        {"adj_psi": "adj_memory", "r": "adj_slope"},
        grid=(),
        slab=("s", "adj_psi", "r"),
        body=(f"adj_memory, adj_slope = fn_adj_remember(0.0, 0.0, a_n, b_n, {P})",),
        profiles=("a", "b"),
    )


def adj_height(order: int) -> LineLoop:
    """Add adj_u = D2 q - D r to `extra`, in the slab's cells and in cells of the grid within reach of differences."""
    return LineLoop(
        "adj_height",
        {"extra": f"extra[extra_i] + ({second('q', OWN, order)} - {first('r', OWN, order)})"},
        grid=("extra",),
        slab=("q", "r"),
    )
