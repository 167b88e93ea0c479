"""Aim a throw by gradient, then simulate and draw it.

python scenes/mass_spring/throw.py [FOLDER]
"""

import sys
from pathlib import Path

import simphys
from simphys import optimize
from simphys.plot import all_figures
from simphys.scenefile import UnknownSection

folder = sys.argv[1] if len(sys.argv) > 1 else "runs/throw_script"
scene = simphys.load_scene(Path(__file__).with_suffix(".toml"))

# The unknowns of the file, or others: here each node's start velocity, as there.
aim = scene.objective({"velocity": UnknownSection(parameter="velocity", scale=5.0)})
result = optimize.minimize(
    aim, method="lbfgs", tolerance=1e-6, on_iteration=lambda at: print(f"{at.index:3} {at.loss:.3e}")
)

thrown = aim.scene_at(result.theta)
print("start velocity [m/s]:", thrown.state.velocity.data.round(2).tolist())
run = simphys.simulate(thrown, folder=folder, overwrite=True)
print("\n".join(map(str, all_figures(run, folder))))
