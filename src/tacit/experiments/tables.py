"""Tables for a terminal and for a page."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table as RichTable

from tacit.experiments.spec import Table


def rich(table: Table) -> RichTable:
    """For a terminal: numbers to the right; where it is narrow, text goes on in the next line."""
    drawn = RichTable(title=escape(table.title), caption=escape(table.note) or None, caption_justify="left", box=SIMPLE)
    for number, name in enumerate(table.header):
        drawn.add_column(escape(name), justify="left" if number == 0 else "right", overflow="fold")
    for line in table.lines:
        drawn.add_row(*map(escape, line))
    return drawn


def markdown(table: Table) -> str:
    """For a page: the title in bold, since headings are the page's own."""
    rule = ["---", *["---:"] * (len(table.header) - 1)]
    lines = [_line(table.header), _line(rule), *map(_line, table.lines)]
    return "\n".join([f"**{table.title}**", "", *lines, *(["", table.note] if table.note else []), ""])


def _line(cells: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
