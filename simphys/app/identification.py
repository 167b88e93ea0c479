"""The result of a fit: the values that were found, how they were found, and what they are worth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simphys import optimize
from simphys.assess import Criterion, Uncertainty, Verdict, worst
from simphys.experiment.observe import Observations
from simphys.experiment.scene import Scene
from simphys.record import Recording
from simphys.runs.achieved import Achievement
from simphys.runs.estimates import Estimate
from simphys.runs.fit_text import fit_text
from simphys.runs.truths import TruthError


@dataclass(frozen=True, repr=False)
class Identification:
    """Result of a fit, and the record of how it was found."""

    recording: Recording
    """The recorded run, in memory or in a folder: all that pictures are drawn from."""
    scene: Scene
    """The scene with the identified values."""
    unknowns: tuple[Estimate, ...]
    """Identified values with standard errors, a row for each unknown number."""
    result: optimize.Result
    """The end of the search: status, loss, iterations."""
    rmse: dict[str, float]
    """Root mean square residual of each channel, and of all channels if they share a unit; or of a measured field."""
    truth_errors: tuple[TruthError, ...] = ()
    """Relative errors of those unknowns whose true value the scene states."""
    criteria: tuple[Criterion, ...] = ()
    """Criteria that the fit was judged by; without a measurement, that of the search alone."""
    uncertainty: Uncertainty | None = None
    """Covariances, residuals and their tests; None for a fit without a measurement, or one that failed."""
    achieved: tuple[Achievement, ...] = ()
    """Distances of the motion from the targets of the loss terms, in their own units."""

    @property
    def verdict(self) -> Verdict:
        """The worst of the criteria: "passed", "doubtful" or "failed"."""
        return worst(self.criteria)

    @property
    def folder(self) -> Path | None:
        """The folder of the run; None if nothing was written."""
        return self.recording.folder

    def __repr__(self) -> str:
        title, found = self.scene.config.title or "", self.describe_misfits()
        return fit_text(title, self.unknowns, self.result, found, self.verdict)

    def describe_misfits(self) -> list[str]:
        """Describe the residuals of each channel, and the distances from targets, a line each, with their units."""
        units: dict[str, str] = {}
        for part in self.scene.parts:
            seen, prefix = part.observations, f"{part.name}: " * bool(part.name)
            if isinstance(seen, Observations):
                units |= {f"{prefix}{channel.label}": channel.unit for channel in seen.channels}
            elif seen is not None:
                units[prefix + seen.field] = seen.unit
        residuals = [
            f"{label}: RMSE {rmse:.4g} {units.get(label) or next(iter(units.values()))}".rstrip()
            for label, rmse in self.rmse.items()
        ]
        return residuals + [str(each) for each in self.achieved]

    def _repr_html_(self) -> str:
        return self.recording._repr_html_()

    def plot(self, name: str | None = None) -> Any:
        """Draw a picture of the fit by its name, by default its result: see `Recording.plot`."""
        return self.recording.plot(name)

    def animate(self, field: str | None = None) -> Any:
        """Make the film of the fitted motion: see `Recording.animate`."""
        return self.recording.animate(field)

    def show(self) -> Any:
        """Make the report of the fit: see `Recording.show`."""
        return self.recording.show()


class IdentificationInterrupted(optimize.Interrupted):
    """Ctrl-C during `identify`: `identification` holds the best values so far, without standard errors.

    A run with a folder can be resumed.
    """

    def __init__(self, identification: Identification) -> None:
        super().__init__(identification.result)
        self.identification = identification
