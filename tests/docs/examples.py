"""Import of the scripts in docs/examples as modules; they may import each other, as when they are run."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "examples"


def load(name: str) -> Any:
    """Import an example, with the folder on sys.path for that time."""
    with patch.object(sys, "path", [str(FOLDER), *sys.path]):
        return importlib.import_module(name)
