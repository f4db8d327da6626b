"""A table once, for the terminal, a page or a text file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

from sacm.display.latex import escape as in_latex
from sacm.errors import ArgumentError

if TYPE_CHECKING:
    from rich.table import Table as RichTable


_TIGHT: Any = {"title_justify": "left", "pad_edge": False, "padding": (0, 1, 0, 0)}


@dataclass(frozen=True)
class TableRow:
    """Cells; `group` starts a block of rows, `quiet` is what is not a result of ours."""

    cells: tuple[str, ...]
    group: bool = False
    quiet: bool = False


@dataclass(frozen=True)
class TextTable:
    """Headings and rows of text; the first `text_columns` columns are words, the rest numbers."""

    headings: tuple[str, ...]
    rows: tuple[TableRow, ...]
    caption: str = ""
    text_columns: int = 1

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows, 1):
            if len(row.cells) != len(self.headings):
                raise ArgumentError(
                    f"row {number} has {len(row.cells)} cells for {len(self.headings)} headings."
                )

    def only(self, headings: Sequence[str]) -> TextTable:
        """The same table with some of its columns."""
        return self.columns([self.headings.index(heading) for heading in headings])

    def columns(self, kept: Sequence[int]) -> TextTable:
        """The same table with some of its columns, by their places."""
        rows = [
            TableRow(tuple(row.cells[i] for i in kept), row.group, row.quiet) for row in self.rows
        ]
        words = sum(i < self.text_columns for i in kept)
        return TextTable(tuple(self.headings[i] for i in kept), tuple(rows), self.caption, words)

    def widths(self) -> list[int]:
        """Letters of the widest cell of each column, its heading included."""
        lines = (self.headings, *(row.cells for row in self.rows))
        return [max(map(len, column)) for column in zip(*lines, strict=True)]

    def pieces(self, lines: int) -> list[TextTable]:
        """The same table as several of at most `lines` rows each."""
        return [
            replace(self, rows=self.rows[start : start + lines])
            for start in range(0, max(len(self.rows), 1), lines)
        ]

    def html(self, *, kind: str = "") -> str:
        """A `<table>` that scrolls sideways on its own where the page is narrow."""

        def line(cells: Sequence[str], tag: str) -> str:
            kinds = [' class="text"' if i < self.text_columns else "" for i in range(len(cells))]
            pairs = zip(kinds, cells, strict=True)
            return "".join(f"<{tag}{kind}>{escape(cell)}</{tag}>" for kind, cell in pairs)

        rows = "".join(f"<tr{_classes(row)}>{line(row.cells, 'td')}</tr>" for row in self.rows)
        caption = f'<p class="note">{escape(self.caption)}</p>' if self.caption else ""
        named = f' aria-label="{escape(self.caption)}"' if self.caption else ""
        chosen = f' class="{escape(kind)}"' if kind else ""
        # The caption stays outside of what scrolls.
        return (
            f'{caption}<div class="wide"><table{chosen}{named}>'
            f"<thead><tr>{line(self.headings, 'th')}</tr></thead>"
            f"<tbody>{rows}</tbody></table></div>"
        )

    def markdown(self) -> str:
        """A pipe table."""
        rules = ["---" if i < self.text_columns else "---:" for i in range(len(self.headings))]
        lines = [self.headings, rules, *(row.cells for row in self.rows)]
        return "\n".join("| " + " | ".join(map(_in_pipes, cells)) + " |" for cells in lines)

    def plain(self) -> str:
        """Text in columns that line up, for any place."""
        lines = [self.headings, *(row.cells for row in self.rows)]
        widths = self.widths()

        def aligned(cells: Sequence[str]) -> str:
            pairs = enumerate(zip(cells, widths, strict=True))
            shown = (c.ljust(w) if i < self.text_columns else c.rjust(w) for i, (c, w) in pairs)
            return "  ".join(shown).rstrip()

        return "\n".join(map(aligned, lines))

    def latex(self) -> str:
        """A `table` environment that needs the package booktabs; quiet rows are slanted."""
        lines = []
        for i, row in enumerate(self.rows):
            if row.group and i:
                lines.append(r"\midrule")
            cells = [in_latex(cell) for cell in row.cells]
            shown = [rf"\textsl{{{cell}}}" for cell in cells] if row.quiet else cells
            lines.append(" & ".join(shown) + r" \\")
        words = "l" * self.text_columns
        columns = words + "r" * (len(self.headings) - self.text_columns)
        caption = [rf"\caption{{{in_latex(self.caption)}}}"] if self.caption else []
        start = [r"\begin{table}[tbp]", r"\centering", *caption, r"\small"]
        head = [rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}", r"\toprule"]
        head += [" & ".join(map(in_latex, self.headings)) + r" \\", r"\midrule"]
        end = [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
        return "\n".join([*start, *head, *lines, *end])

    def rich(self) -> RichTable:
        """For a terminal."""
        from rich.box import SIMPLE_HEAD
        from rich.markup import escape as plain
        from rich.table import Table as RichTable

        table = RichTable(box=SIMPLE_HEAD, title=plain(self.caption), **_TIGHT)
        for i, heading in enumerate(self.headings):
            if i < self.text_columns:
                table.add_column(plain(heading), overflow="fold")
            else:
                table.add_column(plain(heading), justify="right", no_wrap=True)
        for i, row in enumerate(self.rows):
            ends = i + 1 < len(self.rows) and self.rows[i + 1].group
            style = "dim" if row.quiet else None
            table.add_row(*map(plain, row.cells), style=style, end_section=ends)
        return table


def _in_pipes(cell: str) -> str:
    return " ".join(cell.replace("|", "\\|").splitlines())


def _classes(row: TableRow) -> str:
    names = " ".join(name for name in ("group", "quiet") if getattr(row, name))
    return f' class="{names}"' if names else ""
