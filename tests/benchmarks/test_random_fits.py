"""Random fits notice predictions that are not those of the motion, and values that pass and are wrong."""

from __future__ import annotations

import random
from typing import Any

import pytest

from benchmarks.fuzz.fits.target import FEATURES, FitTarget, Wrong
from simphys.experiment import sensors
from simphys.experiment.sensors import DelayedPlan


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory: pytest.TempPathFactory) -> FitTarget:
    """Its rate is seen, which is not the first field of its state."""
    return FitTarget("pendulum", tmp_path_factory.mktemp("pendulum"))


def use(fits: FitTarget, *features: str) -> None:
    """Fit the length with these features."""
    tables = fits._make_tables(random.Random(1), "length")
    for name in features:
        FEATURES[name](random.Random(1), tables)
    fits._use(tables, frozenset(features))


def test_predictions_of_late_channels_from_the_wrong_steps_are_found(
    pendulum: FitTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(pendulum, "late")
    right, around = sensors.sample_delayed, DelayedPlan.around

    def as_long_as_the_first(seen: Any, components: Any, delay: Any, dt: float, fields: Any) -> Any:
        """Count the steps of the first field: a fit keeps one of a field that no channel sees."""
        rows = len(fields[0].data)
        monkeypatch.setattr(DelayedPlan, "around", lambda self, delay, _: around(self, delay, rows))
        return right(seen, components, delay, dt, fields)

    monkeypatch.setattr(sensors, "sample_delayed", as_long_as_the_first)
    with pytest.raises(Wrong, match="apart from the motion"):
        use(pendulum, "late")


def test_a_wrong_value_that_passed_is_found(pendulum: FitTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    use(pendulum)
    monkeypatch.setitem(pendulum._values, "length", pendulum._values["length"] * 1.02)
    with pytest.raises(Wrong, match=r"passed with 0\.(80|79)\d* .*, the truth is 0\.816"):
        use(pendulum)


@pytest.mark.parametrize("feature", FEATURES)
def test_every_feature_fits_a_scene(feature: str, pendulum: FitTarget) -> None:
    use(pendulum, feature)


def test_a_seed_repeats_a_fit(pendulum: FitTarget) -> None:
    first, second = (pendulum.make_case(random.Random("0 5"))[0] for _ in range(2))
    assert first == second and " is unknown; " in first
