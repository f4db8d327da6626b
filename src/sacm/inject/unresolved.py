"""Errors about sites whose layout is not known: all of them in one message, with the ways out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sacm.errors import LayoutError


@dataclass(frozen=True)
class Unresolved:
    """A site, the shape of its activation and why its layout is not known."""

    name: str
    kind: str
    shape: tuple[int, ...]
    why: str

    def __str__(self) -> str:
        return (
            f"{self.name} ({self.kind}): an activation {list(self.shape)} {self.why}; "
            f"state it with site_layouts={{{self.name!r}: SiteLayout(dim=…, fold=…)}}"
        )

    def error(self) -> LayoutError:
        """Return the error about this site alone."""
        return LayoutError(
            f"{self}, or leave this site as ordinary dropout with skip=[{self.name!r}]."
        )


def layout_error(model: str, problems: Sequence[Unresolved]) -> LayoutError:
    """Return one error that lists every site once, with a line to paste that skips them all."""
    by_name = {problem.name: problem for problem in reversed(problems)}
    first, *others = [by_name[name] for name in dict.fromkeys(p.name for p in problems)]
    if not others:
        return first.error()
    lines = "\n".join(f"  {problem}" for problem in (first, *others))
    names = [problem.name for problem in (first, *others)]
    return LayoutError(
        f"{len(names)} dropout sites of {model} have no known layout:\n{lines}\n"
        f"To leave them all as ordinary dropout: skip={names}"
    )
