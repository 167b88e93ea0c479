"""The pucks from a script: one gradient by hand, then the whole fit.

python scenes/charges/find_charges.py [FOLDER]
"""

import sys
from pathlib import Path

import simphys
from simphys.plot import all_figures

folder = sys.argv[1] if len(sys.argv) > 1 else "runs/find_charges_script"
scene = simphys.load_scene(Path(__file__).with_suffix(".toml"))

# Every parameter, and the start state, is a Tensor that can be asked for its gradient.
scene.params.charge.requires_grad_()
loss = scene.loss(scene.rollout())
loss.backward()
print(f"loss {float(loss):.6g} at the start")
print("d loss / d charge", scene.params.charge.grad)

# What is unknown, and how to search for it, stands in the scene.
fit = simphys.identify(scene, folder=folder, overwrite=True)
for row in fit.unknowns:
    print(f"{row.label:16} {row.value:10.4f} +- {row.standard_error:.4f} {row.unit}")
print("\n".join(map(str, all_figures(fit.recording, folder))))
