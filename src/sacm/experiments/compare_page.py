"""A comparison as one HTML page, with the command that makes it again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from sacm.experiments.compare import (
    ANOMALY_LEGEND,
    LEGEND,
    Comparison,
    cost_table,
    headline,
    result_table,
)
from sacm.experiments.examples import rate_sample
from sacm.files import write_atomically
from sacm.metrics.catalogue import metric
from sacm.quality.inspect import inspect
from sacm.quality.page import draw_overview
from sacm.reports import figures
from sacm.reports.page import Section, code_block, embed_figure, folded, page, paragraph
from sacm.reports.page import figures as grid
from sacm.reports.style import colours
from sacm.reports.table import Table, record_table
from sacm.settings import RunSettings, option_name
from sacm.tasks import get_task
from sacm.training.run import Run

Runs = dict[str, list[Run]]
_RESOLVED = (("horizon", 0), ("scaling", "shared"))  # what tasks without make of None
_WRITTEN_FIRST = ("task", "data", "backbone", "size", "strategy", "seed", "overrides")


def write_compare_page(
    comparison: Comparison, path: str | Path, *, data: Any = None, command: str | None = None
) -> None:
    """Write the page; `data` and `command` as in `compare_page`."""
    text = compare_page(comparison, data=data, command=command)
    write_atomically(Path(path), lambda file: file.write_text(text, encoding="utf-8"))


def compare_page(comparison: Comparison, *, data: Any = None, command: str | None = None) -> str:
    """The page as HTML; needs the run folders of the comparison.

    Args:
        comparison: What was found.
        data: Replaces what the settings name.
        command: What was typed to get here, if that was not `sacm compare`.
    """
    runs = {
        strategy: [Run(comparison.folders[strategy, seed]) for seed in comparison.seeds]
        for strategy in comparison.strategies
    }
    data = runs[comparison.strategies[0]][0].load_data() if data is None else data
    sections = [
        *_quality(comparison, data),
        _results(comparison, runs),
        _pairs(comparison, runs),
        _training(comparison, runs),
        *_rates(comparison, runs, data),
        _settings(comparison, data),
        _repeat(comparison, command),
    ]
    title = f"{' against '.join(comparison.strategies)}: {comparison.settings['backbone']}"
    return page(f"{title} on {data.name}", headline(comparison), sections)


def repeat_command(comparison: Comparison) -> str:
    """`sacm compare …` with every setting that is not a default."""
    settings = comparison.settings
    words = ["sacm", "compare", settings["task"], "--data", settings["data"]]
    words += ["--backbone", settings["backbone"], "--size", settings["size"]]
    words += ["--strategies", ",".join(comparison.strategies)]
    words += ["--seeds", ",".join(map(str, comparison.seeds))]
    for name, field in RunSettings.model_fields.items():
        value = settings[name] if name not in _WRITTEN_FIRST else None
        if value in (None, field.default) or (name, value) in _RESOLVED:
            continue
        words += [option_name(name)] if value is True else [option_name(name), _spell(value)]
    for name, value in settings["overrides"].items():
        words += [option_name("overrides"), f"{name}={_spell(value)}"]
    return shlex.join(words)


def _spell(value: Any) -> str:
    """A value as the command line takes it."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)


def _quality(comparison: Comparison, data: Any) -> list[Section]:
    """What is broken in the data, where a strategy repairs it."""
    if not any("guard" in strategy for strategy in comparison.strategies):
        return []
    quality = inspect(data)
    overview = embed_figure(
        draw_overview(quality), "All channels over time", name="quality", kind="wide-figure"
    )
    return [Section("What was found and repaired", (paragraph(quality.sentences()[0]), overview))]


def _baselines(runs: Runs) -> dict[str, dict[str, float]]:
    """Results of what needs no network, by name; every run of a comparison has the same."""
    first = next(iter(runs.values()))[0]
    rows = first.metrics.get("baselines", {}).get("rows", {})
    return {name: row for name, row in rows.items() if name != "model"}


