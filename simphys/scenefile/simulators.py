"""The simulators that a scene file can name: ours, those of installed packages, and any class by its path.

simulator.name is one of
- a name of SIMULATORS;
- a name that an installed package declares in the entry point group `simphys.simulators`;
- "package.module:ConfigClass", a subclass of `Config` that Python can import, also from the current folder.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from simphys.scenefile.section import NOTHING, Problem
from simphys.scenefile.sections import Config
from simphys.scenefile.validate import did_you_mean

GROUP = "simphys.simulators"
"""Entry point group of other packages' simulators."""
_HOME = "simphys.simulators"
SIMULATORS = {
    "mass_spring": f"{_HOME}.mass_spring.scene:MassSpringConfig",
    "charges": f"{_HOME}.charges.scene:ChargesConfig",
    "billiards": f"{_HOME}.billiards.scene:BilliardsConfig",
    "heat": f"{_HOME}.heat.scene:HeatConfig",
    "molecular": f"{_HOME}.molecular.scene:MolecularConfig",
    "mpm": f"{_HOME}.mpm.scene:MPMConfig",
    "smoke": f"{_HOME}.smoke.scene:SmokeConfig",
    "wave": f"{_HOME}.wave.scene:WaveConfig",
    "sph": f"{_HOME}.sph.scene:SPHConfig",
    "elastic": f"{_HOME}.elastic.scene:ElasticConfig",
    "shallow_water": f"{_HOME}.wave.shallow.scene:ShallowConfig",
    "pendulum": f"{_HOME}.pendulum.scene:PendulumConfig",
    "rigid": f"{_HOME}.rigid.config:RigidConfig",
}
"""The Config of each simulator of this package, as "module:class"; imported when a scene names it."""


def known_names() -> list[str]:
    """Return the names that a scene can give: ours first, then those of installed packages."""
    return list(dict.fromkeys([*SIMULATORS, *_installed()]))


def find_config(name: object) -> type[Config] | Problem:
    """Return the Config that `simulator.name` stands for, or what is wrong with that name."""
    if not isinstance(name, str):
        return _unknown(NOTHING if name is None else name, did_you_mean(str(name), known_names()))
    path = SIMULATORS.get(name) or _installed().get(name) or name
    module, colon, attribute = path.partition(":")
    if not (colon and module and attribute) or module.startswith("."):  # which would be relative, to nothing
        remedy = did_you_mean(name, known_names())
        return _unknown(name, f'{remedy} One of your own: "package.module:ConfigClass".')
    try:
        with _current_folder_searched():
            found = getattr(import_module(module), attribute, None)
    except ImportError as error:
        return _unknown(name, f"{error}. Install the package, or run where Python finds the module.")
    if not (isinstance(found, type) and issubclass(found, Config)):
        what = "no such name" if found is None else f"{found!r}"
        remedy = f"{module} holds {what} as {attribute}: name a subclass of simphys.scenefile.Config."
        return _unknown(name, remedy)
    return found


def _unknown(found: object, remedy: str) -> Problem:
    return Problem(("simulator", "name"), "must name a simulator", found, remedy)


@functools.cache
def _installed() -> dict[str, str]:
    return {each.name: each.value for each in entry_points(group=GROUP)}


@contextmanager
def _current_folder_searched() -> Iterator[None]:
    """Let Python find modules in the current folder, after all others: the installed script does not look there."""
    try:
        folder = str(Path.cwd())
    except OSError:  # it was deleted
        folder = ""
    if folder in ("", *sys.path) or "" in sys.path:
        yield
        return
    sys.path.append(folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
