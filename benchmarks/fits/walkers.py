"""`python -m benchmarks.fits.walkers`: three robots learn to walk, from three seeds each.

The scenes are scenes/mass_spring/robot_{14,20,26}.toml. A table lists the distance of the head along x [m], the best
of all iterations, and PICTURE shows it for each iteration. For comparison, it has the distances of DiffTaichi's first
and second robot after 100 iterations (Hu et al. 2020), with the same gravity, drag and time, but other shapes and a
clamping ground.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from ..compare import ROOT

FOLDER = ROOT / "scenes" / "mass_spring"
ROBOTS, SEEDS = (14, 20, 26), (0, 1, 2)
DIFFTAICHI = {14: 0.315, 20: 0.468}
"""Distances reached by DiffTaichi's robots [m]."""


def walk(points: int, seed: int, *, iterations: int, precision: str, overrides: tuple[str, ...] = ()) -> np.ndarray:
    """Compute the distance of a robot's head along x at each iteration [m]."""
    import simphys
    from simphys import optimize

    given = [f"controller.seed={seed}", f'runtime.precision="{precision}"', *overrides]
    scene = simphys.load_scene(FOLDER / f"robot_{points}.toml", given)
    term, chosen = scene.config.loss.terms[0], scene.config.optimizer
    result = optimize.minimize(
        scene.objective(),
        method=chosen.method,
        learning_rate=chosen.learning_rate,
        tolerance=chosen.tolerance,
        iterations=iterations,
    )
    start = scene.state.position.data[term.nodes[0], 0]
    short = np.sqrt([at.loss / term.weight for at in result.history])  # distance to the target, never passed
    return np.asarray(term.target - short - start)


def draw(found: dict[int, list[np.ndarray]], path: Path) -> None:
    """Draw a panel for each robot, with a curve for each seed."""
    import matplotlib.pyplot as plt

    from simphys.plot import style

    with style.style():
        figure, panels = plt.subplots(1, len(found), figsize=(style.WIDTH, 3.2), sharey=True, layout="constrained")
        for axes, (points, curves) in zip(np.atleast_1d(panels), found.items(), strict=True):
            for seed, gained in enumerate(curves):
                axes.plot(gained, label=f"seed {seed}")
            if points in DIFFTAICHI:
                axes.axhline(DIFFTAICHI[points], color=style.INK, linestyle="--", linewidth=0.9, label="DiffTaichi's")
            axes.set(title=f"{points} points", xlabel="iteration")
            axes.legend(loc="lower right")
        np.atleast_1d(panels)[0].set_ylabel("displacement of the head [m]")
        figure.savefig(path)
        plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fits.walkers", description=__doc__)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--picture", type=Path, default=Path("walk.png"))
    options = parser.parse_args(arguments)
    found: dict[int, list[Any]] = {}
    print(f"displacement of the head [m] within {options.iterations} iterations")
    print(f"points  {'  '.join(f'seed {seed}' for seed in SEEDS)}  DiffTaichi's")
    for points in ROBOTS:
        found[points] = [walk(points, seed, iterations=options.iterations, precision="f64") for seed in SEEDS]
        best = "  ".join(f"{curve.max():6.3f}" for curve in found[points])
        print(f"{points:6}  {best}  {DIFFTAICHI.get(points, '')}", flush=True)
    draw(found, options.picture)
    print(options.picture)


if __name__ == "__main__":
    main()
