"""The undivided curvature in the wave equation: dx^2 laplace u plus the terms of the absorbing layers.

    k_i = sum over axes of sum_m c_m u_{i+m} + extra_i

c are the coefficients of `numerics.stencil`, of order 2, 4 or 8. Beyond a side u is extended oddly, evenly,
periodically or by zero (see `numerics.boundary`), such that the matrix of the sum is symmetric. Adjoint, for g = adj_k:

    adj_u_i = sum over axes of sum_m c_m g_{i+m} + adj_extra_i          (adj_extra: see `layer`)

with g extended as u is. Sources: Fornberg 1988; Pasalic and McGarry 2010.
"""

from __future__ import annotations

from simphys.autograd import Tensor
from simphys.substep import weighted

from .layer import CurvatureMemory, SlopeMemory, profiles
from .model import Wave

Laplacian = weighted("laplacian", of="height", by="laplacian", rows="cells", columns="cells")
LayerSlope = weighted("slope", of="height", by="layer_slope", rows="layer_cells", columns="cells")
LayerBend = weighted("bend", of="height", by="layer_bend", rows="layer_cells", columns="cells")
MemorySlope = weighted("memory_slope", of="slope_memory", by="memory_slope", rows="layer_cells", columns="layer_cells")
OntoCells = weighted("extra", of="layer_extra", by="cells_of_layers", rows="cells", columns="layer_cells")


def compute_curvature(
    model: Wave, height: Tensor, slope_memory: Tensor, curvature_memory: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute k [*cells] and the next slope_memory and curvature_memory [layer_cells]. All of it is linear."""
    curvature = Laplacian.apply(model, height)
    if not model.slabs:
        return curvature, slope_memory, curvature_memory
    slope_memory = SlopeMemory.apply(model, slope_memory, LayerSlope.apply(model, height), *profiles(model))
    curvature_memory, extra = CurvatureMemory.apply(
        model,
        curvature_memory,
        LayerBend.apply(model, height),
        MemorySlope.apply(model, slope_memory),
        *profiles(model),
    )
    return curvature + OntoCells.apply(model, extra), slope_memory, curvature_memory
