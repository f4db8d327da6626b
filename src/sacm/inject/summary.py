"""What `attach` did to a model, as a value that prints itself."""

from __future__ import annotations

from dataclasses import dataclass

from sacm.inject.sites import Site


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
            rows = [("site", "kind", "adaptive", "layout", "note"), *map(_row, self.sites)]
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            rows.insert(1, tuple("-" * width for width in widths))
            lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
            adaptive = sum(site.adaptive for site in self.sites)
            added = "2C + 2" if self.scalars is None else self.scalars
            total = f"{adaptive} of {len(self.sites)} dropout sites adaptive"
            lines.append(f"{total}, {added} scalars added.")
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


def _row(site: Site) -> tuple[str, ...]:
    layout, notes = site.layout, [site.reason] if site.reason else []
    where = " or ".join(map(str, layout)) if isinstance(layout, tuple) else str(layout or "-")
    if site.adaptive and site.reached is None and layout is None:
        where = "not probed yet"
    elif site.adaptive and site.reached is False:
        where, notes = "-", [*notes, "unreached: declared but never called"]
    elif site.adaptive and site.reached:
        notes = [*notes, "live"]
    return site.name, site.kind, "yes" if site.adaptive else "no", where, "; ".join(notes)
