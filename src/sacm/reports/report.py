"""A report: sentences, tables and figures, rendered in six formats."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sacm.errors import ArgumentError
from sacm.files import write_atomically
from sacm.reports.table import Table, escape_latex

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

FORMATS = ("table", "md", "latex", "csv", "json", "html")


@dataclass(frozen=True)
class Report:
    """What was found.

    Attributes:
        title: What was asked.
        sentences: The answer.
        tables: The evidence.
        rows: Every run, as CSV.
        figures: Captions with drawings, for HTML.
        notes: What a reader must know besides.
        narrow: Headings that a terminal shows; empty means all.
        facts: More to write as JSON, by name.
    """

    title: str
    sentences: tuple[str, ...]
    tables: tuple[Table, ...]
    rows: str = ""
    figures: tuple[tuple[str, Figure], ...] = ()
    notes: tuple[str, ...] = ()
    narrow: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)

    def print(self, console: Console | None = None) -> None:
        """Print on a terminal."""
        from rich.console import Console

        console = console or Console()
        for table in self.tables:
            (table.only(self.narrow) if self.narrow else table).print(console)
        for text in (*self.sentences, *(f"Note: {note}" for note in self.notes)):
            console.print(text, highlight=False, markup=False)

    def render(self, style: str) -> str:
        """The report as text.

        Args:
            style: One of `FORMATS`; a table is for terminals of any width.

        Raises:
            ArgumentError: There is no such format.
        """
        if style not in FORMATS:
            raise ArgumentError(f"--format {style!r}: use {', '.join(FORMATS)}.")
        return str(getattr(self, f"_{style}")())

    def write(self, path: Path, style: str) -> None:
        """Write to a file, which is whole or not there."""
        text = self.render(style)
        write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))

    def _table(self) -> str:
        blocks = [f"{table.caption}\n{table.plain()}" for table in self.tables]
        return "\n\n".join([self.title, *self.sentences, *blocks, *self.notes]) + "\n"

    def _md(self) -> str:
        tables = [f"{table.caption}\n\n{table.markdown()}".lstrip() for table in self.tables]
        return "\n\n".join([f"# {self.title}", *self.sentences, *tables, *self.notes]) + "\n"

    def _latex(self) -> str:
        lines = [f"% {escape_latex(text)}" for text in (self.title, *self.sentences, *self.notes)]
        return "\n\n".join(["\n".join(lines), *(table.latex() for table in self.tables)]) + "\n"

    def _csv(self) -> str:
        return self.rows or "\n".join(table.csv() for table in self.tables)

    def _json(self) -> str:
        record = {
            "title": self.title,
            "sentences": self.sentences,
            **self.facts,
            "tables": [{"caption": t.caption, "rows": t.records()} for t in self.tables],
            "notes": self.notes,
        }
        return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def _html(self) -> str:
        from sacm.reports.page import Section, embed_figure, page, paragraph

        drawn = [
            embed_figure(drawing, caption, name=f"figure-{position}")
            for position, (caption, drawing) in enumerate(self.figures)
        ]
        sections = [Section("Figures", tuple(drawn))] if drawn else []
        sections += [
            Section(table.caption or "Results", (replace(table, caption="").html(),))
            for table in self.tables
        ]
        if self.notes:
            sections.append(Section("Notes", tuple(map(paragraph, self.notes))))
        return page(self.title, self.sentences, sections, style="figure svg{max-width:52rem}")
