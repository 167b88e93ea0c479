"""Cost per node of observers: the chain of `chains.py` under `profile` and in anomaly mode."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from ..measuring import apart, cells, joined, less, markdown, ratio
from .chains import FACTOR, Chain, Runs, Way, in_turn, our_chain, our_product

UNWATCHED = "unwatched"


def measure(nodes: int, repetitions: int) -> Runs:
    """Measure all modes, alternating."""
    from simphys.autograd import detect_anomaly, profile

    chain = our_chain(our_product(), nodes)

    def inside(mode: type[AbstractContextManager[object]]) -> Chain:
        def timed() -> tuple[float, float, float]:
            with mode():
                return chain()

        return timed

    modes = {UNWATCHED: nullcontext, "profile": profile, "detect_anomaly": detect_anomaly}
    return in_turn({name: Way(inside(mode), FACTOR**nodes) for name, mode in modes.items()}, nodes, repetitions)


def collect(*, nodes: int, rounds: int, repetitions: int = 5) -> Runs:
    """Measure in separate processes."""
    return joined([apart(f"graph.observers.measure({nodes}, {repetitions})") for _ in range(rounds)])


def table(runs: Runs) -> str:
    """Format microseconds per node as a Markdown table, with the additional cost of each mode."""
    head = ["mode", "apply us", "backward us", "both us", "added us", "this / unwatched"]
    plain = runs[UNWATCHED]
    return markdown(
        head, [[mode, *cells(found), less(found, plain)[2], ratio(found, plain)] for mode, found in runs.items()]
    )
