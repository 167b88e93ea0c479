"""Workloads: named settings with defaults, and a case that can be run forward and for its gradient."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simphys.autograd import Tensor, no_grad
from simphys.autograd.errors import InputError

from .initial_data import hash01

Settings = dict[str, float]
Gradients = dict[str, np.ndarray]
REFERENCE = Path(__file__).with_name("reference.json")


@dataclass(frozen=True)
class Case:
    """Workload with its settings applied, ready to run."""

    forward: Callable[[], float]
    """Function that computes the loss, without recording."""
    gradient: Callable[[], tuple[float, Gradients]]
    """Function that computes the loss and its gradient with respect to every parameter of the workload."""


def case_of(loss_of: Callable[[], Tensor], leaves: Mapping[str, Tensor]) -> Case:
    """Make the case of a loss on the graph, with respect to these leaves."""

    def forward() -> float:
        with no_grad():
            return loss_of().item()

    def gradient() -> tuple[float, Gradients]:
        for leaf in leaves.values():
            leaf.grad = None
        loss = loss_of()
        loss.backward()
        return loss.item(), {name: leaf.grad.numpy() for name, leaf in leaves.items() if leaf.grad is not None}

    return Case(forward, gradient)


@dataclass(frozen=True)
class Workload:
    """Exact discretization with a reference."""

    name: str
    settings: Settings
    """Settings that may be overridden, with their defaults."""
    elements: Callable[[Settings], int]
    """Function that counts the springs, particles or cells updated in a step."""
    build: Callable[[Settings, str], Case]
    """Function that makes a case from settings and mode ("nested" or "fused")."""

    def override(self, texts: Iterable[str]) -> Settings:
        """Apply overrides KEY=NUMBER to the settings. Errors: InputError for an unknown key or an invalid value."""
        settings = dict(self.settings)
        for text in texts:
            key, _, written = (part.strip() for part in text.partition("="))
            if key not in settings:
                near = difflib.get_close_matches(key, settings, n=1)
                hint = f"Did you mean {near[0]}?" if near else f"Choose one of {', '.join(settings)}."
                raise InputError(f"override {text!r}", f"{self.name} has this setting", key, hint)
            settings[key] = _number(text, written)
        return settings


def _number(text: str, written: str) -> float:
    try:
        value = tomllib.loads(f"value = {written}")["value"]
    except tomllib.TOMLDecodeError:
        value = written
    if type(value) not in (int, float):
        raise InputError(f"override {text!r}", "the value is a number", value, "Write it like time.steps=100.")
    return float(value) if type(value) is float else value


def summarize(gradients: Gradients) -> dict[str, dict[str, Any]]:
    """Summarize each gradient for comparison: norm, product with a fixed direction, and seven entries."""
    result = {}
    for position, (name, gradient) in enumerate(gradients.items()):
        flat = np.asarray(gradient, np.float64).ravel()
        direction = 2 * hash01(flat.size, 100 + position) - 1
        indices = [(flat.size // 7) * q + flat.size // 14 for q in range(7)]
        result[name] = {
            "size": flat.size,
            "norm": float(np.linalg.norm(flat)),
            "dot_hash": float(flat @ direction),
            "indices": indices,
            "entries": [float(flat[index]) for index in indices],
        }
    return result


def compare(name: str, loss: float, grads: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Compute relative errors of loss and summarized gradients against the f64 reference; empty without a reference."""
    reference = json.loads(REFERENCE.read_text()).get(name)
    if reference is None:
        return {}
    errors: dict[str, Any] = {"loss_rel": abs(loss - reference["loss"]) / abs(reference["loss"])}
    for parameter, expected in reference["grads"].items():
        found = grads[parameter]
        deviation = np.abs(np.subtract(found["entries"], expected["entries"])).max()
        errors[parameter] = {
            "norm_rel": abs(found["norm"] - expected["norm"]) / expected["norm"],
            "entry_err_over_rms": float(deviation / (expected["norm"] / np.sqrt(expected["size"]))),
        }
    return errors
