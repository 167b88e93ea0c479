"""Small pieces of HTML for notebooks: tables, text and pictures, in the colours of the notebook."""

from __future__ import annotations

import base64
from collections.abc import Collection, Sequence
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURE_DPI = 80


def html_table(
    caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Collection[int] = ()
) -> str:
    """Format a table with a caption; `numbers` are the columns that are aligned to the right. All text is escaped."""

    def cells(row: Sequence[str], kind: str) -> str:
        made = []
        for place, cell in enumerate(row):
            side = "right" if place in numbers else "left"
            made.append(f'<{kind} style="text-align:{side}">{escape(cell)}</{kind}>')
        return f"<tr>{''.join(made)}</tr>"

    above = f"<caption style='text-align:left;caption-side:top;font-weight:600'>{escape(caption)}</caption>"
    head = f"<thead>{cells(heads, 'th')}</thead>" if any(heads) else ""
    return f"<table>{above}{head}<tbody>{''.join([cells(row, 'td') for row in rows])}</tbody></table>"


def html_text(text: str) -> str:
    """Format text of fixed width."""
    return f"<pre>{escape(text)}</pre>"


def html_picture(figure: Figure, alt: str) -> str:
    """Format a figure as a picture within the page."""
    file = BytesIO()
    figure.savefig(file, format="png", dpi=PICTURE_DPI)
    data = base64.b64encode(file.getvalue()).decode()
    return f'<img style="max-width:100%" alt="{escape(alt)}" src="data:image/png;base64,{data}">'
