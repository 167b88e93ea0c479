"""Sweeps over all rules: the rules of a module, and the check that must notice their mutants."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from fnmatch import fnmatchcase
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

from simphys.autograd.proof import mutation
from simphys.autograd.proof.mutation import Mutant
from simphys.simulator import Model


class Sweep(NamedTuple):
    """Rules of a module, and a check of a copy of the module (or package) that notices each of their mutants."""

    module: ModuleType
    rules: tuple[str, ...]
    check: Callable[[Any], None]
    package: ModuleType | None = None
    errors: tuple[type[Exception], ...] = mutation.ERRORS
    equivalent: Mapping[str, str] = {}
    """Mutants that change nothing, by patterns of `rule: change`, with the reason."""

    @property
    def name(self) -> str:
        return f"{self.module.__name__.rsplit('.', 1)[-1]} {' '.join(self.rules)}"

    def mutants(self) -> list[Mutant]:
        """List the mutants, but for those of the choice of a dimension.

        A rule for the wrong one indexes beyond the end of a vector, on which the compiler crashes.
        """
        rules = [rule for rule in self.rules if rule != "jvp_*" or has_tangents_by_hand(self.module)]
        found = mutation.mutants(self.module, *rules)
        return [mutant for mutant in found if not re.fullmatch(r"\w+\.n == \d", mutant.before)]

    def passes_the_original(self) -> None:
        """Raise if the check fails on an unchanged copy."""
        assert self.module.__file__ is not None
        with (
            open(self.module.__file__, "rb") as file,
            mutation.load_changed(self.module, file.read(), package=self.package) as copy,
        ):
            self.check(copy)

    def notices(self, mutant: Mutant) -> bool:
        return mutation.notices(self.check, mutant, package=self.package, errors=self.errors)

    def is_equivalent(self, mutant: Mutant) -> bool:
        return any(_matches(mutant, pattern) for pattern in self.equivalent)


def has_tangents_by_hand(module: ModuleType) -> bool:
    """True if tangents are written in a module. Others follow from the source of what they are tangents of."""
    return "def jvp_" in inspect.getsource(module)


def sample(mutants: list[Mutant], each: float) -> list[Mutant]:
    """Choose up to `each` mutants of every rule, evenly spread; below 1, one of such a part of the rules."""
    by_rule: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        by_rule.setdefault(mutant.rule, []).append(mutant)
    count = max(round(each), 1)
    groups = list(by_rule.values())[:: max(round(1 / each), 1)]
    return [group[i * len(group) // count] for group in groups for i in range(count) if len(group) > i]


def stale(sweeps: list[Sweep]) -> set[str]:
    """List patterns of equivalent mutants that match no mutant."""
    mutants = [mutant for sweep in sweeps for mutant in sweep.mutants()]
    patterns = {pattern for sweep in sweeps for pattern in sweep.equivalent}
    return {pattern for pattern in patterns if not any(_matches(mutant, pattern) for mutant in mutants)}


def _matches(mutant: Mutant, pattern: str) -> bool:
    return fnmatchcase(f"{mutant.rule}: {mutant.change}", pattern)


def use_engine(model: type[Model], engine: Any) -> AbstractContextManager[Any]:
    """Bind another engine to a model class while the context lasts."""
    return patch.object(model, "_bound", replace(model._bound, engine=engine))


def anew(original: ModuleType, checked: Callable[[Any], None], *kernels: str) -> Callable[[Any], None]:
    """Wrap `checked` such that only the named kernels of a module are recompiled."""
    compiled = vars(original)["_kernels"]
    own: dict[str, Any] = {}

    def reused(*arguments: Any) -> SimpleNamespace:
        mine = own["_kernels"](*arguments)
        return SimpleNamespace(**{**vars(compiled(*arguments)), **{name: getattr(mine, name) for name in kernels}})

    def check_of(module: Any) -> None:
        own["_kernels"] = module._kernels
        with patch.object(module, "_kernels", reused):
            checked(module)

    return check_of
