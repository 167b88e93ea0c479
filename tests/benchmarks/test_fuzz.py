"""Broken scenes and files end in errors that say what to do; a broken case that does not is found."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.compare import ROOT
from benchmarks.fuzz import limits, run
from benchmarks.fuzz.grow import Schema
from benchmarks.fuzz.mutations import damage, mutate, places, vary
from benchmarks.fuzz.worker import run_case
from simphys.autograd.errors import InputError, StorageError
from simphys.scenefile import load, to_dict

CASES = (
    dict.fromkeys(run.SCENES, 300)
    | dict.fromkeys(run.FILES, 500)
    | dict.fromkeys(run.SWEEPS, 100)
    | {"runs/interrupted": 12}
    | dict.fromkeys(run.RANDOM_STEPS, 3)
    | dict.fromkeys(run.FITS, 1)
)
"""Mutations of each target in the whole proof. `python -m benchmarks.fuzz --cases 100000` is the long run."""
QUICK = 50
"""Mutations of a target in the quick suite."""


@pytest.fixture(scope="module")
def runner() -> Iterator[run.Worker]:
    worker = run.Worker()
    yield worker
    worker.close()


@pytest.mark.parametrize("target", CASES)
def test_mutations_end_in_errors_that_say_what_to_do(
    target: str, runner: run.Worker, request: pytest.FixtureRequest
) -> None:
    count = CASES[target] if request.config.getoption("--full") else min(CASES[target], QUICK)
    findings = list(runner.cases(target, 0, range(count)))
    assert not findings, "\n".join(map(str, findings))


TABLES: dict[str, Any] = {"a": {"b": [1, 2.0, "x"], "c": True}, "d": [{"e": 1}]}


def test_a_seed_repeats_a_mutation() -> None:
    for seed in range(200):
        first, second = (mutate(TABLES, random.Random(seed)) for _ in range(2))
        assert repr(first) == repr(second)
        assert damage(b"0 1 2\n3 4 5\n", random.Random(seed)) == damage(b"0 1 2\n3 4 5\n", random.Random(seed))
    assert TABLES == {"a": {"b": [1, 2.0, "x"], "c": True}, "d": [{"e": 1}]}
    assert ("a", "b", 2) in list(places(TABLES)) and ("d", 0, "e") in list(places(TABLES))


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (InputError("s", "c", "f", "r"), ""),
        (InputError("s", "c", "f" * 300, "r"), "a message with a line of 315 characters"),
        (ZeroDivisionError("by 0"), "ZeroDivisionError: by 0"),
        (StorageError("cut"), ""),
        (limits.TooLong(), "more than 10 s"),
        (None, ""),
    ],
)
def test_each_ending_is_told_apart(error: BaseException | None, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def use() -> None:
        if error is not None:
            raise error

    class Stub:
        def make_case(self, chance: random.Random) -> tuple[str, Callable[[], None]]:
            return f"number {chance.random():g}", use

    monkeypatch.setattr(limits, "LONGEST", 300)
    words, found = run_case(Stub(), 0, 0)
    assert words.startswith("number 0.")
    assert found.startswith(ending) and bool(found) == bool(ending)


def test_targets_are_chosen_by_how_their_names_begin() -> None:
    assert run.choose_targets("", simulate=False) == [
        *run.SCENES,
        *run.SWEEPS,
        *run.FILES,
        *run.RUN_FOLDERS,
        *run.RANDOM_STEPS,
        *run.FITS,
    ]
    assert run.choose_targets("", simulate=True) == run.SIMULATED
    assert run.choose_targets("smoke/drag", simulate=False) == ["smoke/drag"]
    assert run.choose_targets("smoke/drag", simulate=True) == ["simulated/smoke/drag"]
    assert run.choose_targets("simulated/smoke/drag", simulate=False) == ["simulated/smoke/drag"]
    assert run.choose_targets("files", simulate=False) == run.FILES


def test_a_varied_scene_has_other_numbers_and_the_same_keys() -> None:
    for seed in range(50):
        varied, words = vary(TABLES, random.Random(seed))
        assert list(places(varied)) == list(places(TABLES)) and words
        assert [type(each) for each in varied["a"]["b"]] == [int, float, str] and varied["a"]["c"] is True


def test_keys_that_a_scene_has_not_are_drawn_from_its_schema() -> None:
    schema, tables = Schema("mass_spring"), to_dict(load(ROOT / "scenes" / "mass_spring" / "air_track.toml"))
    before = repr(tables)
    words = [schema.grow(tables, random.Random(seed))[1] for seed in range(50)]
    assert words == [schema.grow(tables, random.Random(seed))[1] for seed in range(50)] and repr(tables) == before
    missing = {"experiments.0", "observations.camera", "loss.terms.0", "unknowns.another"}
    for seed in range(10000):  # the rarest is in one of 160 draws
        drawn = schema.grow(tables, random.Random(seed))[1]
        missing = {key for key in missing if f"add {key} = " not in drawn}
        if not missing:
            break
    assert not missing


def test_the_page_on_reliability_names_tests_that_exist() -> None:
    root = Path(__file__).parents[2]
    named = re.findall(r"tests/[\w/]+(?:\.py)?", (root / "docs" / "reliability.md").read_text())
    assert len(named) > 10 and not [path for path in named if not (root / path).exists()]
