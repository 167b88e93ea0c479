"""Which sections belong to which simulator: the only place outside their folders that names simulators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simphys.autograd import tensor
from simphys.scenefile.billiards import BilliardsConfig
from simphys.scenefile.pendulum import PendulumConfig
from simphys.scenefile.rigid import RigidConfig
from simphys.scenefile.section import Fields, Problem
from simphys.scenefile.sections import Config, Pattern, Wavelet
from simphys.simulator import Model
from simphys.simulator.bodies import Bodies
from simphys.simulator.grids import Grid
from simphys.simulators import charges, mass_spring, mpm, smoke, wave
from simphys.simulators.charges import scene as charges_scene
from simphys.simulators.mass_spring import scene as mass_spring_scene
from simphys.simulators.mass_spring import scene_checks as mass_spring_checks
from simphys.simulators.mass_spring import stability as mass_spring_stability
from simphys.simulators.mpm import scene as mpm_scene
from simphys.simulators.mpm import scene_checks as mpm_checks
from simphys.simulators.mpm import stability as mpm_stability
from simphys.simulators.smoke import outline as smoke_outline
from simphys.simulators.smoke import scene as smoke_scene
from simphys.simulators.smoke import scene_checks as smoke_checks
from simphys.simulators.smoke import stability as smoke_stability
from simphys.simulators.wave import scene as wave_scene
from simphys.simulators.wave import scene_checks as wave_checks
from simphys.simulators.wave import shallow
from simphys.simulators.wave import stability as wave_stability
from simphys.simulators.wave.shallow import scene as shallow_scene
from simphys.simulators.wave.shallow import stability as shallow_stability


class MassSpringConfig(Config):
    """A scene of nodes and springs."""

    simulator: mass_spring_scene.MassSpringSimulator
    geometry: mass_spring_scene.Geometry
    material: mass_spring_scene.Material = mass_spring_scene.Material()
    environment: mass_spring_scene.Environment = mass_spring_scene.Environment()
    state: mass_spring_scene.State = mass_spring_scene.State()
    controller: mass_spring_scene.ControllerSection | None = None

    @classmethod
    def simulator_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        control = sections.get("control")
        return mass_spring_checks.problems(
            geometry=sections.get("geometry"),
            material=sections.get("material"),
            environment=sections.get("environment"),
            state=sections.get("state"),
            controller=sections.get("controller"),
            waves=control.waves if isinstance(control, Pattern) else None,
        )

    @classmethod
    def simulator_fields(cls, sections: Mapping[str, Any]) -> Fields:
        return mass_spring_scene.fields(
            geometry=sections["geometry"],
            material=sections["material"],
            environment=sections["environment"],
            state=sections["state"],
            controller=sections["controller"],
            waves=getattr(sections.get("control"), "waves", 0),
        )

    def build(self) -> tuple[Model, mass_spring.Params, mass_spring.State]:
        return mass_spring.build(self)

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        mass_spring_stability.require_stable(model, params, state)

    def bodies_of(self, model: Any) -> Bodies:
        return mass_spring_scene.bodies(model)


class ChargesConfig(Config):
    """A scene of point charges."""

    simulator: charges_scene.ChargesSimulator
    geometry: charges_scene.Geometry
    material: charges_scene.Material
    state: charges_scene.State = charges_scene.State()

    @classmethod
    def simulator_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        return charges_scene.problems(
            geometry=sections.get("geometry"), material=sections.get("material"), state=sections.get("state")
        )

    @classmethod
    def simulator_fields(cls, sections: Mapping[str, Any]) -> Fields:
        return charges_scene.fields(
            geometry=sections["geometry"], material=sections["material"], state=sections["state"]
        )

    def build(self) -> tuple[Model, charges.Params, charges.State]:
        return charges.build(self)

    def bodies_of(self, model: Any) -> Bodies:
        return charges_scene.bodies(model)


class MPMConfig(Config):
    """A scene of material points."""

    simulator: mpm_scene.MPMSimulator
    grid: mpm_scene.Grid
    bodies: list[mpm_scene.Body]
    environment: mpm_scene.Environment = mpm_scene.Environment()
    colliders: list[mpm_scene.ColliderSection] = []

    @classmethod
    def simulator_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        return mpm_checks.problems(
            grid=sections.get("grid"),
            bodies=sections.get("bodies"),
            environment=sections.get("environment"),
            colliders=sections.get("colliders"),
        )

    @classmethod
    def simulator_fields(cls, sections: Mapping[str, Any]) -> Fields:
        return mpm_scene.fields(
            grid=sections["grid"],
            bodies=sections["bodies"],
            environment=sections["environment"],
            colliders=sections["colliders"],
        )

    def build(self) -> tuple[Model, mpm.Params, mpm.State]:
        return mpm.build(self)

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        mpm_stability.require_stable(model, params, state)

    def bodies_of(self, model: Any) -> Bodies:
        return mpm_scene.bodies(self.grid, self.bodies)


class SmokeConfig(Config):
    """A scene of incompressible flow with smoke."""

    simulator: smoke_scene.SmokeSimulator
    grid: smoke_scene.Grid
    fluid: smoke_scene.Fluid = smoke_scene.Fluid()
    sides: dict[smoke_scene.Side, smoke_scene.SideFlow] = {}
    emitters: list[smoke_scene.Emitter] = []
    obstacle: smoke_scene.Obstacle | None = None
    state: smoke_scene.State = smoke_scene.State()

    @classmethod
    def simulator_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        return smoke_checks.problems(
            simulator=sections.get("simulator"),
            grid=sections.get("grid"),
            fluid=sections.get("fluid"),
            sides=sections.get("sides"),
            emitters=sections.get("emitters"),
            obstacle=sections.get("obstacle"),
            state=sections.get("state"),
        )

    @classmethod
    def simulator_fields(cls, sections: Mapping[str, Any]) -> Fields:
        return smoke_scene.fields(
            simulator=sections["simulator"],
            grid=sections["grid"],
            fluid=sections["fluid"],
            sides=sections["sides"],
            emitters=sections["emitters"],
            obstacle=sections["obstacle"],
            state=sections["state"],
        )

    def build(self) -> tuple[Model, smoke.Params, smoke.State]:
        return smoke.build(self)

    def design(self) -> smoke_outline.Design | None:
        """The outline of an obstacle."""
        design = smoke_scene.design(self.obstacle)
        return smoke_outline.Design(**{name: tensor(values) for name, values in design.items()}) if design else None

    def designed(self, model: Any, params: Any, design: Any) -> Any:
        """The parameters with the obstacle that has this outline."""
        given = None if self.obstacle is None else self.obstacle.outline
        if given is None:
            return params
        return params.replace(obstacle=smoke_outline.distance(model, given.centre, given.radius, design))

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        smoke_stability.require_stable(model, params)

    def grid_of(self, model: Any) -> Grid:
        return smoke_scene.cells(model)


class ShallowConfig(Config):
    """A scene of shallow water."""

    simulator: shallow_scene.ShallowSimulator
    grid: shallow_scene.Grid
    medium: shallow_scene.Medium
    state: shallow_scene.State = shallow_scene.State()

    @classmethod
    def simulator_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        return shallow_scene.problems(
            grid=sections.get("grid"), medium=sections.get("medium"), state=sections.get("state")
        )

    @classmethod
    def simulator_fields(cls, sections: Mapping[str, Any]) -> Fields:
        return shallow_scene.fields(grid=sections["grid"], medium=sections["medium"], state=sections["state"])

    def build(self) -> tuple[Model, shallow.Params, shallow.State]:
        return shallow.build(self)

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        shallow_stability.require_stable(model, params, state)

    def grid_of(self, model: Any) -> Grid:
        return shallow_scene.cells(model)


class WaveConfig(Config):
    """A scene of waves."""

    simulator: wave_scene.WaveSimulator
    grid: wave_scene.Grid
    medium: wave_scene.Medium
    state: wave_scene.State = wave_scene.State()
    sources: list[wave_scene.Source] = []
    receivers: wave_scene.Receivers = wave_scene.Receivers()

    @classmethod
    def simulator_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        control = sections.get("control")
        return wave_checks.problems(
            simulator=sections.get("simulator"),
            grid=sections.get("grid"),
            medium=sections.get("medium"),
            state=sections.get("state"),
            sources=sections.get("sources"),
            receivers=sections.get("receivers"),
            members=control.members if isinstance(control, Wavelet) else None,
            driven="control" not in sections or control is not None,
        )

    @classmethod
    def simulator_fields(cls, sections: Mapping[str, Any]) -> Fields:
        return wave_scene.fields(
            grid=sections["grid"],
            medium=sections["medium"],
            state=sections["state"],
            sources=sections["sources"],
            receivers=sections["receivers"],
        )

    def build(self) -> tuple[Model, wave.Params, wave.State]:
        return wave.build(self)

    def completed(self, state: Any) -> Any:
        """A field that starts at rest was the same one step before."""
        sought = {unknown.parameter for unknown in self.unknowns.values()}
        if self.state.previous is not None or "previous" in sought:
            return state
        return state.replace(previous=state.height)

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        wave_stability.require_stable(model, params)

    def grid_of(self, model: Any) -> Grid:
        return wave_scene.cells(model)


SIMULATORS: dict[str, type[Config]] = {
    "mass_spring": MassSpringConfig,
    "charges": ChargesConfig,
    "billiards": BilliardsConfig,
    "mpm": MPMConfig,
    "smoke": SmokeConfig,
    "wave": WaveConfig,
    "shallow_water": ShallowConfig,
    "pendulum": PendulumConfig,
    "rigid": RigidConfig,
}
"""The sections of a scene by `simulator.name`."""