def _results(comparison: Comparison, runs: Runs) -> Section:
    parts = [result_table(comparison).html(), paragraph(LEGEND, note=True)]
    if baselines := _baselines(runs):
        measures = list(dict.fromkeys(name for row in baselines.values() for name in row))
        cells = [(name, *(row.get(each) for each in measures)) for name, row in baselines.items()]
        labels = ("without a network", *measures)
        parts += [paragraph("On the same test data:"), Table(labels, tuple(cells)).html()]
    if comparison.task == "anomaly":
        parts.append(paragraph(ANOMALY_LEGEND, note=True))
    return Section("Results", (*parts, cost_table(comparison).html()))


def _pairs(comparison: Comparison, runs: Runs) -> Section:
    leading = get_task(comparison.settings["task"]).leading_metrics
    drawn = []
    for name in (each for each in leading if each in comparison.metrics):
        direction = "higher" if metric(name).higher_is_better else "lower"
        random = metric(name).random
        results = comparison.frame.set_index(["strategy", "seed"])[name].astype(float).to_dict()
        values = {
            each: [results[each, seed] for seed in comparison.seeds]
            for each in comparison.strategies
        }
        chance = {
            each: float(comparison.values(each, random).mean())
            for each in comparison.strategies
            if random is not None
        }
        levels = {each: row[name] for each, row in _baselines(runs).items() if row.get(name)}
        title = f"{metric(name).label} ({direction} is better)"
        figure = figures.paired_dots(values, title, random=chance, baselines=levels)
        caption = "One line a seed; the bar is the mean."
        caption += " Dashed: without a network." if levels else ""
        drawn.append(embed_figure(figure, caption, name=f"pairs-{name}"))
    return Section("Every pair", (grid(*drawn),))


def _training(comparison: Comparison, runs: Runs) -> Section:
    histories = {strategy: [run.history for run in group] for strategy, group in runs.items()}
    figure = figures.training_curves(histories, f"val_{comparison.settings['select']}")
    caption = "One line a run. The ring is the epoch whose weights were tested."
    return Section("Training", (embed_figure(figure, caption, name="validation"),))


def _rates(comparison: Comparison, runs: Runs, data: Any) -> list[Section]:
    """Training windows of the last strategy that gives each its own dropout rate."""
    for strategy in reversed(comparison.strategies):
        if "rate_mean" not in runs[strategy][0].history[0]:
            continue
        sample = rate_sample(runs[strategy][0], data)
        if sample.learned:
            colour = colours(comparison.strategies)[strategy]
            figure = figures.windows_with_rates(sample.windows, sample.rates, colour)
            caption = "Windows from the lowest dropout rate to the highest; all channels of each."
            return [Section("Dropout rates", (embed_figure(figure, caption, name="windows"),))]
    return []


def _settings(comparison: Comparison, data: Any) -> Section:
    windows = int(comparison.frame["windows"].iloc[0])
    record = {
        **{name: value for name, value in comparison.settings.items() if value not in (None, {})},
        "strategies": ", ".join(comparison.strategies),
        "seeds": ", ".join(map(str, comparison.seeds)),
        "test windows": f"{windows:,}",
    }
    notes = [paragraph(note, note=True) for note in data.notes]
    tables = [
        folded(name, record_table("", values).html(kind="settings"))
        for name, values in {"Settings": record, "Environment": comparison.environment}.items()
    ]
    return Section("Settings and environment", (*tables, *notes))


def _repeat(comparison: Comparison, command: str | None) -> Section:
    again = repeat_command(comparison)
    parts = [code_block(again)]
    if command is not None and command != again:
        parts = [code_block(command), paragraph("which is the same as"), *parts]
    one_run = "Forecasts, classes or alarms of one run: sacm runs report RUN --out run.html"
    return Section("How to repeat it", (*parts, paragraph(one_run, note=True)))
