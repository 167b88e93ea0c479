"""A scene of rigid bodies: its sections, and what follows from them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from simphys.autograd import ops, tensor
from simphys.scenefile.controller import ControllerSection
from simphys.scenefile.demands import demands_of
from simphys.scenefile.entry_names import BODIES, JOINTS
from simphys.scenefile.model_sections import scene_of
from simphys.scenefile.sections import Config
from simphys.simulator import Record

from . import scene, scene_checks, sections, stability
from .joints.assembly import JointStart, assemble
from .model import RigidBodies
from .pseudo_inertia import Gyration, StartAndGyration, find_inertia


@scene_of(RigidBodies, bodies="bodies", dim="bodies.0.position")
class RigidConfig(Config):
    """A scene of rigid bodies with contacts and joints."""

    ROWS = {"gyration": BODIES, "joint_start": JOINTS, "joint_rate": JOINTS}

    DEMANDS = (
        demands_of(sections.BodySection, "mass", "friction", "restitution")
        | demands_of(sections.SpringSection, "stiffness", "damping", "length", prefix="spring_")
        | demands_of(sections.JointSection, "damping", "dry_friction", "transition_rate", prefix="joint_")
        | demands_of(sections.ContactSection, "stiffness", "damping", prefix="contact_")
    )

    ON_DEMAND = ("joint_dry_friction",)

    simulator: sections.RigidSimulator
    bodies: Annotated[list[sections.BodySection], Field(min_length=1)]
    planes: list[sections.PlaneSection] = []
    joints: list[sections.JointSection] = []
    springs: list[sections.SpringSection] = []
    environment: sections.EnvironmentSection = sections.EnvironmentSection()
    contact: sections.ContactSection = sections.ContactSection()
    controller: ControllerSection | None = None

    find_problems = staticmethod(scene_checks.find_problems)
    build_fields, build_model = scene.build_fields, scene.build_model

    def design(self) -> Record | None:
        """Build the start of the joints, and roots of inertias."""
        design = {name: tensor(values) for name, values in self.fields.design.items()}
        kinds = (JointStart, Gyration, StartAndGyration)
        return next((kind(**design) for kind in kinds if {*kind.names()} == {*design}), None)

    def designed(self, model: Any, params: Any, design: Any) -> Any:
        """Give bodies the inertias that follow from their roots."""
        if not isinstance(design, Gyration):
            return params
        return params.replace(inertia=find_inertia(params.mass, design.gyration))

    def completed(self, state: Any, design: Any = None, params: Any = None) -> Any:
        """Give sought quaternions the length 1, and move the bodies to where the joints start."""
        named = {each.parameter for each in self.unknowns.values()} | {each.parameter for each in self.values.values()}
        if "orientation" in named and state.orientation.shape[1] == 4:
            length = ops.norm(state.orientation, axis=1, keepdims=True)
            state = state.replace(orientation=state.orientation / length)
        if not isinstance(design, JointStart):
            return state
        joints = scene.build_joints(self.joints, self.bodies)
        return assemble(joints, scene.fixed_bodies(self.bodies), state, design, params)

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        model.check_params(params.arrays())
        super().require_stable(model, params, state)
        stability.require_slow(model, state.arrays())
