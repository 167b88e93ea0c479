"""The air track from a script: one gradient by hand, then the whole fit.

python scenes/mass_spring/air_track.py [FOLDER]
"""

import sys
from pathlib import Path

import simphys
from simphys.plot import all_figures

folder = sys.argv[1] if len(sys.argv) > 1 else "runs/air_track_script"
scene = simphys.load_scene(Path(__file__).with_suffix(".toml"))

# Every parameter, and the start state, is a Tensor that can be asked for its gradient.
scene.params.stiffness.requires_grad_()
scene.state.velocity.requires_grad_()
loss = scene.loss(scene.rollout())
loss.backward()
print(f"loss {float(loss):.6g} at the start")
print("d loss / d stiffness", scene.params.stiffness.grad)
print("d loss / d velocity", scene.state.velocity.grad)

# What is unknown, and how to search for it, stands in the scene.
fit = simphys.identify(scene, folder=folder, overwrite=True)
for row in fit.unknowns:
    print(f"{row.label:12} {row.value:10.4f} +- {row.standard_error:.4f} {row.unit}")
print("\n".join(map(str, all_figures(fit.recording, folder))))
