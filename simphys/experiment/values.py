"""Values of a scene that replace those of its simulator's sections, such as what a fit has found."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from simphys import scenefile

from .setup import Setup

S = TypeVar("S", bound=Setup)


def with_values(setup: S) -> S:
    """Give the parameters, the initial state, the design and the controls the values of the section [values].

    Errors: InputError for values that cannot be simulated, such as those that the time step is too long for.
    """
    config = setup.config
    values = setup.values()
    sections = config.values
    changed = {section.parameter for section in sections.values()}
    found = scenefile.with_values(sections, {name: np.asarray(values[name]) for name in changed})
    parts = {}
    for part in ("params", "state", "design", "controls", "sensor"):
        record = getattr(setup, part)
        own = {} if record is None else {name: found[name] for name in record.names() if name in found}
        parts[part] = record.replace(**own) if own else record
    parts["params"] = config.designed(setup.model, parts["params"], parts["design"])
    config.require_stable(setup.model, parts["params"], parts["state"])
    state = config.completed(parts["state"], parts["design"], parts["params"])
    parts["state"] = config.first_state(setup.model, parts["params"], state)
    return replace(setup, **parts)
