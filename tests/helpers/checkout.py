"""Import of the package `benchmarks` of the checkout, whose root stays off sys.path, see pyproject.toml."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_folder = Path(__file__).resolve().parents[2] / "benchmarks"
_spec = importlib.util.spec_from_file_location("benchmarks", _folder / "__init__.py")
assert _spec is not None and _spec.loader is not None
if _spec.name not in sys.modules:
    _module = sys.modules[_spec.name] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(_module)
