"""The check of the package's name, made at import: `simphys.autograd`, although its folder is called autograd/.

It raises ImportError where the package is imported under another name. Two names would mean two graphs, two Tensor
types and two sessions of the compiler. The top-level name `autograd` belongs to another package.
"""

from __future__ import annotations

__all__: list[str] = []

_NAME = "simphys.autograd"

if __package__ != _NAME:
    raise ImportError(
        f"this folder is {_NAME} and was imported as {__package__!r}: the top-level name 'autograd' belongs to another "
        f"package. Write `from {_NAME} import ...`; if you meant the other package, run Python from another folder "
        "or as `python -P`, so that this folder is not found first.",
        name=__package__,
    )
