"""A comparison as one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sacm.display.html_page import Section, code_block, embed_figure, page, paragraph
from sacm.display.html_page import figures as grid
from sacm.display.palette import colours
from sacm.experiments.compare import Comparison
from sacm.files import write_atomically
from sacm.metrics.catalogue import metric
from sacm.quality.figures import draw_event, draw_overview
from sacm.quality.inspect import inspect
from sacm.quality.words import describe_quality, worst_events
from sacm.reports import figure_data, figures
from sacm.reports.compare_headline import compare_headline
from sacm.reports.compare_tables import (
    ANOMALY_LEGEND,
    LEGEND,
    cost_table,
    environment_table,
    paired_table,
    settings_table,
)
from sacm.reports.repeat_command import repeat_command
from sacm.tasks import get_task
from sacm.training.run import Run


def write_compare_report(
    comparison: Comparison, path: str | Path, *, data: Any = None, command: str | None = None
) -> None:
    """Write the report; `data` and `command` as in `compare_report`."""
    text = compare_report(comparison, data=data, command=command)
    write_atomically(Path(path), lambda file: file.write_text(text, encoding="utf-8"))


def compare_report(comparison: Comparison, *, data: Any = None, command: str | None = None) -> str:
    """The report as HTML; needs the run folders of the comparison.

    `data` replaces what the settings name; `command` is what was typed to get here, if that was not
    `sacm compare`.
    """
    runs = {
        strategy: [Run.load(comparison.run(strategy, seed).folder) for seed in comparison.seeds]
        for strategy in comparison.strategies
    }
    data = runs[comparison.strategies[0]][0].load_data() if data is None else data
    sample = figure_data.rate_sample(_modulated(comparison, runs), data)
    sections = [
        *_quality(comparison, data),
        _results(comparison),
        _pairs(comparison),
        _training(comparison, runs),
        _rates(comparison, runs, sample),
        _EXAMPLES[comparison.task](comparison, runs, data),
        _spectra(sample),
        _settings(comparison, data),
        _repeat(comparison, command),
    ]
    settings = comparison.settings
    title = f"{' against '.join(comparison.strategies)}: {settings['backbone']} on {data.name}"
    wide = ".overview svg{max-width:none}"
    return page(title, compare_headline(comparison), sections, style=wide)


Runs = dict[str, list[Run]]


def _modulated(comparison: Comparison, runs: Runs) -> Run:
    """The first run whose windows have rates of their own, otherwise simply the last strategy's."""
    found = [s for s in comparison.strategies if comparison.summary(s).rate_mean is not None]
    return runs[(found or comparison.strategies)[-1]][0]


def _quality(comparison: Comparison, data: Any) -> list[Section]:
    """What is broken in the data, where a strategy repairs it."""
    if not any("guard" in strategy for strategy in comparison.strategies):
        return []
    found = inspect(data)
    overview = embed_figure(draw_overview(found), "All channels over time", name="quality")
    events = [
        embed_figure(
            draw_event(found, event), f"{event.channel}: {event.kind}", name=f"event-{number}"
        )
        for number, event in enumerate(worst_events(found, 2))
    ]
    parts = (
        paragraph(describe_quality(found)[0]),
        f'<div class="overview">{overview}</div>',
        grid(*events),
    )
    return [Section("What was found and repaired", parts)]


def _results(comparison: Comparison) -> Section:
    parts = [paired_table(comparison).html(), paragraph(LEGEND, note=True)]
    if comparison.paper is not None:
        same = "These runs have the paper's settings."
        departs = "; ".join(comparison.paper_differences)
        said = f"These runs differ from the paper's: {departs}." if departs else same
        parts.append(paragraph(f"The paper's row is over {comparison.paper.n} seeds. {said}"))
    if comparison.task == "anomaly":
        parts.append(paragraph(ANOMALY_LEGEND, note=True))
    for pair in comparison.pairs:
        if pair.reason:
            what = f"{metric(pair.metric).label} ({pair.strategy}): {pair.reason}."
            parts.append(paragraph(what, note=True))
    parts.append(cost_table(comparison).html())
    return Section("Results", tuple(parts))


def _pairs(comparison: Comparison) -> Section:
    names = [
        name for name in get_task(comparison.task).leading_metrics if name in comparison.metrics
    ]
    caption = "One line a seed; the bar is the mean."
    drawn = [
        embed_figure(figures.paired_dots(comparison, name), caption, name=f"pairs-{name}")
        for name in names
    ]
    return Section("Every pair", (grid(*drawn),))


