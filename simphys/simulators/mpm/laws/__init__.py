"""Constitutive laws, one file each.

Each module has
- PARAMETERS: the fields of Params that it uses, COEFFICIENTS: the names of the particle coefficients that its kernels
  take instead, and `coefficients`, `adj_coefficients`, `jvp_coefficients`, which convert arrays of the former;
- HIDDEN: true if it has a hidden variable q, stored in `State.plastic`, and REST: q at rest;
- `functions(real, dim)` with `respond`, `adj` and `jvp`: from the trial deformation gradient F, q and coefficients c
  to the new F, the new q and the Kirchhoff stress tau = P F^T [Pa] of one particle.
"""

from types import ModuleType

from . import drucker_prager, fixed_corotated, fluid, hencky, neo_hookean, snow, von_mises

LAWS: dict[str, ModuleType] = {
    "fixed_corotated": fixed_corotated,
    "neo_hookean": neo_hookean,
    "fluid": fluid,
    "hencky": hencky,
    "von_mises": von_mises,
    "drucker_prager": drucker_prager,
    "snow": snow,
}
"""Laws by name."""
LAW_PARAMETERS = (
    "young_modulus",
    "poisson_ratio",
    "bulk_modulus",
    "yield_stress",
    "friction_angle",
    "hardening",
    "critical_compression",
    "critical_stretch",
)
"""Fields of Params that laws use, in the order of the inputs of `Coefficients`; a body has keys of the same names."""
