"""Text of products with matrices, inside a body that loops over rows and columns itself.

A loop that stores to an array does not vectorize. So sums are made in local variables: several rows at a time, which
share the numbers read, or vectors of several columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from simphys.autograd import runtime

from .action import TIME
from .place import Place
from .site import Site

ROWS = 8
"""Rows of a matrix that are taken at a time in products with a vector."""
SUMS = 4
"""Rows that are taken at a time in sums of outer products."""
LANES = 16
"""Columns that are taken at a time in sums of outer products, and entries of vectors."""
WIDE = 32
"""Columns that are taken at a time in products with a transposed matrix."""
MASK = 2**30 - 1
"""Bit mask for indices: it proves to the compiler that they cannot overflow, which vectorization requires."""


def position(site: Site, place: Place, index: str) -> str:
    """Name of a local variable with the position of an entry."""
    return site.assign("at", f"({place.offset} + {index}) & {MASK}")


def pieces(site: Site, size: int, width: int, body: Callable[[str, int], None]) -> None:
    """Write a loop in steps of a width: `body` takes the first index and the number of indices."""
    if size >= width:
        number = site.fresh("piece")
        with site.block(f"for {number} in range({size // width}):"):
            body(f"{width} * {number}", width)
    if size % width:
        body(f"{size - size % width}", size % width)


@contextmanager
def lanes(site: Site, count: int) -> Iterator[str]:
    """Write a loop over the columns that are taken at a time, and give the name of its index."""
    name = site.fresh("r")
    with site.block(f"for {name} in range({count}):"):
        yield name


def multiply(
    site: Site, matrix: Place, rows: int, columns: int, given: Place, store: Callable[[str, str], None]
) -> None:
    """Compute the sum over j of matrix[i, j] given[j] for each row; `store` takes the row and the sum."""

    def block(first: str, count: int) -> None:
        starts = [position(site, matrix, f"({first} + {r}) * {columns}") for r in range(count)]
        totals = [site.assign("total", "0.0") for _ in range(count)]
        begin = position(site, given, "0")
        with site.block(f"for j in range({columns}):"):
            value = site.assign("value", f"{given.array}[{begin} + j]")
            for start, total in zip(starts, totals, strict=True):
                site.line(f"{total} += {matrix.array}[{start} + j] * {value}")
        for r, total in enumerate(totals):
            store(f"({first} + {r})", total)

    pieces(site, rows, ROWS, block)


def multiply_transposed(
    site: Site, matrix: Place, rows: int, columns: int, given: Place, target: Place, *, adds: bool
) -> None:
    """Set, or add to, target[j] the sum over i of matrix[i, j] given[i]."""

    begin = position(site, given, "0")

    def add_products(first: str, count: int, total: str, row: str, taken: int) -> None:
        factors = [site.assign("factor", f"{given.array}[{begin} + {row} + {q}]") for q in range(taken)]
        starts = [position(site, matrix, f"({row} + {q}) * {columns} + {first}") for q in range(taken)]
        with lanes(site, count) as r:
            entries = [f"{matrix.array}[{start} + {r}]" for start in starts]
            products = [f"{entry} * {factor}" for entry, factor in zip(entries, factors, strict=True)]
            site.line(f"{total}[{r}] += {' + '.join(products)}")

    def block(first: str, count: int) -> None:
        total = site.assign("total", f"vector_{count}(0.0)")
        pieces(site, rows, ROWS, lambda row, taken: add_products(first, count, total, row, taken))
        to = position(site, target, first)
        with lanes(site, count) as r:
            before = f"{target.array}[{to} + {r}] + " if adds else ""
            site.line(f"{target.array}[{to} + {r}] = {before}{total}[{r}]")

    pieces(site, columns, WIDE, block)


def map_entries(
    site: Site, size: int, given: Sequence[Place], target: Place, expression: Callable[[Sequence[str]], str]
) -> None:
    """Set target[k] to an expression of given[0][k], given[1][k] ..."""

    def block(first: str, count: int) -> None:
        found = site.assign("found", f"vector_{count}(0.0)")
        starts = [position(site, place, first) for place in given]
        to = position(site, target, first)
        with lanes(site, count) as r:
            values = [f"{place.array}[{start} + {r}]" for place, start in zip(given, starts, strict=True)]
            site.line(f"{found}[{r}] = {expression(values)}")
        with lanes(site, count) as r:
            site.line(f"{target.array}[{to} + {r}] = {found}[{r}]")

    pieces(site, size, LANES, block)


def add_outer_products(
    site: Site, rows: tuple[str, int], columns: int, left: Place, right: Place, target: Place
) -> None:
    """Add left[i] right[j] of all steps, the last one first, to target[i, j], for some rows: (first, count)."""
    first_row, count_rows = rows

    factors = [f"{left.array}[{left.offset} + {first_row} + {q}]" for q in range(count_rows)]

    def block(first: str, count: int) -> None:
        # Through memory but for whole blocks: the compiler may reorder a sum in few registers, by the number of steps;
        # and Taichi 1.7.4 fails on two loops with vectors that are indexed at run time in one kernel for Vulkan.
        in_registers = (count_rows, count) == (SUMS, LANES) and not runtime.settings().on_gpu
        to = [position(site, target, f"({first_row} + {q}) * {columns} + {first}") for q in range(count_rows)]
        totals = [site.assign("total", f"vector_{count}(0.0)") for _ in to if in_registers]
        if in_registers:
            with lanes(site, count) as r:
                for at, total in zip(to, totals, strict=True):
                    site.line(f"{total}[{r}] = {target.array}[{at} + {r}]")
        with site.block(TIME):
            start = position(site, right, first)
            left_entries = [site.assign("factor", factor) for factor in factors]
            with lanes(site, count) as r:
                value = site.assign("value", f"{right.array}[{start} + {r}]")
                sums = [f"{total}[{r}]" for total in totals] or [f"{target.array}[{at} + {r}]" for at in to]
                for factor, each in zip(left_entries, sums, strict=True):
                    added = f"+= {factor} * {value}" if in_registers else f"= {each} + {factor} * {value}"
                    site.line(f"{each} {added}")
        if in_registers:
            with lanes(site, count) as r:
                for at, total in zip(to, totals, strict=True):
                    site.line(f"{target.array}[{at} + {r}] = {total}[{r}]")

    pieces(site, columns, LANES, block)


def add_rows(site: Site, first: str, count: int, given: Place, target: Place) -> None:
    """Add given[k] of all steps, the last one first, to target[k], for some entries."""
    to = position(site, target, first)
    with site.block(TIME):  # through memory: the compiler may reorder a sum in registers, by the number of steps
        start = position(site, given, first)
        with lanes(site, count) as r:
            site.line(f"{target.array}[{to} + {r}] = {target.array}[{to} + {r}] + {given.array}[{start} + {r}]")
