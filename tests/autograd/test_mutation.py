"""A sharp check notices every mutant; for a blunt one the missed mutants are listed; no trace of a mutant stays."""

from __future__ import annotations

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
        x, y = ctx.saved
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


def test_a_package_that_does_not_hold_the_module_is_refused(product: ModuleType) -> None:
    with (
        pytest.raises(InputError, match=r"product lies in the package.*simphys\.autograd\.ops"),
        load_changed(product, SOURCE.encode(), package=ops),
    ):
        pass
