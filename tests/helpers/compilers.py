"""The kernel compiler that the tests do not run under, if it is installed."""

import pytest

from simphys.autograd import runtime
from simphys.autograd.kernels.compiler import installed

OTHER = "taichi" if runtime.compiler == "quadrants" else "quadrants"
needs_other = pytest.mark.skipif(not installed(OTHER), reason=f"the other compiler, {OTHER}, is not installed")
