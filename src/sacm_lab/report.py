"""What the runs of an experiment say: tables of values and gains, and the sentences above them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from sacm.errors import ArgumentError
from sacm.experiments.gains import format_gain
from sacm.files import write_atomically
from sacm.metrics.catalogue import metric as find_metric
from sacm.reports.page import page, paragraph
from sacm.reports.table import (
    Table,
    interval,
    is_undefined,
    mean_and_deviation,
    probability,
    signed,
)
from sacm_lab.experiment import Experiment, count_declared
from sacm_lab.gains import pair_runs, summarise_gains
from sacm_lab.results import results_csv
from sacm_lab.runs import records

FORMATS = ("table", "md", "latex", "csv", "json", "html")
LEGEND = (
    "Gain: mean over cells of the mean gain over seeds, against the first strategy of the same "
    "data, network, size, horizon and seed; positive is better; in percent, or in points (pp) for "
    "shares. Seeds: 95 % t interval over seeds; cells: 95 % bootstrap interval over five or more "
    "cells. SD: gain in units of the baseline's deviation over seeds. p: paired t-test over the "
    "seeds of one cell, Wilcoxon's signed-rank test over the pairs of several, Holm-corrected over "
    "the rows of a metric and size. Networks of different sizes are never averaged."
)
_SIGNS = str.maketrans({"−": "$-$", "–": "--", "±": r"$\pm$", "…": r"\ldots{}", "σ": r"$\sigma$"})
# Adds columns to the row of a table, from the keys, metric and strategy of the row.
Beside = Callable[[dict[str, Any], str, str], dict[str, Any]]


@dataclass(frozen=True)
class Report:
    """What was found.

    Attributes:
        title: What was asked.
        sentences: The answer.
        tables: The evidence.
        rows: Every run, as CSV.
        notes: What a reader must know besides.
    """

    title: str
    sentences: tuple[str, ...]
    tables: tuple[Table, ...]
    rows: str
    notes: tuple[str, ...] = ()

    def print(self) -> None:
        """Print on a terminal."""
        for table in self.tables:
            table.print()
        print(*self.sentences, *(f"Note: {note}" for note in self.notes), sep="\n")

    def render(self, style: str) -> str:
        """The report as text in one of `FORMATS`."""
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
        lines = [f"% {text}" for text in (self.title, *self.sentences, *self.notes)]
        return "\n\n".join(["\n".join(lines), *map(latex, self.tables)]) + "\n"

    def _csv(self) -> str:
        return self.rows

    def _json(self) -> str:
        record = {
            "title": self.title,
            "sentences": self.sentences,
            "tables": [{"caption": t.caption, "rows": t.records()} for t in self.tables],
            "notes": self.notes,
        }
        return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def _html(self) -> str:
        sections: dict[str, list[str]] = {}
        for table in self.tables:
            html = replace(table, caption="").html()
            sections.setdefault(table.caption or "Results", []).append(html)
        sections["Notes"] = list(map(paragraph, self.notes))
        return page(self.title, self.sentences, sections)


def pair_experiment(experiment: Experiment, frame: pd.DataFrame) -> pd.DataFrame:
    """Every run of an experiment's frame beside its baseline."""
    return pair_runs(frame, experiment.metrics, baseline=experiment.baseline, cell=experiment.cell)


def value_table(
    experiment: Experiment,
    frame: pd.DataFrame,
    pairs: pd.DataFrame,
    by: Sequence[str],
    *,
    beside: Beside | None = None,
    caption: str = "",
) -> Table:
    """One line for every group, size, metric and strategy: its value, and its gain."""
    done = frame[frame["state"] == "done"]
    cell = [name for name in experiment.cell if name in done]
    keys = [name for name in cell if name in by or name == "size"]
    gains = {
        (*(row[key] for key in keys), row["metric"], row["strategy"]): row
        for row in records(summarise_gains(pairs, by))
    }
    lines: list[dict[str, Any]] = []
    for place, group in sort_cells(experiment, done).groupby(keys, sort=False, dropna=False):
        for metric in experiment.metrics:
            for strategy in experiment.shown_strategies:
                rows = group[group["strategy"] == strategy]
                rows = rows[rows[metric].notna()] if metric in rows else rows[:0]
                if rows.empty:
                    continue
                named = dict(zip(keys, place, strict=True))
                line = {**named, "metric": find_metric(metric).label, "strategy": strategy}
                line |= _value(rows, cell, metric)
                line |= gain_cells(gains.get((*place, metric, strategy)), metric)
                line |= beside(named, metric, strategy) if beside is not None else {}
                lines.append(line)
    frame = pd.DataFrame(lines)
    words = len(keys) + 2
    return Table.from_frame(frame, caption=caption, words=words) if lines else Table((), ())


