"""The map from the optimizer's vector theta to parameters, initial state and controls.

An unknown's natural value is y = scale * theta (linear) or y = scale * exp(theta) (log); with the default scale,
|start|, theta starts at +-1 or at 0. Of a smooth unknown theta is replaced by

    theta_start + G (theta - theta_start)        G a Gaussian over the field, reflected at its sides

so that a search takes smooth steps, as in full waveform inversion (Tarantola 1984: G is a prior covariance).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
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
    experiment: int | None = None
    """Number of the experiment that alone has this value; None: all have it."""
    unknown: str = ""
    """Label of the unknown in the scene file."""


class Unknowns:
    """All unknowns of a scene and the transform between theta and natural values."""

    def __init__(
        self,
        unknowns: Mapping[str, UnknownSection],
        values: Mapping[str, Array],
        experiments: Sequence[tuple[str, Mapping[str, Array]]] = (),
    ) -> None:
        """`values`: what `Scene.values` gives, in full; `experiments`: names and values of several.

        Errors: ConfigError for what does not fit.
        """
        validate_unknowns(unknowns, values)
        self.values = dict(values)
        self.of_experiments = [dict(own) for _, own in experiments]
        self.blocks: list[Block] = []
        self.truths: dict[str, Array] = {}
        """Known values by label, where a scene tells them."""
        starts, lowers, uppers, end = [], [], [], 0
        for label, name, experiment in _list_unknowns(unknowns, [name for name, _ in experiments]):
            unknown = unknowns[name]
            values = self.values if experiment is None else self.of_experiments[experiment]
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
                experiment=experiment,
                unknown=name,
            )
            if unknown.smooth is not None:
                block = replace(block, smooth=Smoothing(shape, entries, unknown.smooth, to_theta(block, natural)))
            end += natural.size
            self.blocks.append(block)
            starts.append(to_theta(block, natural))
            lowers.append(to_theta(block, np.full(natural.size, unknown.bounds[0])))
            uppers.append(to_theta(block, np.full(natural.size, unknown.bounds[1])))
            if (truth := truth_values(unknown, values)) is not None:
                self.truths[label] = truth
        join = np.concatenate if starts else lambda parts: np.zeros(0)
        self.start, self.lower, self.upper = join(starts), join(lowers), join(uppers)

    @cached_property
    def labels(self) -> list[str]:
        """Name of each element of theta."""
        sizes = [(block.label, block.where.stop - block.where.start) for block in self.blocks]
        return [label if size == 1 else f"{label}[{at}]" for label, size in sizes for at in range(size)]

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

    def natural_change(self, theta: Array, change: Array) -> Array:
        """Changes of the values in their own units, [p], by a small change of theta [p]."""
        made = []
        for block in self.blocks:
            own = change[block.where]
            own = own if block.smooth is None else block.smooth.averaged(own)
            made.append(own * _slope(block, theta))
        return np.concatenate(made)

    def natural_deviation(self, theta: Array, deviation: Array) -> Array:
        """Standard deviations [p] of the values in their own units, of independent theta with these deviations [p].

        Those of a smooth unknown are the same for all of its entries.
        """
        made = []
        for block in self.blocks:
            own = deviation[block.where] * (1.0 if block.smooth is None else block.smooth.deviation)
            made.append(own * np.abs(_slope(block, theta)))
        return np.concatenate(made)

    def fields(self, theta: Tensor) -> dict[str, Tensor]:
        """The fields that contain unknowns, of parameters, state or controls, in full shape, as functions of theta."""
        return self._fields(theta, self.values, None)

    def fields_of_experiments(self, theta: Tensor) -> list[dict[str, Tensor]]:
        """The same for each experiment; what all of them share is one Tensor."""
        own = {block.parameter for block in self.blocks if block.experiment is not None}
        for name in {block.parameter for block in self.blocks} - own:
            first = self.of_experiments[0][name]
            if any(not np.array_equal(values[name], first) for values in self.of_experiments[1:]):
                own.add(name)
        shared = self._fields(theta, self.of_experiments[0], None, without=own)
        return [
            {**shared, **self._fields(theta, values, place, without=set(shared))}
            for place, values in enumerate(self.of_experiments)
        ]

    def _fields(
        self, theta: Tensor, values: Mapping[str, Array], experiment: int | None, without: Collection[str] = ()
    ) -> dict[str, Tensor]:
        made: dict[str, Tensor] = {}
        for block in self.blocks:
            if block.parameter in without or block.experiment not in (None, experiment):
                continue
            part = theta[block.where]
            if block.smooth is not None:
                part = Smooth.apply(block.smooth, part)
            scale = block.scale.astype(theta.dtype)
            value = ops.exp(part) * scale if block.log else part * scale
            if block.expand is not None:
                value = value[block.expand]
            base = made.get(block.parameter)
            flat = values[block.parameter].reshape(-1) if base is None else ops.reshape(base, (-1,))
            shape = values[block.parameter].shape
            made[block.parameter] = ops.reshape(ops.put(flat, block.entries, value), shape)
        return made


def _list_unknowns(
    unknowns: Mapping[str, UnknownSection], names: Sequence[str]
) -> Iterator[tuple[str, str, int | None]]:
    """Iterate over labels in results and in the scene, and numbers of the experiment that each belongs to, or None."""
    for label, unknown in unknowns.items():
        if unknown.experiments == "each" and names:
            for place, name in enumerate(names):
                yield f"{label}, {name}", label, place
        else:
            yield label, label, None


def _smoothed(block: Block, theta: Array) -> Array:
    """The block's part of theta, as its natural values are made from it."""
    part = theta[block.where]
    return part if block.smooth is None else block.smooth.around_start(part)


def _slope(block: Block, theta: Array) -> Array:
    """Derivatives of the block's values by its part of theta, smoothed if it is."""
    return to_natural(block, _smoothed(block, theta)) if block.log else block.scale


def to_theta(block: Block, natural: Array) -> Array:
    """The optimizer's coordinates of values in their own unit; -inf for the logarithm of what is not positive."""
    if not block.log:
        return natural / block.scale
    with np.errstate(divide="ignore", invalid="ignore"):  # an open or zero lower bound is -inf
        return np.where(natural > 0, np.log(np.maximum(natural, 0) / block.scale), -np.inf)


def to_natural(block: Block, theta: Array) -> Array:
    """The reverse of `to_theta`."""
    return block.scale * np.exp(theta) if block.log else block.scale * theta
