"""NVIDIA's devices on this machine, by the C interface of their driver."""

from __future__ import annotations

import ctypes
import functools
import sys

_NAME_BYTES = 256


@functools.cache
def devices() -> tuple[str, ...]:
    """Name of each device, with the driver's version; none without a driver."""
    try:
        library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return ()
    version, count = ctypes.c_int(), ctypes.c_int()
    if library.cuInit(0) or library.cuDriverGetVersion(ctypes.byref(version)):
        return ()
    library.cuDeviceGetCount(ctypes.byref(count))
    names = []
    for place in range(count.value):
        device, name = ctypes.c_int(), ctypes.create_string_buffer(_NAME_BYTES)
        library.cuDeviceGet(ctypes.byref(device), place)
        library.cuDeviceGetName(name, _NAME_BYTES, device)
        names.append(f"{name.value.decode(errors='replace')}, driver {version.value}")
    return tuple(names)
