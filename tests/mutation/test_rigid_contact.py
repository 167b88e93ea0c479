"""Every term in the adjoints of contacts between rigid bodies is needed: their geometry, and the compliant law."""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.autograd.proof.mutation import ERRORS, Mutant
from simphys.simulators.rigid import Plane, RigidBodies, Sphere, contacts
from simphys.simulators.rigid.contacts import closest, compliant, distances, feature, flat, pair, segments
from simphys.simulators.rigid.contacts.candidates import Candidates
from simphys.simulators.rigid.contacts.feature import BOX, CORNER, EDGES, PLANE, ROUND

from ..simulators.rigid.contacts.poses import all_kinds, random_turns
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep
from .test_rigid_motion import changed_function, tangents_of

EACH = 1
"""Number of mutants per rule in a sample: most compile a kernel."""

EQUIVALENT = {
    "adj_flat: distance > 0 -> distance >= 0": "the tie on the surface: tests/simulators/rigid/contacts",
    "adj_flat: ti.abs(p?k?) <= b.h?k? -> ti.abs(p?k?) < b.h?k?": "the tie at the end of a side",
    "adj_flat: b.R.transpose() @ y - b.o -> b.o - b.R.transpose() @ y": "only its magnitude matters",
    "jvp_contacts: x.gap* < pair.FAR -> *<= pair.FAR": "inactive contacts, see rigid/contacts",
    "adj_contacts: x.gap* < pair.FAR -> *<= pair.FAR": "inactive contacts, see tests/simulators/rigid/contacts",
}

check = functools.partial(gradcheck, mode="projected", repeats=1)


def select_kinds(dim: int, *kinds: int) -> RigidBodies:
    """Return a model with candidates of these kinds only, of bodies whose centres of mass are parameters."""
    model = replace(all_kinds(dim), free_anchors=True)
    found, chosen = model.candidates, np.isin(model.candidates.kind, kinds)
    fields = [values[chosen] for values in (found.kind, found.body_a, found.body_b, found.constants)]
    vars(model)["candidates"] = Candidates(*fields)
    return model


def leaf(values: Any) -> Tensor:
    return tensor(np.array(values, float), requires_grad=True)


def check_geometry(model: RigidBodies, *seeds: int) -> Callable[[Any], None]:
    """Return a check of the contacts of this model."""

    def check_package(package: Any) -> None:
        module = importlib.import_module(f"{package.__name__}.distances")
        with changed_function(distances.Contacts, module.Contacts):
            for seed in seeds:
                random = np.random.default_rng(seed)
                x, q = random.uniform(-0.5, 0.5, (4, model.dim)), random_turns(model.dim, 4, random)
                centres = random.uniform(-0.1, 0.1, x.shape)
                is_active = distances.Contacts.apply(model, leaf(x), leaf(q), leaf(centres))[0].data < pair.FAR

                def active_contacts(*inputs: Tensor, is_active: Any = is_active) -> tuple[Tensor, ...]:
                    return tuple([result[is_active] for result in module.Contacts.apply(model, *inputs)])

                check(active_contacts, (leaf(x), leaf(q), leaf(centres)))

    return check_package


def check_compliant(module: Any) -> None:
    """Check two contacts with the floor and one of two bodies, for arbitrary frames; and a contact that would pull."""
    model, random = (
        RigidBodies(2, 0.01, ((Sphere(0.3),), (Sphere(0.2),)), (Plane((0.0, 1.0)),)),
        np.random.default_rng(2),
    )
    motion = random.standard_normal((3, 6)), random.standard_normal((2, 2)), random.standard_normal((2, 1))
    for damping in (0.1, 3.0):
        inputs = [leaf(values) for values in ((-0.3, -0.1, -0.2), *motion, 2.0, damping, (0.4, 0.7))]
        check(lambda *x: module.CompliantContact.apply(model, model.slip_speed, *x), inputs)


class Loops(Sweep):
    """A sweep without mutants of arithmetic on array indices, which would read foreign memory."""

    PLACES = frozenset({"c", "e", "i", "dim", "start", "to"})

    def mutants(self) -> list[Mutant]:
        return [mutant for mutant in super().mutants() if not self._is_place(mutant.before)]

    def _is_place(self, changed: str) -> bool:
        names = {node.id for node in ast.walk(ast.parse(changed)) if isinstance(node, ast.Name)}
        return all(name in self.PLACES or name.endswith(("0", "_c")) for name in names)


make_sweep = functools.partial(Sweep, equivalent=EQUIVALENT, errors=(*ERRORS, TypeError, AttributeError))


sweep_geometry = functools.partial(make_sweep, package=contacts)
sweep_loops = functools.partial(Loops, equivalent=EQUIVALENT, errors=(*ERRORS, TypeError, AttributeError))


check_flat, check_segments = (
    check_geometry(select_kinds(2, PLANE, BOX, CORNER), 1, 2, 3, 4),
    check_geometry(select_kinds(3, ROUND, EDGES), 2, 6),
)

SWEEPS = [
    sweep_geometry(flat, ("adj_*",), check_flat),
    sweep_geometry(segments, ("adj_*",), check_segments),
    sweep_geometry(closest, ("adj_*",), check_segments),
    sweep_geometry(pair, ("adj_*",), check_flat),
    sweep_loops(distances, ("adj_*",), check_flat, package=contacts),
    sweep_geometry(feature, ("adj_*",), check_flat),
    make_sweep(compliant, ("adj_*",), check_compliant),
]
SWEEPS += [tangents_of(sweep) for sweep in SWEEPS if sweep.module is not closest]
