"""What `attach` did to a model, as a value that prints itself."""

from __future__ import annotations

from dataclasses import dataclass

from sacm.inject.sites import Site

_HEADER = ("site", "kind", "adaptive", "layout", "note")


@dataclass(frozen=True)
class Summary:
    """The dropout sites of a model; `print` shows a table.

    Attributes:
        sites: Every site, adaptive or with the reason why not.
        scalars: Number of parameters added; None until the first batch tells the channels.
        random_evaluation: Whether two evaluations of the same windows differ.
        random_training: Whether training is random beside the sites.
        unverified: What the model raised when its layouts were verified; empty if nothing.
    """

    sites: tuple[Site, ...]
    scalars: int | None
    random_evaluation: bool = False
    random_training: bool = False
    unverified: str = ""

    def __str__(self) -> str:
        if not self.sites:
            lines = ["No dropout found: the model is unchanged (insert_after=[…] adds sites)."]
        else:
            adaptive = sum(site.adaptive for site in self.sites)
            added = "2C + 2" if self.scalars is None else self.scalars
            lines = [
                *_table([_HEADER, *map(_row, self.sites)]),
                f"{adaptive} of {len(self.sites)} dropout sites adaptive, {added} scalars added.",
            ]
        if self.random_training:
            lines.append(
                "Also random in training: something that is not listed here (coverage='all' makes "
                "dropout called as a function adaptive)."
            )
        if self.unverified:
            lines.append(f"The layouts were not verified on a training batch: {self.unverified}")
        if self.random_evaluation:
            lines.append("Evaluation is random: two passes over the same windows differ.")
        return "\n".join(lines)


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """Return the lines of a table; the first row is its header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def _row(site: Site) -> tuple[str, ...]:
    layout = site.layout
    if layout is None:
        where = "-" if not site.adaptive or site.reached else "not probed yet"
    else:
        where = " or ".join(map(str, layout)) if isinstance(layout, tuple) else str(layout)
    notes = [site.reason] if site.reason else []
    if site.adaptive and site.reached is False:
        where, notes = "-", [*notes, "unreached: declared but never called"]
    elif site.adaptive and site.reached:
        notes = [*notes, "live"]
    return site.name, site.kind, "yes" if site.adaptive else "no", where, "; ".join(notes)
