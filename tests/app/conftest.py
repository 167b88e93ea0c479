"""Settings of the tests of the command line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="package")
def _terminal() -> Iterator[None]:
    """Wrap and colour lines alike, whatever the terminal or the service that the tests run in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        patch.setattr("typer.rich_utils.FORCE_TERMINAL", False)
        for name in ("FORCE_COLOR", "NO_COLOR", "PY_COLORS"):
            patch.delenv(name, raising=False)
        yield
