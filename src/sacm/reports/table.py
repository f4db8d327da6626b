"""One table for the terminal, Markdown, HTML and JSON; only JSON shows all digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

UNDEFINED = "–"


@dataclass(frozen=True)
class Table:
    """Headings and rows of values.

    Example:
        >>> table = Table(("data", "MSE"), (("ILI", 2.7166839),))
        >>> print(table.markdown())
        | data | MSE |
        | --- | ---: |
        | ILI | 2.717 |
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]  # None and NaN are undefined
    caption: str = ""
    words: int = 1  # columns at the left that name a row; the others hold numbers

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, *, caption: str = "", words: int = 1) -> Table:
        """The columns and rows of a pandas frame."""
        rows = tuple(frame.itertuples(index=False, name=None))
        return cls(tuple(map(str, frame.columns)), rows, caption, words)

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """The rows as printed."""
        return [
            tuple(UNDEFINED if is_undefined(value) else number(value) for value in row)
            for row in self.rows
        ]

    def markdown(self) -> str:
        """A pipe table."""
        rules = ["---" if at < self.words else "---:" for at in range(len(self.headings))]
        lines = (
            [" ".join(cell.replace("|", "\\|").splitlines()) for cell in row]
            for row in (self.headings, rules, *self.cells)
        )
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

    def plain(self) -> str:
        """Text in columns that line up."""
        columns = []
        for at, column in enumerate(zip(self.headings, *self.cells, strict=True)):
            width = max(map(len, column))
            columns.append([c.ljust(width) if at < self.words else c.rjust(width) for c in column])
        return "\n".join("  ".join(cells).rstrip() for cells in zip(*columns, strict=True))

    def html(self, *, kind: str = "") -> str:
        """A `<table>` that scrolls sideways where the page is narrow; `kind` is a CSS class."""

        def line(cells: Sequence[str], tag: str) -> str:
            kinds = [' class="text"' if at < self.words else "" for at in range(len(cells))]
            pairs = zip(kinds, cells, strict=True)
            return "".join(f"<{tag}{kind}>{escape(cell)}</{tag}>" for kind, cell in pairs)

        rows = "".join(f"<tr>{line(row, 'td')}</tr>" for row in self.cells)
        said = escape(self.caption)
        return (  # the caption stays outside of what scrolls
            (f'<p class="note">{said}</p>' if said else "")
            + f'<div class="wide"><table class="{escape(kind)}" aria-label="{said}">'
            f"<thead><tr>{line(self.headings, 'th')}</tr></thead>"
            f"<tbody>{rows}</tbody></table></div>"
        )

    def records(self) -> list[dict[str, Any]]:
        """One dictionary a row, for JSON; what is undefined is None."""

        def plain_value(value: Any) -> Any:
            defined: Any = None if is_undefined(value) else value
            return getattr(defined, "item", lambda: defined)()  # of NumPy

        values = [map(plain_value, row) for row in self.rows]
        return [dict(zip(self.headings, row, strict=True)) for row in values]

    def print(self) -> None:
        """Print on a terminal, with a rule below the headings; no line is wrapped."""
        head, *rows = self.plain().split("\n")
        rule = "─" * max(map(len, (head, *rows)))
        if self.caption:
            print(f"{self.caption}\n")
        print(*(f" {line}" for line in (head, rule, *rows)), "", sep="\n")


def record_table(title: str, record: dict[str, Any]) -> Table:
    """Names and values; records inside of it are spread out, what is None is left out."""
    nested = (v if isinstance(v, dict) else {name: v} for name, v in record.items())
    pairs = [pair for each in nested for pair in each.items() if pair[1] is not None]
    rows = tuple((name.replace("_", " "), str(value)) for name, value in pairs)
    return Table((title, "value"), rows, words=2)


def is_undefined(value: Any) -> bool:
    """Whether a value is None or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def number(value: Any, *, digits: int = 4) -> str:
    """A float in a few significant digits; anything else as text."""
    if not isinstance(value, float):
        return str(value)
    if 10**digits <= abs(value) < 1e6:
        return _minus(f"{value:.0f}")
    text = f"{value:#.{digits}g}".rstrip(".")
    return _minus(f"{value:.{digits - 1}e}" if "e" in text else text)


def signed(value: float) -> str:
    """A change with its sign and one decimal: `+3.4`."""
    return _minus(f"{round(float(value), 1) + 0.0:+.1f}")


def probability(value: float) -> str:
    """A p-value in three decimals."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def interval(low: float | None, high: float | None) -> str:
    """Both ends of an interval of changes: `−1.2 … +3.4`."""
    if low is None or high is None or is_undefined(low) or is_undefined(high):
        return UNDEFINED
    return f"{signed(low)} … {signed(high)}"


def mean_and_deviation(mean: float, deviation: float | None, *, digits: int = 4) -> str:
    """`mean ± deviation`, both with the decimals of the mean."""
    text = number(float(mean), digits=digits)
    if deviation is None or math.isnan(deviation):
        return text
    decimals = ".1e" if "e" in text else f".{len(text.partition('.')[2])}f"
    return f"{text} ± {deviation:{decimals}}"


def _minus(text: str) -> str:
    return text.replace("-", "−")
