"""A table for a terminal, whatever its width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sacm.display.text_table import TextTable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_INDENT, _GAP = "  ", "  "


def print_table(console: Console, table: TextTable) -> None:
    """Print a table as it is, or, where it is too wide, as one that can still be read.

    In a table that is too wide, words that stay the same from row to row become a line above
    them, and columns of numbers that do not fit beside each other follow in further tables.

    Args:
        console: Where to print; its width counts.
        table: What to print.

    Example:
        >>> from rich.console import Console
        >>> from sacm.display.text_table import TableRow
        >>> table = TextTable(("data", "error"), (TableRow(("ETTh1", "0.4")),))
        >>> print_table(Console(width=40), table)  # doctest: +SKIP
    """
    if table.caption:
        # Not as rich's title, which is wrapped to the width of the columns.
        console.print(table.caption, style="italic", markup=False, highlight=False)
    table = replace(table, caption="")
    rich = table.rich()
    if console.measure(rich, options=console.options.update(width=10_000)).maximum <= console.width:
        console.print(rich)
        return
    for part in _spread(table, console.width):
        console.print(_sections(part), soft_wrap=True, highlight=False)


def _spread(table: TextTable, width: int) -> list[TextTable]:
    """The same rows in tables of as many columns of numbers as fit, at least one each."""
    words, widths = table.text_columns, table.widths()
    room = width - len(_INDENT) - widths[words - 1]
    parts: list[list[int]] = [[]]
    left = room
    for at in range(words, len(table.headings)):
        needed = len(_GAP) + widths[at]
        if parts[-1] and needed > left:
            parts.append([])
            left = room
        parts[-1].append(at)
        left -= needed
    return [table.columns([*range(words), *part]) for part in parts]


def _sections(table: TextTable) -> Text:
    """Rows under the words that they share."""
    from rich.text import Text

    first = table.text_columns - 1
    widths = table.widths()[first:]
    text = Text()
    text.append(_line(table.headings[first:], widths), style="bold")
    text.append("\n" + "─" * (len(_INDENT) + sum(widths) + len(_GAP) * (len(widths) - 1)))
    shared = ("",) * first
    for row in table.rows:
        # A cell that is left blank means the same as the one above.
        words = tuple(own or above for own, above in zip(row.cells, shared, strict=False))
        if words != shared:
            shared = words
            text.append("\n" + ", ".join(filter(None, words)), style="bold")
        text.append("\n" + _line(row.cells[first:], widths), style="dim" if row.quiet else "")
    text.append("\n")
    return text


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    word, *numbers = cells
    figures = (cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True))
    return _INDENT + _GAP.join((word.ljust(widths[0]), *figures))