def _training(comparison: Comparison, runs: Runs) -> Section:
    histories = _histories(runs)
    validation = f"val_{comparison.settings['select']}"
    captions = {
        "train_loss": "One line a run. Measured with each strategy's own dropout at work, so the "
        "strategies' levels are not comparable.",
        validation: "One line a run. The ring is the epoch whose weights were tested.",
    }
    drawn = [
        embed_figure(
            figures.training_curves(histories, column), caption, name=column.replace("_", "-")
        )
        for column, caption in captions.items()
    ]
    return Section("Training", (grid(*drawn),))


def _histories(runs: Runs) -> figures.Histories:
    return {strategy: [run.history for run in group] for strategy, group in runs.items()}


def _rates(comparison: Comparison, runs: Runs, sample: figure_data.RateSample) -> Section:
    histories = _histories(runs)
    if not any("rate_mean" in group[0][0] for group in histories.values()):
        said = "No strategy of this comparison gives windows dropout rates of their own."
        return Section("Dropout rates", (paragraph(said),))
    by_epoch = embed_figure(
        figures.rates_by_epoch(histories),
        "Lines: mean of every run. Bands: one deviation, and the whole range, of the first seed.",
        name="rates",
    )
    drawn = [by_epoch]
    if sample.learned:
        scatter = figures.rates_against_scores(
            sample, colours(comparison.strategies)[sample.strategy]
        )
        caption = (
            "Rates follow the scores within a batch, so equal scores in different batches may get "
            "different rates. Scorer and mapper of the first seed's chosen epoch."
        )
        drawn.append(embed_figure(scatter, caption, name="scores"))
    return Section("Dropout rates", (grid(*drawn),))


def _forecasts(comparison: Comparison, runs: Runs, data: Any) -> Section:
    first = {strategy: group[0] for strategy, group in runs.items()}
    examples, looked_at = figure_data.forecast_examples(first, data)
    drawn = [
        embed_figure(figures.forecast_example(example), _errors(example), name=f"example-{number}")
        for number, example in enumerate(examples)
    ]
    note = (
        f"Raw units; models of seed {comparison.seeds[0]}. Best and worst: where the mean absolute "
        f"error of {comparison.strategies[-1]} is furthest below and above that of "
        f"{comparison.strategies[0]}, among {looked_at:,} test windows and their channels."
    )
    return Section("Forecasts", (grid(*drawn), paragraph(note, note=True)))


def _errors(example: figure_data.ForecastExample) -> str:
    said = ", ".join(f"{name} {error:.3f}" for name, error in example.errors.items())
    return f"Mean absolute error, z-scored: {said}."


def _confusions(comparison: Comparison, runs: Runs, data: Any) -> Section:
    drawn = [
        embed_figure(
            figures.confusion_matrix(figure_data.confusion(group), data.classes, strategy),
            f"{strategy}: test cases, summed over the seeds.",
            name=f"confusion-{number}",
        )
        for number, (strategy, group) in enumerate(runs.items())
    ]
    return Section("Confusion matrices", (grid(*drawn),))


def _strips(comparison: Comparison, runs: Runs, data: Any) -> Section:
    strip = figure_data.anomaly_strip({name: group[0] for name, group in runs.items()}, data)
    drawn = [
        embed_figure(
            figures.anomaly_scores(strip, strategy),
            f"{strategy}: model of seed {comparison.seeds[0]}. Dashed: the threshold. Shaded: "
            "labelled anomalies. Each point is the largest score of a stretch of rows.",
            name=f"strip-{number}",
        )
        for number, strategy in enumerate(runs)
    ]
    return Section("Anomaly scores", (grid(*drawn),))


_EXAMPLES = {
    "forecasting": _forecasts,
    "classification": _confusions,
    "anomaly": _strips,
}


def _spectra(sample: figure_data.RateSample) -> Section:
    whose = f"the scorer {sample.strategy} has learned" if sample.learned else "a fresh scorer"
    among = ", among those that move at least a tenth as much as the least reliable one"
    shown = (("most reliable", sample.reliable, among), ("least reliable", sample.unreliable, ""))
    drawn = [
        embed_figure(
            figures.spectrum(view, title),
            f"The {title} of {len(sample.scores):,} training windows, by {whose}{rule}.",
            name=f"spectrum-{number}",
        )
        for number, (title, view, rule) in enumerate(shown)
    ]
    return Section("Spectra", (grid(*drawn),))


def _settings(comparison: Comparison, data: Any) -> Section:
    tables = (settings_table(comparison), environment_table(comparison))
    notes: Sequence[str] = data.notes
    return Section(
        "Settings and environment",
        (
            grid(*(table.html(kind="settings") for table in tables)),
            *(paragraph(note, note=True) for note in notes),
        ),
    )


def _repeat(comparison: Comparison, command: str | None) -> Section:
    again = repeat_command(comparison)
    parts = [code_block(again)]
    if command is not None and command != again:
        parts = [code_block(command), paragraph("which is the same as"), *parts]
    return Section("How to repeat it", tuple(parts))
