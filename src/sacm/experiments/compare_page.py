"""A comparison as one HTML page, with the command that makes it again."""

from __future__ import annotations

import json
import shlex
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
from sacm.metrics.catalogue import metric
from sacm.reports import figures
from sacm.reports.page import code_block, embed_figure, folded, page, paragraph
from sacm.reports.page import figures as grid
from sacm.reports.style import colours
from sacm.reports.table import Table, record_table
from sacm.settings import RunSettings, option_name

_RESOLVED = (("horizon", 0), ("scaling", "shared"))  # what tasks without make of None
_WRITTEN_FIRST = ("task", "data", "backbone", "size", "strategy", "seed", "overrides")


def compare_page(comparison: Comparison, *, data: Any = None, command: str | None = None) -> str:
    """The page as HTML; needs the run folders of the comparison.

    Args:
        comparison: What was found.
        data: Replaces what the settings name.
        command: What was typed to get here, if that was not `sacm compare`.
    """
    data = comparison.first_run.load_data() if data is None else data
    settings, strategies = comparison.settings, comparison.strategies
    record = {
        **{name: value for name, value in settings.items() if value not in (None, {})},
        "strategies": ", ".join(strategies),
        "seeds": ", ".join(map(str, comparison.seeds)),
        "test windows": f"{int(comparison.frame['windows'].iloc[0]):,}",
    }
    again = repeat_command(comparison)
    commands = [command, again] if command not in (None, again) else [again]
    sections = {
        "Results": _results(comparison),
        "Every pair": [grid(*(_pairs(comparison, name) for name in comparison.leading_metrics))],
        "Training": [_training(comparison)],
        "Dropout rates": _rates(comparison, data),
        "Settings and environment": [
            folded("Settings", record_table("", record).html(kind="settings")),
            folded("Environment", record_table("", comparison.environment).html(kind="settings")),
            *(paragraph(note, note=True) for note in data.notes),
        ],
        "How to repeat it": [
            *(code_block(each) for each in commands if each is not None),
            paragraph("One run: sacm runs report RUN --out run.html", note=True),
        ],
    }
    title = f"{' against '.join(strategies)}: {settings['backbone']} on {data.name}"
    return page(title, headline(comparison), sections)


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


def _baselines(comparison: Comparison) -> dict[str, dict[str, float]]:
    """Results of what needs no network, by name; every run of a comparison has the same."""
    rows = comparison.first_run.metrics.get("baselines", {}).get("rows", {})
    return {name: row for name, row in rows.items() if name != "model"}


def _results(comparison: Comparison) -> list[str]:
    parts = [result_table(comparison).html(), paragraph(LEGEND, note=True)]
    if baselines := _baselines(comparison):
        measures = list(dict.fromkeys(name for row in baselines.values() for name in row))
        cells = [(name, *(row.get(each) for each in measures)) for name, row in baselines.items()]
        table = Table(("without a network", *measures), tuple(cells))
        parts += [paragraph("On the same test data:"), table.html()]
    if comparison.settings["task"] == "anomaly":
        parts.append(paragraph(ANOMALY_LEGEND, note=True))
    return [*parts, cost_table(comparison).html()]


def _pairs(comparison: Comparison, name: str) -> str:
    """One metric of every run, in pairs, beside baselines and random scores."""
    kind, strategies = metric(name), comparison.strategies
    results = comparison.frame.set_index(["strategy", "seed"])[name].astype(float)
    values = {each: [results[each, seed] for seed in comparison.seeds] for each in strategies}
    levels = {each: row[name] for each, row in _baselines(comparison).items() if row.get(name)}
    for strategy in strategies if kind.random is not None else ():
        levels[f"random ({strategy})"] = comparison.values(strategy, str(kind.random)).mean()
    title = f"{kind.label} ({'higher' if kind.higher_is_better else 'lower'} is better)"
    figure = figures.paired_dots(values, title, levels=levels)
    caption = "One line a seed; the bar is the mean."
    caption += " Dashed: without a network." if levels else ""
    return embed_figure(figure, caption, name=f"pairs-{name}")


def _training(comparison: Comparison) -> str:
    histories = {
        strategy: [comparison.runs[strategy, seed].history for seed in comparison.seeds]
        for strategy in comparison.strategies
    }
    figure = figures.training_curves(histories, f"val_{comparison.settings['select']}")
    caption = "One line a run. The ring is the epoch whose weights were tested."
    return embed_figure(figure, caption, name="validation")


def _rates(comparison: Comparison, data: Any) -> list[str]:
    """Training windows of the last strategy that gives each its own dropout rate."""
    for strategy in reversed(comparison.strategies):
        run = comparison.runs[strategy, comparison.seeds[0]]
        if "rate_mean" not in run.history[0]:
            continue
        sample = rate_sample(run, data)
        if sample.learned:
            colour = colours(comparison.strategies)[strategy]
            figure = figures.windows_with_rates(sample.windows, sample.rates, colour)
            caption = "Windows from the lowest dropout rate to the highest; all channels of each."
            return [embed_figure(figure, caption, name="windows")]
    return []
