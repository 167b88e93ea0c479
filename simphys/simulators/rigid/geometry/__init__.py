"""Contact geometry of rigid bodies. Start with candidates.py, the pairs of features, and pair.py, a single pair."""

from __future__ import annotations

from .candidates import Candidates, find_candidates
from .contacts import Contacts

__all__ = ["Candidates", "Contacts", "find_candidates"]
