"""Small neural controllers: linear layers and tanh as Functions, with the weights in a single Record.

    network = Network(inputs=10, hidden=32, outputs=4)
    weights = network.initial(seed=0)
    action = network(weights, x)          # tanh(W2 tanh(W1 x + b1) + b2)

The weights are Tensors of a Record, so they can be used wherever parameters can: in a simulator's Params, as unknowns,
in recordings.
"""

from ..autograd.ops import tanh
from .controller import Controller
from .linear import Linear
from .network import Network, Weights
from .pattern import pattern

__all__ = ["Controller", "Linear", "Network", "Weights", "pattern", "tanh"]
