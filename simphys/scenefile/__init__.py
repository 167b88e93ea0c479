"""Scene files: read, overridden, validated, described by a schema, and turned back into data."""

from simphys.scenefile.control import KnotsSection, PatternSection, SinesSection, WaveletSection
from simphys.scenefile.errors import ConfigError
from simphys.scenefile.fit_sections import ChannelSection, ObservationsSection, OptimizerSection, UnknownSection
from simphys.scenefile.loader import from_dict, load, to_dict
from simphys.scenefile.loss_sections import (
    FinalDensitySection,
    FinalMeanSection,
    FinalStateSection,
    LossSection,
    RegularizationSection,
    RunningSumSection,
)
from simphys.scenefile.schema import schema, write_schema
from simphys.scenefile.section import Fields, Problem, Section, Simulator
from simphys.scenefile.sections import Config, OutputSection, RuntimeSection, TimeSection
from simphys.scenefile.unknown_entries import flat_entries, start_values, validate_unknowns

__all__ = [
    "ChannelSection",
    "Config",
    "ConfigError",
    "Fields",
    "FinalDensitySection",
    "FinalMeanSection",
    "FinalStateSection",
    "KnotsSection",
    "LossSection",
    "ObservationsSection",
    "OptimizerSection",
    "OutputSection",
    "PatternSection",
    "Problem",
    "RegularizationSection",
    "RunningSumSection",
    "RuntimeSection",
    "Section",
    "Simulator",
    "SinesSection",
    "TimeSection",
    "UnknownSection",
    "WaveletSection",
    "flat_entries",
    "from_dict",
    "load",
    "schema",
    "start_values",
    "to_dict",
    "validate_unknowns",
    "write_schema",
]
