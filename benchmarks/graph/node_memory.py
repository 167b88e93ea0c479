"""Memory of a recorded node until backward, in a chain on one number of which only the last result is referenced.

"Traced" counts allocations by Python and NumPy; "resident" is the growth of the process, with allocator overhead.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

from .. import machine
from ..measuring import apart, markdown
from .chains import our_product

Operation = Callable[[Any], Any]
MANY = 100
"""Factor on the number of nodes for measurements of the whole process."""


def sin() -> Operation:
    from simphys.autograd import ops

    return ops.sin


NODES: dict[str, Callable[[], Operation]] = {
    "custom Function, saves nothing": lambda: our_product(-1.0),
    "built-in product with a number": lambda: lambda y: y * -1.0,
    "built-in sin, saves its input": sin,
}


def chain(operation: Operation, nodes: int) -> Any:
    """Record a chain, and return its last result, which keeps all nodes alive."""
    from simphys.autograd import tensor

    y = tensor([1.0], requires_grad=True)
    for _ in range(nodes):
        y = operation(y)
    return y


def traced(operation: Operation, nodes: int) -> float:
    """Measure traced bytes per node."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    last = chain(operation, nodes)
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    del last
    return held / nodes


def resident(operation: Operation, nodes: int) -> float:
    """Measure resident bytes per node."""
    before = machine.resident_mb()
    last = chain(operation, nodes)
    held = machine.resident_mb() - before
    del last
    return held * 2**20 / nodes


def measure(name: str, nodes: int) -> tuple[float, float]:
    """Measure bytes per node: traced, and resident with `MANY` times as many nodes."""
    operation = NODES[name]()
    chain(operation, 10)
    in_process = resident(operation, MANY * nodes)  # first, as reuse of freed memory would not count
    return traced(operation, nodes), in_process


def collect(*, nodes: int) -> dict[str, tuple[float, float]]:
    """Measure each kind of node in a separate process."""
    return {name: apart(f"graph.node_memory.measure({name!r}, {nodes})") for name in NODES}


def table(found: dict[str, tuple[float, float]], *, nodes: int) -> str:
    """Format bytes per node as a Markdown table."""
    head = ["node", f"traced, {nodes:,} nodes, B a node", f"resident, {MANY * nodes:,} nodes, B a node"]
    return markdown(head, [[name, *[f"{held:.0f}" for held in row]] for name, row in found.items()])