def _value(rows: pd.DataFrame, cell: list[str], metric: str) -> dict[str, Any]:
    """Mean over cells; with the deviation over seeds where there is one cell."""
    by_cell: dict[tuple[Any, ...], list[float]] = {}
    places = zip(*(rows[name].astype(str) for name in cell), strict=True)
    for place, value in zip(places, rows[metric], strict=True):
        by_cell.setdefault(place, []).append(float(value))
    mean = sum(sum(values) / len(values) for values in by_cell.values()) / len(by_cell)
    deviation = rows[metric].std() if len(by_cell) == 1 else None
    return {"n": len(rows), "value": mean_and_deviation(mean, deviation)}


def gain_cells(gain: dict[str, Any] | None, metric: str) -> dict[str, Any]:
    """The columns of a gain, as text."""
    names = ("gain", "seeds", "cells", "SD", "wins", "p")
    if gain is None:
        return dict.fromkeys(names)
    p = gain["p_holm"]
    return {
        "gain": format_gain(gain["gain"], metric),
        "seeds": interval(gain["low"], gain["high"]),
        "cells": interval(gain["cells_low"], gain["cells_high"]),
        "SD": None if is_undefined(gain["in_deviations"]) else signed(gain["in_deviations"]),
        "wins": f"{gain['wins']}/{gain['n']}",
        "p": None if is_undefined(p) else probability(p),
    }


def overall_table(
    experiment: Experiment,
    frame: pd.DataFrame,
    pairs: pd.DataFrame,
    *,
    more: Callable[[str, str], dict[str, Any]] | None = None,
) -> Table:
    """One line for every size, metric and strategy over all cells."""
    lines = []
    for row in records(summarise_gains(pairs)):
        if row["strategy"] not in experiment.shown_strategies:
            continue
        line = {"size": row["size"], "metric": find_metric(row["metric"]).label}
        line |= {"strategy": row["strategy"], "n": row["n"], "of cells": row["cells"]}
        line |= gain_cells(row, row["metric"])
        line |= {"cost": cost_ratio(frame, experiment, row["size"], row["strategy"])}
        if more is not None and row["metric"] == experiment.metrics[0]:
            line |= more(row["size"], row["strategy"])
        lines.append(line)
    if not lines:
        return Table((), ())
    labels = [find_metric(name).label for name in experiment.metrics]
    order = {name: at for at, name in enumerate((*labels, *experiment.shown_strategies))}
    table = pd.DataFrame(lines).sort_values(
        ["size", "metric", "strategy"],
        key=lambda column: column.map(lambda value: order.get(value, 0)),
        kind="stable",
    )
    return Table.from_frame(table, caption="Over all cells", words=3)


def sort_cells(experiment: Experiment, frame: pd.DataFrame) -> pd.DataFrame:
    """Rows in the order that data sets and networks are declared in, then by what varies."""
    order = {
        name: at for at, name in enumerate((*experiment.datasets, *experiment.backbones, "paper"))
    }
    keys = [name for name in experiment.cell if name in frame and name != "task"]

    def rank(column: pd.Series) -> pd.Series:
        if column.name in ("data", "backbone", "size"):
            return column.map(lambda value: order.get(value, len(order)))
        return column

    return frame.sort_values(keys, key=rank, kind="stable")


def cost_ratio(frame: pd.DataFrame, experiment: Experiment, size: str, strategy: str) -> str | None:
    """Seconds of training as a multiple of the baseline's, over the same cells and seeds."""
    keys = [*(name for name in experiment.cell if name in frame), "seed"]
    done = frame[(frame["state"] == "done") & (frame["size"] == size)]
    both = done[done["strategy"] == strategy].merge(
        done[done["strategy"] == experiment.baseline], on=keys, suffixes=("", "|before")
    )
    total = both["seconds|before"].sum() if len(both) else 0
    return f"{both['seconds'].sum() / total:.2f}" if total > 0 else None


def race_table(experiment: Experiment, frame: pd.DataFrame, race: str) -> Table:
    """One line a cell: the arms, what the race took, and what it cost."""
    metric = experiment.metrics[0]
    done = frame[frame["state"] == "done"]
    keys = [name for name in experiment.cell if name in done and name != "task"]
    if race not in set(done["strategy"]):
        return Table((), ())
    arms = race.partition("(")[2].rstrip(")").split(",")
    lines = []
    for place, group in sort_cells(experiment, done).groupby(keys, sort=False, dropna=False):
        rows = {name: group[group["strategy"] == name] for name in (race, *arms)}
        seeds = set(rows[race]["seed"])
        if not seeds:
            continue
        means = {
            name: float(each[each["seed"].isin(seeds)][metric].mean())
            for name, each in rows.items()
        }
        won = rows[race]["chosen"].value_counts()
        base = means[arms[0]]
        sign = 1 if find_metric(metric).higher_is_better else -1
        gains = {name: sign * 100 * (means[name] - base) / abs(base) for name in (arms[1], race)}
        lines.append(
            {
                **dict(zip(keys, place, strict=True)),
                "n": len(seeds),
                **{name: means[name] for name in (*arms, race)},
                f"{arms[1]} gain": f"{signed(gains[arms[1]])} %",
                "race gain": f"{signed(gains[race])} %",
                "chosen": ", ".join(f"{name} {count}" for name, count in won.items()),
                "cost": f"{rows[race]['cost'].mean():.2f}",
            }
        )
    caption = (
        f"The race, computed from the runs of its arms ({find_metric(metric).label}): the better "
        "mean validation of epochs 2 to 4 goes on, raw if none leads it by .5 %; cost: seconds as "
        "a multiple of the winner's"
    )
    return Table.from_frame(pd.DataFrame(lines), caption=caption, words=len(keys))


