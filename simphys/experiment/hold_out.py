"""Samples of a measurement that a fit does not see, so that their prediction is a test of the model."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from simphys.autograd.errors import InputError
from simphys.scenefile import ValidationSection

from .observe import Observations
from .observe_field import FieldObservations

Array = np.ndarray[Any, Any]
M = TypeVar("M", Observations, FieldObservations)


def choose_samples(count: int, section: ValidationSection) -> Array:
    """Mark the held-out ones of `count` samples in the order of time: the last ones, blocks spread over all, or all."""
    chosen = np.zeros(count, dtype=bool)
    if section.kind == "recording":
        return ~chosen
    if section.kind == "time":
        chosen[count - max(1, round(section.part * count)) :] = True
        return chosen
    edges = np.linspace(0, count, section.blocks + 1)
    for first, last in pairwise(edges):
        length = max(1, round(section.part * (last - first)))
        begin = int(first + (last - first - length) / 2)
        chosen[begin : begin + length] = True
    return chosen


def hold_out(seen: M, section: ValidationSection | None) -> M:
    """Move the weights of held-out samples from `weights` to `validation`. Errors: InputError if too few are left."""
    if section is None:
        return seen
    chosen = choose_samples(len(seen.times), section)
    axis = seen.axis if isinstance(seen, FieldObservations) else 0
    mask = chosen.reshape([-1 if place == axis else 1 for place in range(seen.weights.ndim)])
    weights, validation = np.where(mask, 0.0, seen.weights), np.where(mask, seen.weights, 0.0)
    for name, left in (("fit", weights), ("hold out", validation)):
        if not left.any() and section.kind != "recording":
            found = f"{chosen.sum()} of {len(chosen)} samples held out, none with a weight to {name}"
            remedy = "Change validation.part or validation.blocks, or leave [observations.validation] out."
            raise InputError(
                f"observations.validation of {seen.file}", "must leave samples on both sides", found, remedy
            )
    return replace(seen, weights=weights, validation=validation)


def held_out(seen: Observations | FieldObservations) -> bool:
    """Return True if samples are held out."""
    return seen.validation is not None and bool(seen.validation.any())


def held_out_only(seen: M) -> M:
    """Return the same measurement with the weights of the held-out samples alone; without any, of none."""
    if seen.validation is None:
        return replace(seen, weights=np.zeros_like(seen.weights))
    return replace(seen, weights=seen.validation, validation=None)
