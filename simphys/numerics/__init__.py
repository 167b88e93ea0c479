"""Element functions of kernels, forward, adjoint and tangent, that simulators share."""
