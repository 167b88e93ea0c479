"""The map from the optimizer's vector theta to parameters, initial state and controls.

An unknown's natural value is y = scale * theta (linear) or y = scale * exp(theta) (log); with the default scale,
|start|, theta starts at +-1 or at 0. Of a smooth unknown theta is replaced by

    theta_start + G (theta - theta_start)        G a Gaussian over the field, reflected at its sides

so that a search takes smooth steps, as in full waveform inversion (Tarantola 1984: G is a prior covariance).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simphys.autograd import Tensor, ops
from simphys.scenefile import UnknownSection, flat_entries, start_values, validate_unknowns
from simphys.scenefile.unknown_entries import truth_values

from .smoothing import Smooth, Smoothing

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Block:
    """One unknown: its slice of theta and where its values go."""

    label: str
    parameter: str
    entries: Array
    """Flat indices in the field, [count]."""
    expand: Array | None
    """For tied entries or rows: index of theta's value for each entry."""
    where: slice
    scale: Array
    log: bool
    unit: str
    smooth: Smoothing | None = None


class Unknowns:
    """All unknowns of a scene and the transform between theta and natural values."""

    def __init__(self, unknowns: Mapping[str, UnknownSection], values: Mapping[str, Array]) -> None:
        """`values`: what `Scene.values` gives, in full. Errors: ConfigError for what does not fit."""
        validate_unknowns(unknowns, values)
        self.values = dict(values)
        self.blocks: list[Block] = []
        self.labels: list[str] = []
        starts, lowers, uppers, end = [], [], [], 0
        for label, unknown in unknowns.items():
            natural = start_values(unknown, values)
            entries = flat_entries(unknown, values[unknown.parameter].shape)
            scale = (
                np.full(natural.size, unknown.scale) if unknown.scale else np.where(natural == 0, 1.0, np.abs(natural))
            )
            log = unknown.transform == "log"
            shape = values[unknown.parameter].shape
            block = Block(
                label=label,
                parameter=unknown.parameter,
                entries=entries,
                expand=np.arange(entries.size) % natural.size if unknown.tied else None,
                where=slice(end, end + natural.size),
                scale=scale,
                log=log,
                unit=unknown.unit,
            )
            if unknown.smooth is not None:
                block = replace(block, smooth=Smoothing(shape, entries, unknown.smooth, to_theta(block, natural)))
            end += natural.size
            self.blocks.append(block)
            self.labels += [label] if natural.size == 1 else [f"{label}[{i}]" for i in range(natural.size)]
            starts.append(to_theta(block, natural))
            lowers.append(to_theta(block, np.full(natural.size, unknown.bounds[0])))
            uppers.append(to_theta(block, np.full(natural.size, unknown.bounds[1])))
        join = np.concatenate if starts else lambda parts: np.zeros(0)
        self.start, self.lower, self.upper = join(starts), join(lowers), join(uppers)
        truths = {label: truth_values(unknown, values) for label, unknown in unknowns.items()}
        self.truths = {label: truth for label, truth in truths.items() if truth is not None}
        """Known values by label, where a scene tells them."""

    @property
    def units(self) -> list[str]:
        """The unit of each element of theta."""
        return [block.unit for block in self.blocks for _ in range(block.where.stop - block.where.start)]

    def natural(self, theta: Array) -> Array:
        """The values in their own units, [p]."""
        return np.concatenate([to_natural(block, _smoothed(block, theta)) for block in self.blocks])

    def natural_derivative(self, theta: Array) -> Array:
        """d(natural)/d(theta), [p]: what turns a standard error of theta into one of the value; NaN if smooth."""
        made = [to_natural(b, theta[b.where]) if b.log else b.scale for b in self.blocks]
        return np.concatenate([d * np.nan if b.smooth else d for b, d in zip(self.blocks, made, strict=True)])

    def fields(self, theta: Tensor) -> dict[str, Tensor]:
        """The fields that contain unknowns, of parameters, state or controls, in full shape, as functions of theta."""
        made: dict[str, Tensor] = {}
        for block in self.blocks:
            part = theta[block.where]
            if block.smooth is not None:
                part = Smooth.apply(block.smooth, part)
            scale = block.scale.astype(theta.dtype)
            value = ops.exp(part) * scale if block.log else part * scale
            if block.expand is not None:
                value = value[block.expand]
            base = made.get(block.parameter)
            flat = self.values[block.parameter].reshape(-1) if base is None else ops.reshape(base, (-1,))
            shape = self.values[block.parameter].shape
            made[block.parameter] = ops.reshape(ops.put(flat, block.entries, value), shape)
        return made


def _smoothed(block: Block, theta: Array) -> Array:
    """The block's part of theta, as its natural values are made from it."""
    part = theta[block.where]
    return part if block.smooth is None else block.smooth.around_start(part)


def to_theta(block: Block, natural: Array) -> Array:
    """The optimizer's coordinates of values in their own unit; -inf for the logarithm of what is not positive."""
    if not block.log:
        return natural / block.scale
    with np.errstate(divide="ignore", invalid="ignore"):  # an open or zero lower bound is -inf
        return np.where(natural > 0, np.log(np.maximum(natural, 0) / block.scale), -np.inf)


def to_natural(block: Block, theta: Array) -> Array:
    """The reverse of `to_theta`."""
    return block.scale * np.exp(theta) if block.log else block.scale * theta
