"""A table of a model's dropout sites, for a person to read."""

from __future__ import annotations

from collections.abc import Sequence

from sacm.inject.sites import Site


def format_summary(
    sites: Sequence[Site],
    added: int,
    *,
    random_evaluation: Sequence[str],
    random_training: Sequence[tuple[str, str]] = (),
    everywhere: bool = False,
    unverified: str = "",
) -> str:
    """Return a table with one line per site, then what was added."""
    header = ("site", "kind", "adaptive", "layout", "note")
    rows = [header, *(_row(site) for site in sites)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    adaptive = sum(site.adaptive for site in sites)
    lines.append(f"{adaptive} of {len(sites)} dropout sites adaptive, {added} scalars added.")
    if not sites:
        lines = ["No dropout found: the model is unchanged (insert_after=[…] adds sites)."]
    others = _unlisted(sites, random_training)
    if others:
        places = ", ".join(f"{place} ({name})" for place, name in others)
        lines.append(f"Also random in training, and not adaptive: {places}.")
        if not everywhere and any("dropout" in name for _, name in others):
            lines.append("Dropout called as a function is adaptive with coverage='all'.")
    if unverified:
        lines.append(f"The layouts were not verified on a training batch: {unverified}")
    if random_evaluation:
        parts = ", ".join(random_evaluation)
        lines.append(f"Evaluation is random in {parts}: two passes over the same windows differ.")
    return "\n".join(lines)


def _unlisted(
    sites: Sequence[Site], random_training: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return the random operations that no ordinary site in the table stands for."""
    ordinary = {site.name.partition(":")[0] for site in sites if not site.adaptive}
    return [found for found in random_training if found[0] not in ordinary]


def _row(site: Site) -> tuple[str, str, str, str, str]:
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
