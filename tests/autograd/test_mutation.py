"""A sharp check notices every mutant; for a blunt one the missed mutants are listed; no trace of a mutant stays."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from simphys.autograd import InputError, ops, tensor
from simphys.autograd.ops import algebra, operands
from simphys.autograd.proof.gradcheck import GradcheckError, gradcheck
from simphys.autograd.proof.mutation import find_unnoticed, load_changed, mutants, notices

SOURCE = '''
from simphys.autograd import Function

class Product(Function):
    """x y² é"""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x.data * y.data**2

    @staticmethod
    def backward(ctx, adj):
        x, y = ctx.read_saved()
        return adj * y * y, adj * 2 * x * y
'''


@pytest.fixture
def product(tmp_path: Path) -> Iterator[ModuleType]:
    path = tmp_path / "product.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("product", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module


def sharp(module: Any) -> None:
    x, y = tensor([1.3, -0.4], requires_grad=True), tensor([0.7, 1.9], requires_grad=True)
    gradcheck(module.Product.apply, (x, y))


def at_one(module: Any) -> None:
    """At x = y = 1, with the one adjoint 1, these factors make no difference."""
    x, y = tensor([1.0], requires_grad=True), tensor([1.0], requires_grad=True)
    gradcheck(module.Product.apply, (x, y))


def test_a_sharp_check_notices_every_mutant(product: ModuleType) -> None:
    assert len(mutants(product)) == 10
    assert find_unnoticed(product, sharp) == []


def test_the_mutants_that_a_blunt_check_misses_are_listed(product: ModuleType) -> None:
    missed = find_unnoticed(product, at_one)
    assert {mutant.change for mutant in missed} == {
        *["adj * y * y -> adj * y", "adj * y -> adj", "adj * y -> y"],
        *["adj * 2 * x * y -> adj * 2 * x", "adj * 2 * x -> adj * 2", "adj * 2 -> 2"],
    }
    assert str(missed[0]) == "product:15, Product.backward: adj * y * y -> adj * y"


def test_a_check_that_fails_without_a_change_proves_nothing(product: ModuleType) -> None:
    def wrong(module: Any) -> None:
        x = tensor([1.3], requires_grad=True)
        gradcheck(lambda v: module.Product.apply(v, v) + np.sign(v.numpy() - 1.3), x)

    with pytest.raises(GradcheckError):
        find_unnoticed(product, wrong)


def test_another_error_is_raised_not_counted(product: ModuleType) -> None:
    def broken(module: Any) -> None:
        raise KeyError("of the check itself")

    with pytest.raises(KeyError, match="of the check"):
        notices(broken, mutants(product)[0])
    assert notices(broken, mutants(product)[0], errors=(KeyError,))


def test_an_untrusted_gradcheck_has_not_noticed_the_mutant(product: ModuleType) -> None:
    def untrusted(module: Any) -> None:
        noise = np.random.default_rng(0)
        x, y = tensor([1.3], requires_grad=True), tensor([0.7], requires_grad=True)
        gradcheck(lambda *v: module.Product.apply(*v) * (1 + 1e-3 * noise.random()), (x, y))

    with pytest.raises(GradcheckError) as caught:
        untrusted(product)
    assert caught.value.report is not None and caught.value.report.outcome == "untrusted"
    assert not notices(lambda module: untrusted(product), mutants(product)[0])


def test_the_file_itself_stays_as_it_is_and_the_copy_leaves_no_module(product: ModuleType) -> None:
    names = set(sys.modules)
    find_unnoticed(product, sharp)
    assert Path(str(product.__file__)).read_text() == SOURCE
    assert set(sys.modules) == names


def test_rules_are_chosen_by_name_or_path(product: ModuleType) -> None:
    assert mutants(product, "Product.backward") == mutants(product, "back*") == mutants(product)
    assert {mutant.rule for mutant in mutants(algebra, "slope_*")} == {"slope_in_base", "slope_in_exponent"}
    assert {mutant.change for mutant in mutants(algebra, "Mul.x")} == {"d * y -> d", "d * y -> y", "d * y -> -(d * y)"}
    with pytest.raises(InputError, match=r"'Quotient\.backward'.*Product\.forward, Product\.backward"):
        mutants(product, "Quotient.backward")


def test_a_change_in_a_package_reaches_its_other_modules() -> None:
    """The backward of all elementary functions is in another file than their rules."""

    def check(o: Any) -> None:
        gradcheck(o.exp, tensor([0.3, 1.2], requires_grad=True))

    mutant, *_ = mutants(operands, "_one_operand.backward")
    assert notices(check, mutant, package=ops)
    check(ops)


ELEMENTS = """
import taichi_or_fork as ti

