"""One table for the terminal, Markdown, LaTeX, HTML, CSV and JSON.

A table holds values. Printed formats show numbers in a few digits, CSV and JSON as they are.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any

from sacm.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

UNDEFINED = "–"
_INDENT, _GAP = "  ", "  "
_TIGHT: Any = {"pad_edge": False, "padding": (0, 1, 0, 0)}
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "#": r"\#",
        "_": r"\_",
        "%": r"\%",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        # After a line's end these would be read as its options.
        "[": "{[}",
        "]": "{]}",
        "*": "{*}",
        "−": "$-$",
        "–": "--",
        "±": r"$\pm$",
        "…": r"\ldots{}",
        "σ": r"$\sigma$",
    }
)


@dataclass(frozen=True)
class Table:
    """Headings and rows of values.

    Attributes:
        headings: Names of the columns.
        rows: One tuple of values a row; None and NaN are undefined.
        caption: What the table shows.
        words: How many columns at the left name the row; the others hold numbers.
        formats: How the values of a column are printed, by heading; others by `number`.

    Example:
        >>> table = Table(("data", "MSE"), (("ILI", 2.7166839),))
        >>> print(table.markdown())
        | data | MSE |
        | --- | ---: |
        | ILI | 2.717 |
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    caption: str = ""
    words: int = 1
    formats: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for position, row in enumerate(self.rows, 1):
            if len(row) != len(self.headings):
                raise ArgumentError(
                    f"row {position} has {len(row)} cells for {len(self.headings)} headings."
                )

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, **options: Any) -> Table:
        """The columns and rows of a pandas frame; `options` are the other attributes."""
        rows = tuple(frame.itertuples(index=False, name=None))
        return cls(tuple(map(str, frame.columns)), rows, **options)

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """The rows as printed."""
        shown = [self.formats.get(heading, number) for heading in self.headings]
        return [
            tuple(
                UNDEFINED if is_undefined(value) else form(value)
                for form, value in zip(shown, row, strict=True)
            )
            for row in self.rows
        ]

    def only(self, names: Iterable[str]) -> Table:
        """The named columns, in their order, as far as they are there."""
        kept = [self.headings.index(name) for name in names if name in self.headings]
        return replace(
            self,
            headings=tuple(self.headings[at] for at in kept),
            rows=tuple(tuple(row[at] for at in kept) for row in self.rows),
            words=sum(at < self.words for at in kept),
        )

    def markdown(self) -> str:
        """A pipe table."""
        rules = ["---" if at < self.words else "---:" for at in range(len(self.headings))]
        lines = [self.headings, rules, *self.cells]
        return "\n".join("| " + " | ".join(map(_in_pipes, cells)) + " |" for cells in lines)

    def plain(self) -> str:
        """Text in columns that line up, for any place."""
        lines = [self.headings, *self.cells]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

        def aligned(cells: Sequence[str]) -> str:
            pairs = enumerate(zip(cells, widths, strict=True))
            shown = (c.ljust(w) if at < self.words else c.rjust(w) for at, (c, w) in pairs)
            return "  ".join(shown).rstrip()

        return "\n".join(map(aligned, lines))

    def latex(self) -> str:
        """A `table` environment that needs the package booktabs."""
        columns = "l" * self.words + "r" * (len(self.headings) - self.words)
        caption = [rf"\caption{{{escape_latex(self.caption)}}}"] if self.caption else []
        lines = [" & ".join(map(escape_latex, row)) + r" \\" for row in self.cells]
        return "\n".join(
            [
                *(r"\begin{table}[tbp]", r"\centering", *caption, r"\small"),
                *(rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}", r"\toprule"),
                *(" & ".join(map(escape_latex, self.headings)) + r" \\", r"\midrule"),
                *lines,
                *(r"\bottomrule", r"\end{tabular}", r"\end{table}"),
            ]
        )

    def html(self, *, kind: str = "") -> str:
        """A `<table>` that scrolls sideways where the page is narrow; `kind` is a CSS class."""

        def line(cells: Sequence[str], tag: str) -> str:
            kinds = [' class="text"' if at < self.words else "" for at in range(len(cells))]
            pairs = zip(kinds, cells, strict=True)
            return "".join(f"<{tag}{kind}>{escape(cell)}</{tag}>" for kind, cell in pairs)

        rows = "".join(f"<tr>{line(row, 'td')}</tr>" for row in self.cells)
        caption = f'<p class="note">{escape(self.caption)}</p>' if self.caption else ""
        named = f' aria-label="{escape(self.caption)}"' if self.caption else ""
        chosen = f' class="{escape(kind)}"' if kind else ""
        return (  # the caption stays outside of what scrolls
            f'{caption}<div class="wide"><table{chosen}{named}>'
            f"<thead><tr>{line(self.headings, 'th')}</tr></thead>"
            f"<tbody>{rows}</tbody></table></div>"
        )

    def csv(self) -> str:
        """Comma-separated values; what is undefined is blank."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.headings)
        writer.writerows(["" if is_undefined(value) else value for value in r] for r in self.rows)
        return text.getvalue()

    def records(self) -> list[dict[str, Any]]:
        """One dictionary a row, for JSON; what is undefined is None."""
        return [
            {
                heading: None if is_undefined(value) else _plain_value(value)
                for heading, value in zip(self.headings, row, strict=True)
            }
            for row in self.rows
        ]

    def json(self) -> str:
        """The records as JSON."""
        return json.dumps(self.records(), indent=1, ensure_ascii=False, allow_nan=False)

    def print(self, console: Console | None = None) -> None:
        """Print on a terminal of any width.

        In a table that is too wide, words that rows share become a line above them, and columns
        of numbers that do not fit beside each other follow in further tables.
        """
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.markup import escape as plain
        from rich.table import Table as RichTable

        console = console or Console()
        if self.caption:  # not as rich's title, which is wrapped to the width of the columns
            console.print(self.caption, style="italic", markup=False, highlight=False)
        drawn = RichTable(box=SIMPLE_HEAD, **_TIGHT)
        for at, heading in enumerate(self.headings):
            if at < self.words:
                drawn.add_column(plain(heading), overflow="fold")
            else:
                drawn.add_column(plain(heading), justify="right", no_wrap=True)
        for row in self.cells:
            drawn.add_row(*map(plain, row))
        unlimited = console.options.update(width=10_000)
        if console.measure(drawn, options=unlimited).maximum <= console.width:
            console.print(drawn)
            return
        for text in _narrow(self, console.width):
            console.print(text, soft_wrap=True, highlight=False, markup=False)


def _narrow(table: Table, width: int) -> list[str]:
    """The same rows in tables of as many columns of numbers as fit, at least one each."""
    cells, words = table.cells, table.words
    widths = [max(map(len, column)) for column in zip(table.headings, *cells, strict=True)]
    room = width - len(_INDENT) - widths[words - 1]
    parts: list[list[int]] = [[]]
    left = room
    for at in range(words, len(widths)):
        needed = len(_GAP) + widths[at]
        if parts[-1] and needed > left:
            parts.append([])
            left = room
        parts[-1].append(at)
        left -= needed
    return [_under_shared_words(table, cells, [words - 1, *part], widths) for part in parts]


def _under_shared_words(
    table: Table, cells: list[tuple[str, ...]], columns: list[int], widths: list[int]
) -> str:
    def line(row: Sequence[str]) -> str:
        name, *numbers = columns
        shown = [row[name].ljust(widths[name]), *(row[at].rjust(widths[at]) for at in numbers)]
        return _INDENT + _GAP.join(shown)

    lines = [line(table.headings)]
    lines.append("─" * len(lines[0]))
    shared: tuple[str, ...] = ("",) * (table.words - 1)
    for row in cells:
        if row[: table.words - 1] != shared:
            shared = row[: table.words - 1]
            lines.append(", ".join(filter(None, shared)))
        lines.append(line(row))
    return "\n".join([*lines, ""])


def record_table(title: str, record: dict[str, Any]) -> Table:
    """Names and values; records inside of it are spread out, what is None is left out."""
    inner = {
        name: value
        for name, values in record.items()
        if isinstance(values, dict)
        for name, value in values.items()
    }
    flat = {name: value for name, value in record.items() if not isinstance(value, dict)}
    rows = [
        (name.replace("_", " "), f"{value:g}" if isinstance(value, float) else str(value))
        for name, value in {**flat, **inner}.items()
        if value is not None
    ]
    return Table((title, "value"), tuple(rows), words=2)


def is_undefined(value: Any) -> bool:
    """Whether a value is None or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def number(value: Any, *, digits: int = 4) -> str:
    """A float in a few significant digits; anything else as text."""
    if not isinstance(value, float):
        return str(value)
    if math.isinf(value):
        return _signed(str(value))
    if 10**digits <= abs(value) < 1e6:
        return _signed(f"{value:.0f}")
    text = f"{value:#.{digits}g}".rstrip(".")
    return _signed(f"{value:.{digits - 1}e}" if "e" in text else text)


