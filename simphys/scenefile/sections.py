"""The sections of a scene file that are the same for every simulator."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from simphys.autograd import runtime, tensor
from simphys.autograd.errors import InputError
from simphys.rollout.budget import parse
from simphys.rollout.stability import require_stable_step
from simphys.scenefile.control import ControlSection
from simphys.scenefile.demands import Demand
from simphys.scenefile.fit_sections import ObservationsSection, OptimizerSection, UnknownSection, ValueSection
from simphys.scenefile.loss_sections import LossSection
from simphys.scenefile.model_sections import fill_model, fill_record
from simphys.scenefile.section import Count, Fields, Index, Key, Positive, Problem, Section, Simulator
from simphys.scenefile.sizes import Sizes
from simphys.simulator import SI, Model, Record
from simphys.simulator.returned import require_fields, require_kind


@functools.cache
def _tell_gpu(arch: str) -> None:
    """Say once which arch "gpu" stands for."""
    print(f'runtime.arch = "gpu" is "{arch}" here', file=sys.stderr)


class RuntimeSection(Section):
    """Device, precision and memory of the kernels.

    arch: "gpu" is the first of "cuda", "metal" and "vulkan" that this machine has; which, is printed.
    memory [bytes]: limit of what backward may use for a motion: "all" (no limit), a size such as "2GB", a number, or a
    part of the free memory such as 0.5. Within a limit a motion holds the states that observations and loss terms need,
    and recomputes the others; loss and gradient are the same.
    threads: a number, or "auto": the number of SIMPHYS_THREADS, else of the cores that the process may use, at most 8.
    A launch with little work uses one thread.
    deterministic: results that do not depend on the number of threads, even if that is slower.
    compiler: "quadrants", "taichi", or "auto": that of the process, chosen by SIMPHYS_COMPILER, else quadrants where it
    is installed.
    verify: on a GPU, `run` and `optimize` compare the gradient over the first steps with the processor's, once for each
    scene and device, and stop where they differ.
    """

    arch: Literal["cpu", "gpu", "cuda", "vulkan", "metal"] = "cpu"
    compiler: Literal["auto", "quadrants", "taichi"] = "auto"
    precision: Literal["f32", "f64"] = "f64"
    threads: Count | Literal["auto"] = "auto"
    seed: Index = 0
    memory: str | int | float = "all"
    deterministic: bool = False
    verify: bool = True

    def start(self) -> None:
        """Put these settings in force. Errors: InputError for a device or a compiler that the process cannot have."""
        chosen = runtime.init(arch=self.arch, precision=self.precision, threads=self.threads, compiler=self.compiler)
        if self.arch == "gpu":
            _tell_gpu(chosen.arch)

    @property
    def limited(self) -> bool:
        """True if backward keeps within a memory budget."""
        return parse(self.memory) is not None


class TimeSection(Section):
    """The time step dt [s] and how far to go: a number of steps, a duration [s], or until the last observation."""

    dt: Positive
    steps: Count | None = None
    duration: Positive | None = None

    def step_count(self, *, last_observation: float | None = None) -> int:
        """The number of steps that reach the end; the last observation [s] counts where neither end is given."""
        if self.steps is not None:
            return self.steps
        end = self.duration if self.duration is not None else last_observation
        assert end is not None, "a loaded scene has steps, a duration or observations"
        ratio = end / self.dt
        nearest = max(1, round(ratio))
        return nearest if math.isclose(ratio, nearest, rel_tol=1e-9) else math.ceil(ratio)


class UnitsSection(Section):
    """The units in which the scene computes, as pictures, reports and files of data name them: of length, such as
    "nm", and of time, such as "ps". All numbers of the scene must fit together in them; none is converted."""

    length: Annotated[str, Field(min_length=1)] = SI.length
    time: Annotated[str, Field(min_length=1)] = SI.time


class ExperimentSection(Section):
    """One of several recordings: what it has of its own, beside what the scene says for all.

    observations, values and control are laid over the sections of these names, key by key. steps or duration [s] is its
    horizon, by default that of [time], or until its last observation. name: in tables and files.
    """

    name: str
    observations: ObservationsSection | None = None
    values: dict[str, ValueSection] = {}
    control: ControlSection | None = None
    steps: Count | None = None
    duration: Positive | None = None


class CheckSection(Section):
    """Overrides with which `simphys check` takes this scene, such as "geometry.lattice.shape=[8, 8]": a smaller size
    for a large scene, but the horizon that it is about. members: of several experiments it takes so many, the first."""

    overrides: list[str] = []
    members: Count | None = None


class OutputSection(Section):
    """The folder of the run, relative to the current folder, and what is recorded: which steps, and of the state
    which `fields`, all by default.

    matrices: a fit that ends leaves the residuals and Jacobians of all its evaluations, which are large.
    """

    folder: str = "runs/scene"
    every: Count = 1
    fields: list[str] | None = None
    matrices: bool = False


def sections_of_experiment(experiment: ExperimentSection, time: TimeSection) -> dict[str, Any]:
    """Return the sections by which the scene of an experiment differs from the whole scene."""
    if experiment.steps is not None or experiment.duration is not None:
        time = TimeSection(dt=time.dt, steps=experiment.steps, duration=experiment.duration)
    return {
        "time": time,
        "observations": experiment.observations,
        "values": experiment.values,
        "control": experiment.control,
        "experiments": [],
    }


class Config(Section):
    """A validated scene. Every simulator has a subclass that adds its sections."""

    MODEL: ClassVar[Any] = None
    """The model whose declared fields have keys here, see `scene_of`."""

    COUNTS: ClassVar[Mapping[str, Key]] = {}
    """Keys that give the sizes in the shapes of these fields, by their names."""

    KEYS: ClassVar[Mapping[str, Key]] = {}
    """Keys that stand for fields of the model of other names, where errors of the model point to."""

    SIZES: ClassVar[Sizes] = ()
    """Keys of counts, with the bytes that one counted thing takes at least: judged before anything is allocated."""

    PARAMETERS: ClassVar[Mapping[Key, str]] = {}
    """Keys of numbers that become elements of a parameter as they are, and that no check of other sections reads, with
    the names of these parameters: scenes that differ in them are built from one (experiment/family.py)."""

    ROWS: ClassVar[Mapping[str, str]] = {}
    """Kinds of things that rows of fields stand for, by field: entries of unknowns may name them (entry_names.py)."""

    DEMANDS: ClassVar[Mapping[str, Demand]] = {}
    """Demands of the simulator's sections on a number, by parameter, which values given elsewhere have to meet, too
    (demands.py)."""

    ON_DEMAND: ClassVar[tuple[str, ...]] = ()
    """Forces, by their parameters, that a model has only where a scene names them, as they take time: with the values
    that they have by default they do nothing. What such a force would explain, fits with a misfit try, too."""

    title: str = ""
    simulator: Simulator
    units: UnitsSection = UnitsSection()
    runtime: RuntimeSection = RuntimeSection()
    time: TimeSection
    control: ControlSection | None = None
    values: dict[str, ValueSection] = {}
    unknowns: dict[str, UnknownSection] = {}
    loss: LossSection = LossSection()
    optimizer: OptimizerSection = OptimizerSection()
    observations: ObservationsSection | None = None
    experiments: list[ExperimentSection] = []
    check: CheckSection = CheckSection()
    output: OutputSection = OutputSection()

    @classmethod
    def find_sizes(cls, sections: Mapping[str, Any]) -> dict[str, int]:
        """Compute the sizes of marked keys that no key gives as it is, see `scene_of`, from those sections that are
        valid."""
        return {}

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> Iterable[Problem]:
        """Find the problems within and between the simulator's sections that neither the types of keys nor the model
        itself refuse. A section that is itself invalid is absent."""
        return []

    def find_problems_with(self, model: Any) -> Iterable[Problem]:
        """Find the problems of sections that have none by themselves with the model that they make."""
        return []

    def build_fields(self) -> Fields:
        """Build every parameter and state field at full size, from sections without problems.

        By default all fields of the model have keys of their own, see `scene_of`.
        """
        if self.MODEL is None:
            remedy = "Define build_fields, or decorate the class by @scene_of(Model)."
            raise InputError(type(self).__name__, "builds the fields of the scene", "no build_fields", remedy)
        return Fields(params=fill_record(self, self.MODEL.Params), state=fill_record(self, self.MODEL.State))

    def build_model(self) -> Model:
        """Build the model. Errors: InputError for a scene that cannot be simulated.

        By default its fields are sizes of `scene_of`, and keys of the same names, see `fill_model`.
        """
        if self.MODEL is None:
            remedy = "Define build_model, or decorate the class by @scene_of(Model)."
            raise InputError(type(self).__name__, "builds the model of the scene", "no build_model", remedy)
        model: Model = fill_model(self, self.MODEL)
        return model

    @property
    def named_parameters(self) -> set[str]:
        """Names of all that unknowns and values, of experiments too, give other values than the sections do."""
        every: list[Mapping[str, Any]] = [self.unknowns, self.values, *[each.values for each in self.experiments]]
        return {each.parameter for sections in every for each in sections.values()}

    def with_forces(self, names: Iterable[str]) -> Config:
        """The scene with these forces, each of them unknown, and the arrays of a model that has them."""
        sought = {f"{name}, on demand": UnknownSection(parameter=name) for name in names}
        changed = self.model_copy(update={"unknowns": {**self.unknowns, **sought}})
        changed.__dict__.pop("fields", None)  # which the copy has taken along
        return changed

    def of_experiment(self, place: int) -> Config:
        """The scene of one of the experiments, by itself."""
        return self.model_copy(update=sections_of_experiment(self.experiments[place], self.time))

    @cached_property
    def fields(self) -> Fields:
        """The arrays that the simulator's sections describe, built once."""
        found = self.build_fields()
        remedy = "End it with `return Fields(params={...}, state={...})`."
        require_kind(f"{type(self).__name__}.build_fields", found, Fields, "the Fields of the scene", remedy)
        return found

    def build(self) -> tuple[Model, Any, Any]:
        """Build the model, its parameters and the initial state.

        Errors: InputError for a scene that cannot be simulated, such as a time step beyond the stability limit, and
        for functions of the simulator that return something else.
        """
        model = self.build_model()
        name = type(self).__name__
        require_kind(
            f"{name}.build_model", model, Model, "the Model of the scene", "End it with `return` and the model."
        )
        for record, found in ((model.Params, self.fields.params), (model.State, self.fields.state)):
            require_fields(f"{name}.build_fields", found, record)
        params = model.Params(**{name: tensor(values) for name, values in self.fields.params.items()})
        state = model.State(**{name: tensor(values) for name, values in self.fields.state.items()})
        self.require_stable(model, params, state)
        return model, params, self.first_state(model, params, state)

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        """Raise InputError if no sound motion starts with these values; the error names the largest stable time step.

        By default, parameters must be physical (`Model.check_params`), and the limits of the time step that the model
        names decide (`Model.step_limits`).
        """
        model.check_params(params.arrays())
        require_stable_step(model, params, state)

    def first_state(self, model: Any, params: Any, state: Any) -> Any:
        """Complete the initial state where it depends on parameters."""
        return state

    def completed(self, state: Any, design: Any = None, params: Any = None) -> Any:
        """Complete a state, some fields of which are unknown, by those that follow from others, or from the design.

        The design may do so with the parameters. Without a design, the state is one along the motion.
        """
        return state

    def design(self) -> Record | None:
        """Build the numbers from which parameters (see `designed`) or the start (see `completed`) follow.

        They may be unknown instead.
        """
        return None

    def designed(self, model: Any, params: Any, design: Any) -> Any:
        """Give the parameters that follow from a design their values."""
        return params
