"""Layers of a replay as objects of the viewer: made once, and moved to any frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb

from simphys.plot import style
from simphys.report.packing import decode_bytes, unpack
from simphys.view.world import World

Array = np.ndarray[Any, Any]
Show = Callable[[int], None]
"""Function that moves a layer to a frame."""
GROUND, TABLE, HELD, INK, MEASURED = "#DDDAD2", "#CFE3D3", "#B8B8B8", "#444444", "#D55E00"
BEHIND = 0.02
"""Distance of the ground of a plane behind its bodies."""


class Layers:
    """Layers of a run. `colour` names what colours its points; `height` lifts the cells of a grid by their values."""

    def __init__(self, scene: Any, name: str, replay: dict[str, Any], world: World) -> None:
        self._scene, self._name, self._world, self._replay = scene, name, world, replay
        self.colour = ""
        self.height = 0.0
        self.colours: list[str] = []
        """Names of what can colour the points and springs, or of the fields on a grid."""
        self.ranges: dict[str, str] = {}
        """Values between which the colours lie, with their unit."""
        self._ramps = {ramp: decode_bytes(text).reshape(-1, 3) for ramp, text in replay["ramps"].items()}
        self._palette = np.array([to_rgb(each) for each in replay["palette"]])
        self._shows: list[Show] = []
        self._places: dict[str, Array] = {}
        for layer in replay["layers"]:
            if layer["kind"] in ("points", "rings", "trail", "shapes"):
                self._places[layer["name"]] = world(unpack(layer["place"]))
            if layer["kind"] == "picture":
                self.colours += [layer["name"]]
        self._of_springs = {
            each["name"] for layer in replay["layers"] if layer["kind"] == "lines" for each in layer.get("colours", [])
        }
        """Names of colours of springs; bodies do not hide them."""
        for layer in sorted(replay["layers"], key=lambda layer: layer["kind"] != "points"):  # springs come last
            given = [each for each in layer.get("colours", []) if "low" in each]
            self.colours += [each["name"] for each in layer.get("colours", [])]
            self.ranges |= {each["name"]: f"{each['low']:.3g} to {each['high']:.3g} {each['unit']}" for each in given}
        for number, layer in enumerate(replay["layers"]):
            show = getattr(self, f"_{layer['kind']}")(f"{name}/{number}_{layer['name']}".replace(" ", "_"), layer)
            self._shows += [show] if show is not None else []

    def show(self, frame: int) -> None:
        """Move everything to a frame."""
        for each in self._shows:
            each(frame)

    def has(self, kind: str) -> bool:
        """True if there is a layer of this kind."""
        return any(layer["kind"] == kind for layer in self._replay["layers"])

    @property
    def places(self) -> Array | None:
        """Places of the bodies in the world, [frames, bodies, 3]; None for a run of fields."""
        found = [layer["name"] for layer in self._replay["layers"] if layer["kind"] in ("points", "shapes")]
        return self._places[found[-1]] if found else None

    def _points(self, name: str, layer: dict[str, Any]) -> Show:
        places, world = self._places[layer["name"]], self._world
        given = layer["colours"]
        values = {each["name"]: unpack(each["values"]) for each in given if "values" in each}
        count = places.shape[1]
        size = world.size(layer["size"]) if layer.get("size") else 0.06 if count <= 30 else 0.03
        if any(each["kind"] == "lines" for each in self._replay["layers"]):
            size = min(size, 0.05) if count <= 30 else 0.3 * size
        if "radius" in layer:
            size = 2 * world.size(float(np.mean(layer["radius"])))
        plain = np.tile(to_rgb(style.COLORS[0]), (count, 1))
        plain[layer.get("pinned", [])] = to_rgb(INK)
        look: dict[str, Any] = {"point_size": size, "point_shape": "circle", "precision": "float32"}
        handle = self._scene.add_point_cloud(name, places[0].astype(np.float32), _bytes(plain), **look)

        def show(frame: int) -> None:
            handle.points = places[frame].astype(np.float32)
            handle.point_size = 0.3 * size if self.colour in self._of_springs else size
            for each in given:
                if each["name"] == self.colour:
                    handle.colors = _bytes(self._tint(each, values, frame))
                    return
            handle.colors = _bytes(plain)

        return show

    def _tint(self, colour: dict[str, Any], values: dict[str, Array], frame: int) -> Array:
        if "group" in colour:
            return self._palette[np.array(colour["group"]) % len(self._palette)]
        low, high = (np.log10(colour[end]) if colour["log"] else colour[end] for end in ("low", "high"))
        part = (values[colour["name"]][frame] - low) / ((high - low) or 1.0)
        return self._ramps[colour.get("ramp", "viridis")][np.clip(255 * part, 0, 255).astype(int)] / 255

    def _lines(self, name: str, layer: dict[str, Any]) -> Show:
        places, pairs = self._places[layer["of"]], unpack(layer["pairs"]).round().astype(int)
        thick = 0.02 if layer.get("thick") else 0.006
        handle = self._segments(name, places[0][pairs], "#777777", thick)
        given = {each["name"]: each for each in layer.get("colours", [])}
        values = {each: unpack(given[each]["values"]) for each in given}
        plain = np.broadcast_to(to_rgb("#777777"), (len(pairs), 3))

        def show(frame: int) -> None:
            handle.points = places[frame][pairs].astype(np.float32)
            if given:
                colours = self._tint(given[self.colour], values, frame) if self.colour in given else plain
                handle.colors = np.repeat(_bytes(colours)[:, None], 2, axis=1)

        return show

    def _trail(self, name: str, layer: dict[str, Any]) -> Show:
        places = self._places[layer["name"]]
        pieces = np.stack([places[:-1], places[1:]], axis=2)  # [frames - 1, bodies, 2, 3]
        still = np.zeros((1, 2, 3))
        handle = self._segments(name, still, style.COLORS[1], 0.006)

        def show(frame: int) -> None:
            handle.points = (pieces[:frame].reshape(-1, 2, 3) if frame else still + places[0, 0]).astype(np.float32)

        return show

    def _rings(self, name: str, layer: dict[str, Any]) -> Show:
        places, shown = self._places[layer["name"]], unpack(layer["shown"]) > 0.5
        look: dict[str, Any] = {"point_size": 0.045, "point_shape": "diamond", "precision": "float32"}
        colour = _bytes(np.array(to_rgb(MEASURED)))
        handle = self._scene.add_point_cloud(name, places[0].astype(np.float32), colour, **look)

        def show(frame: int) -> None:
            seen = places[frame][shown[frame]]
            handle.visible = len(seen) > 0
            if len(seen):
                handle.points = seen.astype(np.float32)

        return show

    def _shapes(self, name: str, layer: dict[str, Any]) -> Show:
        places, turns = self._places[layer["name"]], unpack(layer["turn"])
        frames = []
        for number, shape in enumerate(layer["shapes"]):
            frame = self._scene.add_frame(f"{name}/{number}", show_axes=False)
            colour = HELD if shape["colour"] < 0 else style.COLORS[shape["colour"] % len(style.COLORS)]
            for place, part in enumerate(shape["parts"]):
                points = self._world.shape(np.array(part["points"]))
                self._mesh(f"{name}/{number}/{place}", points, part["faces"], colour)
                outline = [(face[k - 1], face[k]) for face in part["faces"] for k in range(len(face))]
                outline = outline if len(part["faces"]) <= 6 else []
                outline += [tuple(part["mark"])] if "mark" in part else []
                if outline:
                    self._segments(f"{name}/{number}/{place}_outline", points[np.array(outline)], INK, 0.006)
            frames.append(frame)

        def show(row: int) -> None:
            for frame, place, turn in zip(frames, places[row], turns[row], strict=True):
                frame.position = place
                frame.wxyz = self._world.rotation(turn)

        return show

    def _flat(self, name: str, layer: dict[str, Any]) -> None:
        corners = np.array(layer["points"], float)
        if self._world.dim == 2:  # what lies outside of the picture makes it small
            low, high = np.array(self._replay["low"]), np.array(self._replay["high"])
            reach = 0.1 * (high - low).max()
            corners = np.clip(corners, low - reach, high + reach)
        places = self._world(corners, BEHIND)
        self._mesh(name, places, [list(range(len(places)))], TABLE if layer["look"] == "table" else GROUND)

    def _box(self, name: str, layer: dict[str, Any]) -> None:
        ends = np.array(layer["points"], float)
        dim = ends.shape[1]
        corners = np.array([[ends[at >> axis & 1, axis] for axis in range(dim)] for at in range(1 << dim)])
        edges = [(at, at | 1 << axis) for at in range(1 << dim) for axis in range(dim) if not at >> axis & 1]
        self._segments(name, self._world(corners)[np.array(edges)], "#999999", 0.006)

    def _goals(self, name: str, layer: dict[str, Any]) -> None:
        around = np.linspace(0, 2 * np.pi, 33)
        lines = []
        for goal in layer["points"]:
            radius = goal["radius"] or 0.01 * float(np.ptp([self._replay["low"], self._replay["high"]]))
            circle = self._world(np.array(goal["place"]) + radius * np.stack([np.cos(around), np.sin(around)], axis=1))
            lines.append(np.stack([circle[:-1], circle[1:]], axis=1))
        self._segments(name, np.concatenate(lines), INK, 0.01)

    def _outline(self, name: str, layer: dict[str, Any]) -> None:
        for number, polygon in enumerate(layer["polygons"]):
            places = self._world(np.array(polygon), -BEHIND)
            self._segments(f"{name}/{number}", np.stack([places[:-1], places[1:]], axis=1), INK, 0.012)

    def _curve(self, name: str, layer: dict[str, Any]) -> Show:
        across, values = np.array(layer["across"], float), unpack(layer["values"])
        rows = self._world(np.stack([np.broadcast_to(across, values.shape), values], axis=-1))
        handle = self._segments(name, np.stack([rows[0, :-1], rows[0, 1:]], axis=1), style.COLORS[0], 0.012)
        low, high = (np.array(self._replay[end], float) for end in ("low", "high"))
        corners = np.array([low, [high[0], low[1]], high, [low[0], high[1]]])
        self._segments(f"{name}_frame", self._world(np.stack([corners, np.roll(corners, -1, 0)], axis=1)), HELD, 0.006)

        def show(frame: int) -> None:
            handle.points = np.stack([rows[frame, :-1], rows[frame, 1:]], axis=1).astype(np.float32)

        return show

    def _picture(self, name: str, layer: dict[str, Any]) -> Show:
        values = unpack(layer["values"])
        counts = values.shape[1:]
        first, last = np.array(layer["low_corner"]), np.array(layer["high_corner"])
        middles = [f + (np.arange(n) + 0.5) * (e - f) / n for f, e, n in zip(first, last, counts, strict=True)]
        places = self._world(np.stack(np.meshgrid(*middles, indexing="ij"), axis=-1).reshape(-1, 2))
        table, low, span = self._ramps[layer["ramp"]], layer["low"], layer["high"] - layer["low"]
        look: dict[str, Any] = {"point_shape": "square", "precision": "float32", "point_shading": "flat"}
        size = 1.02 * self._world.size(float(((last - first) / np.array(counts)).max()))
        start = np.full((len(places), 3), 200, np.uint8)
        handle = self._scene.add_point_cloud(name, places.astype(np.float32), start, point_size=size, **look)

        def show(frame: int) -> None:
            chosen = self.colour if self.colour in self.colours else self.colours[0]
            handle.visible = layer["name"] == chosen
            if not handle.visible:
                return
            part = np.clip((values[frame].reshape(-1) - low) / span, 0, 1)
            handle.colors = table[(255 * part).astype(int)]
            lifted = places.copy()
            lifted[:, 1] -= self.height * part  # towards the viewer
            handle.points = lifted.astype(np.float32)

        return show

    def _segments(self, name: str, lines: Array, colour: str, thickness: float) -> Any:
        look: dict[str, Any] = {"thickness": thickness}
        return self._scene.add_line_segments(name, lines.astype(np.float32), _bytes(np.array(to_rgb(colour))), **look)

    def _mesh(self, name: str, points: Array, faces: list[list[int]], colour: str) -> None:
        fan = [(face[0], face[k], face[k + 1]) for face in faces for k in range(1, len(face) - 1)]
        look: dict[str, Any] = {
            "flat_shading": True,
            "side": "double",
            "color": to_rgb(colour),
        }
        self._scene.add_mesh_simple(name, points.astype(np.float32), np.array(fan, np.uint32), **look)


def _bytes(colours: Array) -> Array:
    return np.round(255 * np.asarray(colours, float)).astype(np.uint8)