@ti.func
def scaled_square(a, x):
    return a * x * x

@ti.func
def adj_scaled_square(a, x, adj):
    return adj * x * x, 2 * a * x * adj
"""
KERNELS = """
from simphys.autograd import Function, kernel, runtime
from {elements} import adj_scaled_square, scaled_square
import taichi_or_fork as ti
import numpy as np

real = runtime.real()
reals = ti.types.ndarray(dtype=real, ndim=1)

@kernel
def forward(a: reals, x: reals, y: reals):
    for i in range(2):
        y[i] = scaled_square(a[i], x[i])

@kernel
def adjoint(a: reals, x: reals, adj: reals, adj_a: reals, adj_x: reals):
    for i in range(2):
        adj_a[i], adj_x[i] = adj_scaled_square(a[i], x[i], adj[i])

class {name}(Function):
    @staticmethod
    def forward(ctx, a, x):
        ctx.save_for_backward(a, x)
        y = np.empty(2, real_dtype)
        forward(a, x, y)
        return y

    @staticmethod
    def backward(ctx, adj):
        adj_a, adj_x = np.empty(2, real_dtype), np.empty(2, real_dtype)
        adjoint(*ctx.saved_tensors, adj, adj_a, adj_x)
        return adj_a, adj_x

real_dtype = runtime.real_dtype()
"""


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package of element functions at module level, and one with two modules of kernels that use them."""
    files = {
        "shared_elements/__init__.py": "",
        "shared_elements/square.py": ELEMENTS,
        "kernels_of_squares/__init__.py": "from .one import One\nfrom .inner.two import Two\n",
        "kernels_of_squares/one.py": KERNELS.format(name="One", elements="shared_elements.square"),
        "kernels_of_squares/inner/__init__.py": "",
        "kernels_of_squares/inner/own.py": ELEMENTS,
        "kernels_of_squares/inner/two.py": KERNELS.format(name="Two", elements=".own"),
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace("import taichi_or_fork as ti", "from simphys.autograd.kernels.runtime import ti"))
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("kernels_of_squares")
    for name in [other for other in sys.modules if other.split(".")[0] in ("kernels_of_squares", "shared_elements")]:
        del sys.modules[name]


@pytest.mark.parametrize("name", ["One", "Two"])
def test_element_functions_of_a_module_are_changed_in_all_kernels_that_use_them(
    packages: ModuleType, name: str
) -> None:
    """These lie in another package, or in a folder of the package."""
    elements = sys.modules["shared_elements.square" if name == "One" else "kernels_of_squares.inner.own"]
    a, x = tensor([1.3, -0.4], requires_grad=True), tensor([0.7, 1.9], requires_grad=True)

    def check(package: Any) -> None:
        gradcheck(getattr(package, name).apply, (a, x))

    def check_of_one_input(package: Any) -> None:
        gradcheck(lambda x: getattr(package, name).apply(a.detach(), x), (x,))

    def ours() -> dict[str, ModuleType]:
        return {n: m for n, m in sys.modules.items() if n.startswith(("kernels_of_squares", "shared_elements"))}

    before = ours()
    assert len(mutants(elements)) > 5
    assert not find_unnoticed(elements, check, package=packages)
    missed = find_unnoticed(elements, check_of_one_input, package=packages)
    assert missed and all("adj * x" in mutant.change or "-adj" in mutant.change for mutant in missed)
    assert ours() == before
    check(packages)


def test_a_package_that_does_not_hold_the_module_is_refused(product: ModuleType) -> None:
    with (
        pytest.raises(InputError, match=r"product lies in a package.*simphys\.autograd\.ops"),
        load_changed(product, SOURCE.encode(), package=ops),
    ):
        pass
