"""Advice on unknowns that are asked for where none can be: which lines of [unknowns] seek the same."""

from __future__ import annotations

from collections.abc import Collection

from simphys.scenefile.section import Key

UNKNOWN = "unknown"
"""The value that asks for a number to be sought."""
BEGIN = (
    "The moment at which the motion begins is sought as one delay of all channels: keep a number here, and add the "
    'lines [unknowns.late], parameter = "channel_delay", tied = true, scale = 0.1; with several experiments also '
    'experiments = "each".'
)
OF_CHANNEL = ("gain", "offset", "delay")
OF_CAMERA = ("scale", "rotation", "origin", "focal", "position")
OF_NOISE = ("sigma", "correlation_time")
OTHER = (
    "Give the number to start from, and seek it by [unknowns.NAME], with parameter and entries, if it is a parameter."
)


def advise_number(key: Key) -> str:
    """Advise what to write in place of "unknown" where a number is expected."""
    last = key[-1]
    if key[:2] == ("observations", "begin"):
        return BEGIN
    if "channels" in key and last in OF_CHANNEL:
        place = next(part for part in key if isinstance(part, int))
        return _advise(f"channel_{last}", f", entries = [{place}]")
    if "camera" in key and last in OF_CAMERA:
        return _advise(f"camera_{last}")
    return "Give a number." if key[0] in ("observations", "time", "optimizer", "loss", "runtime") else OTHER


def advise_parameter(name: str, known: Collection[str]) -> str:
    """Advise what to write in place of a parameter of [unknowns] that the scene does not have; empty if unclear."""
    own = name.rpartition(".")[2]
    bare = own.removeprefix("channel_").removeprefix("camera_")
    if own == "begin":
        return BEGIN.replace("keep a number here, and add", "write")
    if bare in OF_NOISE:
        return f'Write {bare} = "unknown" in its channel, and no [unknowns]: fits estimate it from their residuals.'
    if own in OF_CHANNEL and f"channel_{own}" in known:
        return f"Name 'channel_{own}', with entries = [NUMBER OF THE CHANNEL]."
    if own.startswith("camera_") and bare in OF_CAMERA and "channel_gain" in known:
        kinds = ' "pinhole"' if bare in ("focal", "position") else ' "orthographic"' if bare == "scale" else ""
        return f"Add [observations.camera]{kinds and ' of the kind'}{kinds}, with {bare}."
    return ""


def _advise(parameter: str, entries: str = "") -> str:
    return f'Give the number to start from, and add the lines [unknowns.NAME], parameter = "{parameter}"{entries}.'
