"""One computation, three ways: a graph of small nodes, one combined node, and a hybrid; and what each costs.

A mass on a spring that hardens, x'' = -k x - x^3, takes 200 steps of semi-implicit Euler. Nested, each step makes its
own nodes. Combined, the rollout is one node that keeps its inputs and runs again for backward. As a hybrid, it is one
node, too, whose forward records the inner graph and whose backward uses it, behind an adjoint written by hand.

Run it:  python docs/examples/compose.py
"""

from simphys.autograd import Function, Tensor, combine, compare, compose, enable_grad, grad, ops, runtime, tensor

runtime.init(precision="f64")
STEPS, H = 200, 0.02


def kick(x: Tensor, v: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x, v - H * (k * x + x**3), k


def drift(x: Tensor, v: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x + H * v, v, k


def energy(x: Tensor, v: Tensor, k: Tensor) -> Tensor:
    return ops.sum(v * v + k * x * x + 0.5 * x**4) / 2


nested = compose(energy, *[drift, kick] * STEPS)  # the last one first, as one writes energy(drift(kick(x)))
combined = combine(*[kick, drift] * STEPS, energy)  # the first one first
kept = combine(*[kick, drift] * STEPS, energy, save="all")


class Hybrid(Function):
    """The steps through their inner graph; the energy's adjoint by hand."""

    @staticmethod
    def forward(ctx, x, v, k):
        inputs = [value.detach().requires_grad_() for value in (x, v, k)]  # where the inner graph begins
        with enable_grad():  # recording is off inside a forward
            outputs = compose(*[drift, kick] * STEPS)(*inputs)
        ctx.save_for_backward(*inputs, *outputs)
        return energy(*[value.detach() for value in outputs])

    @staticmethod
    def backward(ctx, adj):
        *inputs, x, v, k = ctx.saved_tensors
        a, x_, v_, k_ = adj.item(), x.numpy(), v.numpy(), k.numpy()
        seeds = [a * (k_ * x_ + x_**3), a * v_, a * x_**2 / 2]
        return grad((x, v, k), inputs, seeds, retain_graph=True)


def main() -> list[str]:
    x, v, k = (tensor(values, requires_grad=True) for values in ([1.0, 0.5], [0.0, 1.0], [4.0, 9.0]))
    reports = []
    for name, other in {"combine": combined, 'combine, save="all"': kept, "hybrid": Hybrid.apply}.items():
        report = compare(nested, other, (x, v, k))  # raises unless values and gradients agree to rounding
        reports.append(f"{name}\n{report}")
        print(reports[-1], end="\n\n")
    return reports


if __name__ == "__main__":
    main()
