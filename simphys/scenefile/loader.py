"""Loading of scene files with overrides: a validated scene, or one error with every problem."""

from __future__ import annotations

import pickle
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from simphys.autograd.errors import InputError
from simphys.scenefile.body_names import NAMED, replace_names
from simphys.scenefile.checks import check_against_fields, check_sections
from simphys.scenefile.entry_names import replace_entry_names
from simphys.scenefile.errors import ConfigError, Where, config_error, shown
from simphys.scenefile.experiments import MERGED, complete_experiments
from simphys.scenefile.locate import locate
from simphys.scenefile.model_sections import check_fields, check_model
from simphys.scenefile.overrides import Override, apply_override, parse_override
from simphys.scenefile.section import EACH, Key, Problem
from simphys.scenefile.sections import Config, TimeSection
from simphys.scenefile.simulators import find_config
from simphys.scenefile.sized import file_keys, named_keys
from simphys.scenefile.sizes import find_size_problems, numerical_errors_as_input_errors
from simphys.scenefile.validate import did_you_mean, find_broken_texts, validate_sections

_PATHS: tuple[Key, ...] = (
    ("experiments", EACH, "values", EACH, "value"),
    ("loss", "terms", EACH, "target"),
    ("unknowns", EACH, "start"),
    ("values", EACH, "value"),
    ("unknowns", EACH, "truth"),
)
"""Keys of paths of input files, besides those called `file`; `output.folder` is relative to the current folder."""


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
    with _too_deep_as_config_error(str(path)):
        return _load(Path(path), overrides)


def _load(path: Path, overrides: Sequence[str]) -> Config:
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


def read_tables(path: Path) -> tuple[dict[str, Any], Where]:
    """Read any TOML file, and a function that finds the place of a key in it. Errors: ConfigError."""
    text = _read(path)
    with _too_deep_as_config_error(str(path)):
        return _parse(text, path), _places(path, text, ())


def from_dict(data: Mapping[str, Any], *, source: str = "scene") -> Config:
    """Validate a scene given as nested tables, made by `to_dict` or by a script.

    Lists may be NumPy arrays or tuples; paths are relative to the current folder. `source` names it in errors.
    """
    with _too_deep_as_config_error(source):
        plain = _plain(data)
        plain = _with_absolute_paths(plain, (), _current_folder(source), _files_of(plain))
        return _validated(plain, lambda key: (0, source))


def _current_folder(source: str) -> Path:
    try:
        return Path.cwd()
    except OSError as error:  # it was deleted
        remedy = "Change to another folder."
        raise ConfigError([InputError(source, "paths are relative to the current folder", "none", remedy)]) from error


@contextmanager
def _too_deep_as_config_error(source: str) -> Iterator[None]:
    """Turn the error of a scene of thousands of tables or lists within each other into a ConfigError."""
    try:
        yield
    except RecursionError:
        constraint, remedy = "tables and lists are nested some levels deep", "Nest them less."
        raise ConfigError([InputError(source, constraint, "hundreds of levels", remedy)]) from None


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
    except (OSError, ValueError) as error:  # ValueError: a null byte
        found = getattr(error, "strerror", None) or str(error)
        raise ConfigError([InputError(str(path), "the scene file must be readable", found, "Mend that.")]) from error


@lru_cache(maxsize=8)
def _parse_text(text: str) -> bytes:
    """Read TOML, as bytes from which pickle makes the tables anew: in a sweep, one text is loaded many times."""
    return pickle.dumps(tomllib.loads(text))


