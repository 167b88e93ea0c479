"""Scene files: read, overridden, validated, described by a schema, and turned back into data."""

from simphys.scenefile.errors import ConfigError
from simphys.scenefile.fit_sections import Channel, Observations, Optimizer, Unknown
from simphys.scenefile.loader import from_dict, load, to_dict
from simphys.scenefile.loss_sections import FinalDensity, FinalMean, FinalState, Loss, Regularization, RunningSum
from simphys.scenefile.schema import schema, write_schema
from simphys.scenefile.sections import Config, Knots, Output, Pattern, Runtime, Sines, Time, Wavelet
from simphys.scenefile.unknown_entries import flat_entries, start_values, validate_unknowns

__all__ = [
    "Channel",
    "Config",
    "ConfigError",
    "FinalDensity",
    "FinalMean",
    "FinalState",
    "Knots",
    "Loss",
    "Observations",
    "Optimizer",
    "Output",
    "Pattern",
    "Regularization",
    "RunningSum",
    "Runtime",
    "Sines",
    "Time",
    "Unknown",
    "Wavelet",
    "flat_entries",
    "from_dict",
    "load",
    "schema",
    "start_values",
    "to_dict",
    "validate_unknowns",
    "write_schema",
]
