"""Importing this module keeps the package's one name: `simphys.autograd`, although its folder is called autograd/.

Raises ImportError when the package was imported under another name. Two names would mean two graphs, two Tensor types
and two sessions of the compiler; and the top-level name `autograd` is another package's, which others import.
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
