"""A network with one hidden layer, for controllers: y = tanh(W2 tanh(W1 x + b1) + b2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..autograd import Tensor, tensor
from ..autograd.errors import InputError
from ..autograd.ops import tanh
from ..simulator import Array, Record, Shape
from ..substep.draft import Symbol
from .layer import Layer
from .linear import Linear


@dataclass(frozen=True)
class Weights(Record):
    """Parameters of a network. The Params of a simulator with a controller have fields of these names."""

    hidden_weight: Tensor
    """Weights W1 of the hidden layer, [hidden, inputs]."""
    hidden_bias: Tensor
    """Biases b1 of the hidden layer, [hidden]."""
    output_weight: Tensor
    """Weights W2 of the output layer, [outputs, hidden]."""
    output_bias: Tensor
    """Biases b2 of the output layer, [outputs]."""


NAMES = Weights.names()


@dataclass(frozen=True)
class Network:
    """A network, given by the sizes of its layers; call it to evaluate it."""

    inputs: int
    hidden: int
    outputs: int

    def __post_init__(self) -> None:
        for name in ("inputs", "hidden", "outputs"):
            if getattr(self, name) < 1:
                raise InputError(f"Network.{name}", "at least 1", getattr(self, name), "Give every layer a unit.")

    def shapes(self) -> dict[str, Shape]:
        """Shape of each field of Weights."""
        return {
            "hidden_weight": (self.hidden, self.inputs),
            "hidden_bias": (self.hidden,),
            "output_weight": (self.outputs, self.hidden),
            "output_bias": (self.outputs,),
        }

    def initial_arrays(self, seed: int) -> dict[str, Array]:
        """Random weights, uniform within sqrt(6 / (rows + columns)); zero biases (Glorot and Bengio 2010, eq. 16)."""
        random = np.random.default_rng(seed)

        def draw(shape: Shape) -> Array:
            within = np.sqrt(6 / sum(shape))
            return random.uniform(-within, within, shape)

        return {name: draw(shape) if len(shape) == 2 else np.zeros(shape) for name, shape in self.shapes().items()}

    def initial(self, seed: int) -> Weights:
        """Random weights as Tensors, see `initial_arrays`."""
        return Weights(**{name: tensor(values) for name, values in self.initial_arrays(seed).items()})

    def __call__(self, weights: Any, x: Any) -> Any:
        """Compute the outputs [..., outputs] in (-1, 1) for x [..., inputs]; `weights` has the fields of Weights.

        While a step is read, x is a symbol, and the layers are declared sub-steps.
        """
        if isinstance(x, Symbol):
            hidden = Layer.apply(None, weights.hidden_weight, weights.hidden_bias, x)
            return Layer.apply(None, weights.output_weight, weights.output_bias, hidden)
        hidden = tanh(Linear.apply(weights.hidden_weight, weights.hidden_bias, x))
        return tanh(Linear.apply(weights.output_weight, weights.output_bias, hidden))
