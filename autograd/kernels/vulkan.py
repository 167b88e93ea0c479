"""Vulkan's devices on this machine, by its loader's C interface: a driver may compute on the CPU, in software.

Structures are those of the Vulkan 1.0 specification (Khronos Group), vkCreateInstance to vkGetPhysicalDeviceProperties.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools

CPU_TYPE = 4
"""VK_PHYSICAL_DEVICE_TYPE_CPU"""
_CREATE_INSTANCE = 1
"""VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO"""
_PROPERTIES_BYTES = 4096
"""More than VkPhysicalDeviceProperties takes: 824 bytes."""
_NAME_AT, _NAME_BYTES = 20, 256
"""Place of the name there, after five numbers of 32 bits, of which the last is the type."""


class _InstanceInfo(ctypes.Structure):
    """VkInstanceCreateInfo, with nothing asked for."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("flags", ctypes.c_uint32),
        ("application", ctypes.c_void_p),
        ("layer_count", ctypes.c_uint32),
        ("layers", ctypes.c_void_p),
        ("extension_count", ctypes.c_uint32),
        ("extensions", ctypes.c_void_p),
    ]


@functools.cache
def devices() -> tuple[tuple[str, int], ...]:
    """Name and type of each device; none without a loader."""
    name = ctypes.util.find_library("vulkan")
    if name is None:
        return ()
    library = ctypes.CDLL(name)
    instance = ctypes.c_void_p()
    if library.vkCreateInstance(ctypes.byref(_InstanceInfo(type=_CREATE_INSTANCE)), None, ctypes.byref(instance)):
        return ()
    try:
        count = ctypes.c_uint32()
        library.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), None)
        found = (ctypes.c_void_p * count.value)()
        library.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), found)
        return tuple([_describe(library, device) for device in found[: count.value]])
    finally:
        library.vkDestroyInstance(instance, None)


def software_driver() -> str | None:
    """Name of a driver that computes on the CPU, where there is no other; else None."""
    found = devices()
    if found and all([kind == CPU_TYPE for _, kind in found]):
        return found[0][0]
    return None


def _describe(library: ctypes.CDLL, device: int | None) -> tuple[str, int]:
    properties = ctypes.create_string_buffer(_PROPERTIES_BYTES)
    library.vkGetPhysicalDeviceProperties(ctypes.c_void_p(device), properties)
    kind = int.from_bytes(properties.raw[_NAME_AT - 4 : _NAME_AT], "little")
    name = properties.raw[_NAME_AT : _NAME_AT + _NAME_BYTES].split(b"\0", 1)[0]
    return name.decode(errors="replace"), kind
