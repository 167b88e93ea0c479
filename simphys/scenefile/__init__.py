"""Scene files: read, overridden, validated, described by a schema, and turned back into data."""

from simphys.scenefile.control import KnotsSection, PatternSection, RecordedSection, SinesSection, WaveletSection
from simphys.scenefile.errors import ConfigError
from simphys.scenefile.fit_sections import (
    ChannelSection,
    ObservationsSection,
    OptimizerSection,
    UnknownSection,
    ValidationSection,
    ValueSection,
    sensor_arrays,
)
from simphys.scenefile.loader import from_dict, load, to_dict
from simphys.scenefile.loss_sections import (
    FinalDensitySection,
    FinalMeanSection,
    FinalStateSection,
    LossSection,
    RegularizationSection,
    RunningSumSection,
)
from simphys.scenefile.model_sections import fill_model, fill_record, scene_of
from simphys.scenefile.schema import schema, write_schema
from simphys.scenefile.section import Fields, Problem, Section, Simulator
from simphys.scenefile.sections import Config, OutputSection, RuntimeSection, TimeSection
from simphys.scenefile.unknown_entries import flat_entries, start_values, validate_unknowns, with_values

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
    "RecordedSection",
    "RegularizationSection",
    "RunningSumSection",
    "RuntimeSection",
    "Section",
    "Simulator",
    "SinesSection",
    "TimeSection",
    "UnknownSection",
    "ValidationSection",
    "ValueSection",
    "WaveletSection",
    "fill_model",
    "fill_record",
    "flat_entries",
    "from_dict",
    "load",
    "scene_of",
    "schema",
    "sensor_arrays",
    "start_values",
    "to_dict",
    "validate_unknowns",
    "with_values",
    "write_schema",
]
