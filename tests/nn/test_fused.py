"""A network in a fused kernel agrees with the nested Functions."""

from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import kernel, runtime, tensor
from simphys.autograd.kernels.runtime import ti
from simphys.nn import Network, fused

SIZES = Network(inputs=21, hidden=5, outputs=33)


@no_type_check
def launch(layout: fused.Layout, module: Any) -> tuple[object, object]:
    real, net = runtime.real(), module.loops(runtime.real(), layout)
    reals = ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def forward(weights: reals, x: reals, h: reals, y: reals):
        ti.loop_config(serialize=True)
        for _ in range(1):
            net.forward(weights, 0, x, 0, h, 0, y, 0)

    @kernel
    def adjoint(weights: reals, h: reals, y: reals, g_y: reals, g_h: reals, adj_x: reals):
        ti.loop_config(serialize=True)
        for _ in range(1):
            net.adjoint(weights, 0, h, 0, y, 0, g_y, 0, g_h, 0, adj_x, 0)

    return forward, adjoint


def test_layers_and_their_adjoints_in_a_kernel_are_those_of_the_functions() -> None:
    compare_with_functions(fused)


def compare_with_functions(module: Any) -> None:
    layout, random, real = fused.Layout(SIZES), np.random.default_rng(0), runtime.real_dtype()
    given = {name: random.normal(size=shape).astype(real) for name, shape in SIZES.shapes().items()}
    weights = SIZES.initial(0).replace(**{name: tensor(v, requires_grad=True) for name, v in given.items()})
    x = tensor(random.normal(size=SIZES.inputs), requires_grad=True)
    out = SIZES(weights, x)
    adj = random.normal(size=SIZES.outputs).astype(real)
    (out * tensor(adj)).sum().backward()

    packed = layout.pack({name: values[None] for name, values in given.items()}).reshape(-1)
    rows = {name: np.zeros(size, real) for name, size in (("x", layout.inputs), ("h", layout.hidden))}
    rows["x"][: SIZES.inputs] = x.data
    y, g_y = np.full(layout.outputs, 7, real), np.zeros(layout.outputs, real)
    g_y[: SIZES.outputs] = adj
    g_h, adj_x = np.empty(layout.hidden, real), np.empty(layout.inputs, real)
    forward, adjoint = launch(layout, module)
    forward(packed, rows["x"], rows["h"], y)
    adjoint(packed, rows["h"], y, g_y, g_h, adj_x)

    assert not y[SIZES.outputs :].any(), "what drives springs without an actuator is zero"
    assert x.grad is not None
    np.testing.assert_allclose(y[: SIZES.outputs], out.data, rtol=1e-6)
    np.testing.assert_allclose(adj_x[: SIZES.inputs], x.grad.data, rtol=1e-5, atol=1e-7)
    found = {"hidden_weight": np.outer(g_h, rows["x"]), "output_weight": np.outer(g_y, rows["h"])}
    for name, values in {**found, "hidden_bias": g_h, "output_bias": g_y}.items():
        expected = getattr(weights, name).grad.data
        padded = values[tuple([slice(size) for size in expected.shape])]
        np.testing.assert_allclose(padded, expected, rtol=1e-5, atol=1e-7, err_msg=name)


def test_tanh_in_single_precision_errs_by_some_roundings() -> None:
    """Evaluate Lambert's fraction as the kernel does, but in NumPy's single precision."""
    x = np.linspace(-12, 12, 100_001).astype(np.float32)
    u = np.float32(0.25) * np.clip(x, np.float32(-9), np.float32(9))
    s = u * u
    t = u * (135135 + s * (17325 + s * (378 + s))) / (135135 + s * (62370 + s * (3150 + s * 28)))
    for _ in range(2):
        t = 2 * t / (1 + t * t)
    exact = np.tanh(x.astype(np.float64))
    there = x != 0
    assert t.dtype == np.float32 and (abs(t - exact)[there] <= 3.5e-7 * abs(exact[there])).all()


@pytest.mark.parametrize("size", [1, 15, 16, 31, 32])
def test_rows_are_padded_to_whole_vectors_and_outputs_by_one_at_least(size: int) -> None:
    layout = fused.Layout(Network(inputs=size, hidden=size, outputs=size))
    assert layout.inputs % 16 == layout.outputs % 16 == 0 and layout.inputs >= size and layout.outputs > size
