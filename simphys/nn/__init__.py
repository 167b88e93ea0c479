"""Neural controllers, small and plain: linear layers and tanh as Functions, weights as one parameter tree.

    network = Network(inputs=10, hidden=32, outputs=4)
    weights = network.initial(seed=0)
    action = network(weights, x)          # tanh(W2 tanh(W1 x + b1) + b2)

Weights are Tensors of a Record, and so go wherever parameters go: into a simulator's Params, into unknowns, to disk.
"""

from ..autograd.ops import tanh
from .controller import Controller
from .linear import Linear
from .network import Network, Weights
from .pattern import pattern

__all__ = ["Controller", "Linear", "Network", "Weights", "pattern", "tanh"]
