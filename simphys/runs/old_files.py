"""Files that were made of a run, and that must not stay beside the one that replaces it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from simphys.autograd.errors import InputError, StorageError
from simphys.record import Recording, damage_as_errors, list_parts

from .results import RESULTS

PICTURES = (
    "fit",
    "gather",
    "convergence",
    "assessment",
    "recovery",
    "waterfall",
    "posterior",
    "variance",
    "adjoint",
    "particles",
    "trajectory",
    "fields",
    "control",
)
"""Names of the pictures of `plot.all_figures`."""
OF_FIELDS = ("snapshots", "adjoint", "medium")
"""Pictures of one field, whose name stands behind theirs."""
OTHERS = ("animation.gif", "animation.mp4", "film.gif", "film.mp4", "report.html")


def list_old_files(folder: str | Path | None) -> list[Path]:
    """List what was made of the run in a folder: results, pictures, film and report, as far as they are there.

    Other files stay: they are the user's, or of the scene, such as a certificate.
    """
    if folder is None:
        return []
    names = {*RESULTS, *OTHERS, *(f"{name}.png" for name in PICTURES)}
    with suppress(InputError, StorageError):  # no run, or a damaged one, which does not tell its fields and unknowns
        recording = Recording(folder)
        with damage_as_errors(recording.name, "list of files"):
            names |= _names_of(recording)
    return [path for name in sorted(names) if (path := Path(folder) / name).is_file()]


def _names_of(recording: Recording) -> set[str]:
    """List names that hold those of the run's experiments, unknowns and fields."""
    unknowns = recording.scene.get("unknowns")
    labels = [*unknowns] if isinstance(unknowns, dict) else []
    parts = list_parts(recording)
    grid = recording.attrs("grid").get("fields") if "grid" in recording else None
    fields = list(map(str, grid)) if isinstance(grid, list) else []
    names = {f"{name}_{part.replace(' ', '_')}.png" for part in parts for name in PICTURES}
    names |= {f"{name}_{field}.png" for field in (*fields, *labels) for name in OF_FIELDS}
    names |= {f"animation_{field}.{kind}" for field in (*fields, *labels) for kind in ("gif", "mp4")}
    names |= {f"fitted_{label}.npy" for label in (*labels, *(f"{a}, {b}" for a in labels for b in parts))}
    return names | {f"used_{name}.npy" for name in (*recording.params, *recording.start)}


def remove(paths: list[Path]) -> None:
    """Remove files, those that are still there. Errors: StorageError."""
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            reason = error.strerror or error
            raise StorageError(f"{path} of the run before cannot be removed: {reason}. Remove it.") from error
