"""Loading of scene files with overrides: a validated scene, or one error with every problem."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from simphys.autograd.errors import InputError
from simphys.scenefile.checks import check_against_fields, check_sections
from simphys.scenefile.errors import ConfigError, Where, config_error, shown
from simphys.scenefile.locate import locate
from simphys.scenefile.overrides import Override, apply_override, parse_override
from simphys.scenefile.section import EACH, Key, Problem
from simphys.scenefile.sections import Config
from simphys.scenefile.simulators import find_config
from simphys.scenefile.validate import did_you_mean, validate_sections

_PATHS: tuple[Key, ...] = (
    ("observations", "file"),
    ("loss", "terms", EACH, "file"),
    ("loss", "terms", EACH, "target"),
    ("unknowns", EACH, "start"),
    ("unknowns", EACH, "truth"),
)
"""Keys that hold paths of input files, besides `Config.FILES`. `output.folder` is relative to the current folder."""


def load(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read, override and validate a scene.

    Args:
        path: the TOML file. Paths in it are relative to its folder.
        overrides: texts such as `material.stiffness=5e3`, later ones win. Paths in them are relative to the current
            folder.

    Returns:
        The config with every default filled in and the paths of inputs absolute.

    Raises:
        ConfigError: with all problems of the file and the overrides, each with its line or its override.
    """
    path = Path(path)
    text = _read(path)
    data = _parse(text, path)
    files = _files_of(data)
    data = _with_absolute_paths(data, (), path.parent, files)
    applied, errors = _override(data, overrides, files)
    if isinstance(output := data.setdefault("output", {}), dict):
        output.setdefault("folder", f"runs/{path.stem}")
    try:
        config = _validated(data, _places(path, text, applied))
    except ConfigError as error:
        raise ConfigError([*errors, *error.errors]) from None
    if errors:
        raise ConfigError(errors)
    return config


def from_dict(data: Mapping[str, Any], *, source: str = "scene") -> Config:
    """Validate a scene given as nested tables, made by `to_dict` or by a script.

    Lists may be NumPy arrays or tuples; paths are relative to the current folder. `source` names it in errors.
    """
    plain = _plain(data)
    plain = _with_absolute_paths(plain, (), Path.cwd(), _files_of(plain))
    return _validated(plain, lambda key: (0, source))


def to_dict(config: Config) -> dict[str, Any]:
    """Convert the scene to nested tables that json can write and `from_dict` reads."""
    return config.model_dump(mode="json", exclude_none=True)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        folder = path.parent
        near = [each.name for each in sorted(folder.glob("*.toml"))] if folder.is_dir() else []
        remedy = did_you_mean(path.name, near) if near else "Give the path of a scene, a TOML file."
        raise ConfigError([InputError(str(path), "the scene file must exist", "no such file", remedy)]) from error
    except UnicodeDecodeError as error:
        found = f"byte {error.start} that is not UTF-8"
        raise ConfigError([InputError(str(path), "a scene is UTF-8 text", found, "Save it as UTF-8.")]) from error
    except OSError as error:
        found = error.strerror or str(error)
        raise ConfigError([InputError(str(path), "the scene file must be readable", found, "Mend that.")]) from error


def _parse(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        complaint, _, position = str(error).rpartition(" (at ")
        match = re.match(r"line (\d+)", position)
        number = int(match.group(1)) if match else text.count("\n") + (not text.endswith("\n"))
        lines = text.splitlines()
        line = lines[number - 1].strip() if 0 < number <= len(lines) else "the end of the file"
        who = f"{path}:{number}"
        raise ConfigError([InputError(who, "a scene must be valid TOML", shown(line), f"{complaint}.")]) from error


def _override(
    data: dict[str, Any], texts: Sequence[str], files: Sequence[Key]
) -> tuple[list[Override], list[InputError]]:
    """Override values of the scene in place; return the applied overrides, and the errors of the others."""
    applied: list[Override] = []
    errors: list[InputError] = []
    for text in texts:
        try:
            override = parse_override(text)
            value = _with_absolute_paths(override.value, override.key, Path.cwd(), files)
            applied.append(apply_override(data, Override(override.key, value, text)))
        except InputError as error:
            errors.append(error)
    return applied, errors


def _files_of(data: Mapping[str, Any]) -> tuple[Key, ...]:
    """Return the keys of the simulator's sections that hold paths of input files."""
    config = find_config(_simulator_name(data))
    return () if isinstance(config, Problem) else config.FILES


def _with_absolute_paths(value: Any, key: Key, folder: Path, files: Sequence[Key]) -> Any:
    """Resolve the paths within the value at a key against a folder; () is the key of the whole scene."""
    for path in (*_PATHS, *files):
        if len(key) <= len(path) and all(part in (EACH, at) for part, at in zip(path, key, strict=False)):
            value = _resolved(value, path[len(key) :], folder)
    return value


def _resolved(value: Any, rest: Key, folder: Path) -> Any:
    if not rest:
        return str((folder / Path(value).expanduser()).resolve()) if isinstance(value, str) else value
    if isinstance(value, list) and rest[0] == EACH:
        return [_resolved(item, rest[1:], folder) for item in value]
    if isinstance(value, dict) and rest[0] == EACH:
        return {name: _resolved(item, rest[1:], folder) for name, item in value.items()}
    if isinstance(value, dict) and rest[0] in value:
        return {**value, rest[0]: _resolved(value[rest[0]], rest[1:], folder)}
    return value


def _plain(value: Any) -> Any:
    """Convert NumPy arrays, NumPy numbers and tuples in nested tables to types of TOML."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _places(path: Path, text: str, overrides: Sequence[Override]) -> Where:
    """Return a function that finds the place of a key: an override, or a line of the file."""

    @cache
    def lines() -> dict[Key, int]:
        return locate(text)

    def where(key: Key) -> tuple[int, str]:
        for override in reversed(overrides):
            if override.key == key[: len(override.key)]:
                return 0, override.who
        if key not in lines():
            for override in reversed(overrides):
                if override.key[: len(key)] == key:
                    return 0, override.who
        for end in range(len(key), 0, -1):
            if key[:end] in lines():
                line = lines()[key[:end]]
                return line, f"{path}:{line}"
        return 0, str(path)

    return where


def _validated(data: dict[str, Any], where: Where) -> Config:
    model = find_config(_simulator_name(data))
    if isinstance(model, Problem):
        _, problems = validate_sections(Config, {key: data[key] for key in Config.model_fields if key in data})
        problems = [problem for problem in problems if problem.key[0] != "simulator"]
        raise config_error([model, *problems], where)

    sections, problems = validate_sections(model, data)
    problems += check_sections(sections)
    problems += (of_simulator := model.find_problems(sections))
    own = {"simulator"} | (model.model_fields.keys() - Config.model_fields.keys())
    config = model.model_construct(**sections)
    if not of_simulator and own <= sections.keys():
        problems += check_against_fields(sections, config.fields)
    if problems:
        raise config_error(problems, where)
    return config


def _simulator_name(data: Mapping[str, Any]) -> object:
    return data["simulator"].get("name") if isinstance(data.get("simulator"), Mapping) else None
