"""Scripts of docs/examples as modules; one may import another, as it does when it is run."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "examples"


def load(name: str) -> Any:
    """Import an example; the folder is on sys.path only for that time."""
    with patch.object(sys, "path", [str(FOLDER), *sys.path]):
        return importlib.import_module(name)
