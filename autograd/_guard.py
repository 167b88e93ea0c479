"""Keeps this package's one name: it is `simphys.autograd`, although its folder is called autograd/.

Two copies under two names would hold two graphs, two Tensor types and two compiler sessions, and the top-level name
`autograd` belongs to another package, which other packages import.
"""

from __future__ import annotations

NAME = "simphys.autograd"


def refuse_other_names(name: str) -> None:
    """Raise ImportError when the package that calls itself `name` is not imported as `simphys.autograd`."""
    if name != NAME:
        raise ImportError(
            f"this folder is {NAME} and was imported as {name!r}: the top-level name 'autograd' belongs to another "
            f"package. Write `from {NAME} import ...`; if you meant the other package, run Python from another folder "
            "or as `python -P`, so that this folder is not found first.",
            name=name,
        )
