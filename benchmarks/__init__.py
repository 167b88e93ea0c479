"""Speed and memory: workloads in their exact discretization, small costs of the engine, other programs beside."""
