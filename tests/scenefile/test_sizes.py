"""Sizes are judged before anything is allocated; numbers that nothing can compute with end in an InputError."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.autograd.errors import InputError
from simphys.experiment.scene import build_scene
from simphys.scenefile import from_dict, load, to_dict
from simphys.scenefile.errors import ConfigError
from simphys.scenefile.sizes import find_size_problems, numerical_errors_as_input_errors

SCENES = Path(__file__).parents[2] / "scenes"

HUGE = [
    ("smoke/drag", "grid.cells", [10**6, 10**6]),
    ("heat/source", "grid.cells", [2**31 - 1, 2**31 - 1]),
    ("wave/inversion", "grid.cells", [10**6, 10**6]),
    ("shallow_water/harbour", "grid.cells", [10**6, 10**6]),
    ("mpm/squeeze", "grid.cells", [10**6, 10**6]),
    ("mass_spring/jelly", "geometry.lattice.shape", [10**5, 10**5]),
]


def changed(name: str, key: str, value: Any) -> dict[str, Any]:
    """The tables of a scene that ships, with another value at a dotted key."""
    tables = to_dict(load(SCENES / f"{name}.toml"))
    *path, last = key.split(".")
    owner: Any = tables
    for part in path:
        owner = owner[part]
    owner[last] = value
    return tables


@pytest.mark.parametrize(("name", "key", "value"), HUGE)
def test_a_huge_scene_is_refused_before_anything_is_allocated(
    name: str, key: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, sizes = changed(name, key, value), [0]

    def counted(make: Any) -> Any:
        def made(*arguments: Any, **options: Any) -> Any:
            array = make(*arguments, **options)
            sizes.append(array.nbytes)
            return array

        return made

    monkeypatch.setattr("simphys.scenefile.sizes.measure_free", lambda: 1 << 36)
    for maker in ("arange", "array", "asarray", "empty", "full", "indices", "linspace", "ones", "zeros"):
        monkeypatch.setattr(np, maker, counted(getattr(np, maker)))
    with pytest.raises(
        ConfigError,
        match=rf"{key}: what it counts must fit into the free memory, .* found (.* or more|more than any)",
    ):
        from_dict(tables)
    assert max(sizes) < 1 << 24


@pytest.mark.parametrize("count", [2**31, 10**30])
def test_a_count_beyond_32_bits_is_refused(count: int) -> None:
    with pytest.raises(ConfigError, match="2147483647"):
        from_dict(changed("smoke/drag", "time.steps", count))


def test_sizes_are_multiplied_as_exact_integers() -> None:
    sections = {"grid": {"cells": [2**31 - 1] * 3}, "lines": [{"count": 3}, {"count": 2**31 - 1}], "n": None}
    sizes = ((("grid", "cells"), 1), (("lines", "*", "count"), 2**20), (("n", "m"), 1))
    found = find_size_problems(sections, sizes)
    assert [problem.key for problem in found] == [("grid", "cells"), ("lines", 1, "count")]
    assert found[0].found == "more than any machine has"


@pytest.mark.parametrize("path", ["a\0b", "LOOP", "~no-such-user/x", "a" * 5000])
def test_a_path_that_cannot_be_resolved_is_named(path: str, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    tables = changed("smoke/taylor_green", "observations.file", path.replace("LOOP", str(tmp_path / "loop")))
    with pytest.raises(InputError) as caught:
        build_scene(from_dict(tables))
    assert max(map(len, str(caught.value).splitlines())) < 6000


def test_an_error_of_arithmetic_says_what_to_do() -> None:
    message = r"s: its numbers must be such .* found ZeroDivisionError: .* Correct numbers"
    with pytest.raises(InputError, match=message), numerical_errors_as_input_errors("s"):
        1 / 0  # noqa: B018
    with pytest.raises(InputError, match="own"), numerical_errors_as_input_errors("s"):
        raise InputError("own", "c", "f", "r")
    with pytest.raises(KeyboardInterrupt), numerical_errors_as_input_errors("s"):
        raise KeyboardInterrupt


@pytest.mark.parametrize("upper", [[1e6, 1e6], [1e300, 1e300]])
def test_particles_of_a_huge_box_are_counted_before_they_are_made(upper: list[float]) -> None:
    tables = to_dict(load(SCENES / "mpm" / "squeeze.toml"))
    tables["bodies"][0]["upper"] = upper
    with pytest.raises(ConfigError, match=r"bodies\.0: its particles must fit into the free memory"):
        from_dict(tables)


def test_a_sigma_whose_square_is_no_number_is_named() -> None:
    tables = to_dict(load(SCENES / "charges" / "find_charges.toml"))
    tables["observations"]["channels"][3]["sigma"] = 1e-300
    with pytest.raises(InputError, match=r"sigma: 1 / sigma\^2 must be a number; found 1e-300"):
        build_scene(from_dict(tables))


def test_a_tiny_normal_ends_in_no_division_by_zero() -> None:
    tables = to_dict(load(SCENES / "rigid" / "sliding_block.toml"))
    tables["planes"][0]["normal"] = [5e-324 * part for part in tables["planes"][0]["normal"]]
    with pytest.raises(InputError) as caught:
        build_scene(from_dict(tables))
    assert "ZeroDivisionError" not in str(caught.value)


def test_a_shot_of_a_huge_number_is_a_gap() -> None:
    tables = to_dict(load(SCENES / "wave" / "inversion.toml"))
    tables["sources"][1]["shot"] = 2**31 - 1
    with pytest.raises(ConfigError, match="must have as many sources as shot 0"):
        from_dict(tables)