def coverage(experiment: Experiment, frame: pd.DataFrame) -> str:
    """How much was run."""
    own = frame[~frame["run"].astype(str).str.contains("#")].drop_duplicates("run")
    done = int((own["state"] == "done").sum())
    declared = count_declared(experiment)
    sentence = f"{done} runs are finished; the whole experiment has {declared}."
    failed = own[own["state"].isin(("failed", "damaged"))]
    if len(failed):
        first = failed.iloc[0]
        sentence += f" {len(failed)} failed, such as {first['run']}: {first['reason']}"
    return sentence


def gain_sentences(experiment: Experiment, pairs: pd.DataFrame) -> list[str]:
    """The largest gains in the first metric, one sentence a size.

    Only of strategies that were run in most cells: means over fewer are not comparable.
    """
    metric = experiment.metrics[0]
    summary = summarise_gains(pairs[pairs["metric"] == metric])
    found = []
    for size, rows in summary.groupby("size", sort=False):
        shown = set(experiment.shown_strategies) - set(experiment.references)
        named = rows[rows["strategy"].isin(shown)]
        most = named[named["cells"] == named["cells"].max()]
        best = most.sort_values("gain", ascending=False).head(3)
        parts = [
            f"{row['strategy']} {format_gain(row['gain'], metric)} (better in {row['wins']} of "
            f"{row['n']} pairs)"
            for _, row in best.iterrows()
        ]
        if parts:
            found.append(
                f"Gain over {experiment.baseline} in {find_metric(metric).phrase}, {size} size, "
                f"{int(best['cells'].max())} cells, the largest first: {'; '.join(parts)}."
            )
    return found


def mixed_code(frame: pd.DataFrame) -> list[str]:
    """A note if runs were made with different code or threads."""
    notes = []
    for name, what in (("commit", "commits"), ("threads", "numbers of threads")):
        values = list(frame[name].dropna().unique()) if name in frame else []
        if len(values) > 1:
            notes.append(
                f"Runs were made with {len(values)} {what}: {', '.join(map(str, values))}."
            )
    return notes


def experiment_report(
    experiment: Experiment,
    frame: pd.DataFrame,
    rows: pd.DataFrame,
    *,
    beside: Beside | None = None,
    race: str = "",
    more: Callable[[str, str], dict[str, Any]] | None = None,
    tables: Sequence[Table] = (),
    sentences: Sequence[str] = (),
) -> Report:
    """Everything that the runs of an experiment say."""
    pairs = pair_experiment(experiment, frame)
    first = value_table(experiment, frame, pairs, experiment.rows, beside=beside, caption="By row")
    averaged = [name for name in experiment.rows if name != "horizon"]
    by_network = Table((), ())
    if "horizon" in experiment.rows and frame["horizon"].nunique() > 1:
        caption = "Over horizons"
        by_network = value_table(experiment, frame, pairs, averaged, caption=caption)
    shown = (
        first,
        by_network,
        overall_table(experiment, frame, pairs, more=more),
        race_table(experiment, frame, race) if race else Table((), ()),
        *tables,
    )
    return Report(
        title=f"{experiment.name}: {experiment.title}",
        sentences=(
            coverage(experiment, frame),
            *gain_sentences(experiment, pairs),
            *sentences,
        ),
        tables=tuple(table for table in shown if table.rows),
        rows=results_csv(rows),
        notes=(*experiment.notes, *mixed_code(rows), LEGEND),
    )


def latex(table: Table) -> str:
    """A `table` environment that needs the package booktabs."""
    columns = "l" * table.words + "r" * (len(table.headings) - table.words)
    frame = pd.DataFrame(table.cells, columns=list(table.headings))
    caption = re.sub(r"([&%$#_{}])", r"\\\1", table.caption) or None
    options: Any = {"caption": caption, "column_format": columns, "position": "tbp"}
    return frame.to_latex(index=False, escape=True, **options).rstrip().translate(_SIGNS)
