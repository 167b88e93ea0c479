"""Cost of a node that crosses to PyTorch: `to_torch` and `from_torch` of one product, on one number."""

from __future__ import annotations

import importlib.util

from ..measuring import apart, cells, joined, markdown
from .chains import FACTOR, Runs, Way, in_turn, our_chain, our_product, torch_chain, torch_product

TORCH = importlib.util.find_spec("torch") is not None
"""True if PyTorch is installed."""


def measure(nodes: int, repetitions: int) -> Runs:
    """Measure nodes that cross and nodes that do not, alternating. Needs PyTorch."""
    from simphys.autograd import from_torch, to_torch

    chains = {
        "our custom Function": our_chain(our_product(), nodes),
        "from_torch of a product in PyTorch": our_chain(from_torch(lambda x: x * FACTOR), nodes),
        "PyTorch's custom Function": torch_chain(torch_product(), nodes),
        "to_torch of our custom Function": torch_chain(to_torch(our_product()), nodes),
    }
    return in_turn({name: Way(chain, FACTOR**nodes) for name, chain in chains.items()}, nodes, repetitions)


def collect(*, nodes: int, rounds: int, repetitions: int = 5) -> Runs:
    """Measure each case in a separate process."""
    return joined([apart(f"graph.bridges.measure({nodes}, {repetitions})") for _ in range(rounds)])


def table(runs: Runs) -> str:
    """Format microseconds per node as a Markdown table."""
    head = ["node", "apply us", "backward us", "both us"]
    return markdown(head, [[name, *cells(found)] for name, found in runs.items()])
