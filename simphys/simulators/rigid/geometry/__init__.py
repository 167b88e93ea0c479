"""Contact geometry of rigid bodies: start reading at candidates.py, the pairs of features, and pair.py, one of them."""

from __future__ import annotations

from .candidates import Candidates, candidates
from .contacts import Contacts

__all__ = ["Candidates", "Contacts", "candidates"]