def signed(value: float) -> str:
    """A change with its sign and one decimal: `+3.4`."""
    return _signed(f"{round(float(value), 1) + 0.0:+.1f}")


def percent(value: float) -> str:
    """A relative change: `+3.4 %`."""
    return f"{signed(value)} %"


def probability(value: float) -> str:
    """A p-value in three decimals."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def interval(low: float | None, high: float | None) -> str:
    """Both ends of an interval of changes: `−1.2 … +3.4`."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return UNDEFINED
    return f"{signed(low)} … {signed(high)}"


def mean_and_deviation(mean: float, deviation: float | None, *, digits: int = 4) -> str:
    """`mean ± deviation`, both with the decimals of the mean."""
    text = number(float(mean), digits=digits)
    if deviation is None or math.isnan(deviation):
        return text
    if "e" in text:
        return f"{text} ± {deviation:.1e}"
    return f"{text} ± {deviation:.{len(text.partition('.')[2])}f}"


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it is; control characters are dropped."""
    line = " ".join(text.split())
    return "".join(letter for letter in line if letter.isprintable()).translate(_LATEX)


def _signed(text: str) -> str:
    return text.replace("-", "−")


def _plain_value(value: Any) -> Any:
    """NumPy scalars as Python values."""
    return value.item() if hasattr(value, "item") else value


def _in_pipes(cell: str) -> str:
    return " ".join(cell.replace("|", "\\|").splitlines())