def _parse(text: str, path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = pickle.loads(_parse_text(text))
        return found
    except tomllib.TOMLDecodeError as error:
        complaint, _, position = str(error).rpartition(" (at ")
        match = re.match(r"line (\d+)", position)
        number = int(match.group(1)) if match else text.count("\n") + (not text.endswith("\n"))
        lines = text.splitlines()
        line = lines[number - 1].strip() if 0 < number <= len(lines) else "the end of the file"
        who = f"{path}:{number}"
        raise ConfigError([InputError(who, "a scene must be valid TOML", shown(line), f"{complaint}.")]) from error
    except ValueError as error:  # of Python: a whole number of thousands of digits
        remedy = "Write it in scientific notation."
        raise ConfigError([InputError(str(path), "numbers have some digits", str(error), remedy)]) from error


def _override(
    data: dict[str, Any], texts: Sequence[str], files: Sequence[Key]
) -> tuple[list[Override], list[InputError]]:
    """Override values of the scene in place; return the applied overrides, and the errors of the others."""
    applied: list[Override] = []
    errors: list[InputError] = []
    for text in texts:
        try:
            override = parse_override(text)
            value = _with_absolute_paths(override.value, override.key, _current_folder(override.who), files)
            applied.append(apply_override(data, Override(override.key, value, text)))
        except InputError as error:
            errors.append(error)
    return applied, errors


def _files_of(data: Mapping[str, Any]) -> tuple[Key, ...]:
    """Return the keys of a scene that are called `file`."""
    config = find_config(_simulator_name(data))
    return () if isinstance(config, Problem) else file_keys(config)


def _with_absolute_paths(value: Any, key: Key, folder: Path, files: Sequence[Key]) -> Any:
    """Resolve the paths within the value at a key against a folder; () is the key of the whole scene."""
    for path in (*_PATHS, *files):
        if len(key) <= len(path) and all(part in (EACH, at) for part, at in zip(path, key, strict=False)):
            value = _resolved(value, path[len(key) :], folder)
    return value


def _resolved(value: Any, rest: Key, folder: Path) -> Any:
    if not rest:
        return absolute(value, folder) if isinstance(value, str) else value
    if isinstance(value, list) and rest[0] == EACH:
        return [_resolved(item, rest[1:], folder) for item in value]
    if isinstance(value, dict) and rest[0] == EACH:
        return {name: _resolved(item, rest[1:], folder) for name, item in value.items()}
    if isinstance(value, dict) and rest[0] in value:
        return {**value, rest[0]: _resolved(value[rest[0]], rest[1:], folder)}
    return value


def absolute(path: str, folder: Path) -> str:
    """Resolve a path; one that cannot be resolved stays, and cannot be opened either."""
    try:
        return str((folder / Path(path).expanduser()).resolve())
    except (OSError, RuntimeError, ValueError):  # a loop of links, no such user, a null byte
        return path


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

    def is_here(key: Key) -> bool:
        return key in lines() or any(override.key == key for override in overrides)

    def where(key: Key) -> tuple[int, str]:
        if key[:1] == ("experiments",) and len(key) > 3 and key[2] in MERGED and not is_here(key):
            key = key[2:] if is_here(key[2:]) else key  # what an experiment has from the whole scene
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

    data, unnamed = replace_names(complete_experiments(data), (*NAMED, *named_keys(model)))
    data, without_entries = replace_entry_names(data, model.ROWS)
    unnamed += without_entries
    sections, problems = validate_sections(model, data)
    problems += find_broken_texts(data)
    problems += check_sections(sections)
    placeholder = TimeSection(dt=1.0, steps=1)  # in place of one that is invalid: models, and so fields, have a dt
    config = model.model_construct(**{"time": placeholder, **sections})
    problems += _problems_of_simulator(config, sections, where)
    problems = [problem for problem in problems if not any([_is_of(problem, each) for each in unnamed])] + unnamed
    if problems:
        raise config_error(problems, where)
    return config


def _is_of(problem: Problem, other: Problem) -> bool:
    """True for a problem at the key of another one, or at a list of which this is an element."""
    return other.key[: len(problem.key)] == problem.key and all(
        isinstance(n, int) for n in other.key[len(problem.key) :]
    )


def _problems_of_simulator(config: Config, sections: dict[str, Any], where: Where) -> list[Problem]:
    """Collect the problems of the simulator's sections, and of others that depend on its fields.

    Of sizes alone, where what they count does not fit: all else would allocate it.
    """
    own = {"simulator"} | (type(config).model_fields.keys() - Config.model_fields.keys())
    try:
        with numerical_errors_as_input_errors(lambda: where(("simulator",))[1]):
            if found := find_size_problems(sections, config.SIZES):
                return found
            found = list(check_fields(config, sections))
            wrong = {problem.key[0] for problem in found}
            found += config.find_problems({name: section for name, section in sections.items() if name not in wrong})
            if not found and own <= sections.keys():
                found = list(check_model(config))
            if not found and own <= sections.keys():
                found = list(check_against_fields(sections, config.fields, config.DEMANDS))
            return found
    except ConfigError:
        raise
    except InputError as error:
        raise ConfigError([error]) from error.__cause__


def _simulator_name(data: Mapping[str, Any]) -> object:
    return data["simulator"].get("name") if isinstance(data.get("simulator"), Mapping) else None
