"""Tables on a terminal: what their cells say, however wide the columns are and whatever stands between them."""

from __future__ import annotations

import re

BAR = re.compile("[│┃║]")


def table_rows(text: str) -> list[list[str]]:
    """Return the cells of each row of the tables in what was printed, those at the top included."""
    lines = [BAR.split(line) for line in text.splitlines()]
    return [[cell.strip() for cell in line[1:-1]] for line in lines if len(line) > 2]
