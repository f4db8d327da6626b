"""`sacm train`, `compare` and `tune`: one run, or many and what they say together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from sacm.cli import options, output
from sacm.cli.output import note
from sacm.errors import ArgumentError
from sacm.settings import RunSettings

_LARGE = 3_000_000  # values, which take about half a minute


@options.takes_settings()
def train(
    asked: dict[str, Any],
    runs: options.Runs = Path("runs"),
    as_json: options.AsJson = False,
    accelerator: options.Accelerator = "auto",
) -> None:
    """Train a network, test it, and keep the run.

    The same command continues a run that was stopped, and does not repeat a finished one.

    Example: sacm train forecasting --data my.csv --horizon 24
    """
    from sacm import training
    from sacm.files import write_json
    from sacm.tasks import get_task, let_compete, make_settings

    settings = make_settings(**let_compete(asked))
    data, task = output.read_data(settings, runs), get_task(settings.task)
    data = task.divide(task.resolve(settings, data), data)
    quality = inspect_quality(data, settings)
    hardware = training.Hardware(accelerator)
    run = training.train(settings, folder=runs, hardware=hardware, data=data)
    if quality is not None:
        write_json(run.folder / "quality.json", quality)
    metrics = run.metrics
    if as_json:
        output.show_json({"run": str(run.folder), "settings": run.settings.model_dump(), **metrics})
        return
    output.show_results(settings.task, metrics)
    output.show_notes(metrics.get("notes", ()))
    if metrics["epochs"]:
        note(
            f"{run.settings.backbone} with {run.settings.strategy}: best of {metrics['epochs']} "
            f"epochs was {metrics['best_epoch']}, {metrics['train_seconds']:.1f} s of training."
        )
    typer.echo(f"run: {run.folder}")
    note(f"Next: sacm predict {run.folder}")


def inspect_quality(data: Any, settings: RunSettings) -> dict[str, Any] | None:
    """Say in one line what is broken in a series; None where it is too large to look at now."""
    from sacm.errors import SACMError
    from sacm.quality.inspect import inspect
    from sacm.strategies.guard import files_of

    if settings.task == "classification":  # its labels are judged by the strategy labels
        return None
    if (data.values if settings.task == "forecasting" else data.train).size > _LARGE:
        note("Quality: not looked at, the data are large; `sacm quality` does it on request.")
        return None
    files: Any = files_of(settings.strategy or "raw")
    try:
        quality = inspect(data, **files)
    except SACMError as error:
        note(f"Quality: could not be judged: {error}")
        return None
    note(f"Quality: {quality.sentences()[0]}")
    return quality.overview()


@options.takes_settings(
    without=("strategy", "seed", "time_limit"),
    lead=("data", "strategies", "seeds", "horizon", "backbone", "out"),
)
def compare(
    asked: dict[str, Any],
    strategies: Annotated[str, Option(help="Two or more; the first is the reference.")] = "",
    seeds: Annotated[str, Option(help="Whole numbers.")] = "2022,2023,2024,2025,2026",
    runs: options.Runs = Path("runs"),
    out: Annotated[Path | None, Option(help="Write an HTML report to this file.")] = None,
    as_json: options.AsJson = False,
    accelerator: options.Accelerator = "auto",
) -> None:
    """Train strategies with the same seeds, weights and batches, and compare them in pairs.

    The default is raw against the strategy of the task, or sacm if that is raw. Finished runs are
    not repeated.

    Example: sacm compare forecasting --data ILI --seeds 2022,2023 --out report.html
    """
    from sacm.tasks import make_settings
    from sacm.training import Hardware

    settings, hardware = make_settings(**asked), Hardware(accelerator)
    default = "sacm" if settings.strategy == "raw" else settings.strategy
    names = _strategies(strategies or f"raw,{default}", settings)
    numbers = options.numbers(seeds, "--seeds")
    comparison, _ = run_comparison(settings, names, numbers, runs, hardware, out, quiet=as_json)
    if as_json:
        output.show_json({**comparison.to_dict(), "report": out and str(out)})


def _strategies(text: str, settings: RunSettings) -> list[str]:
    """Strategies that are separated by commas; their guards obey the files of the settings."""
    from sacm.strategies.guard import files_of, share_files
    from sacm.strategies.registry import split

    return share_files(list(filter(None, split(text, ","))), files_of(settings.strategy or "raw"))


def run_comparison(
    settings: RunSettings,
    strategies: Sequence[str],
    seeds: Sequence[int],
    runs: Path,
    hardware: Any,
    out: Path | None,
    *,
    quiet: bool,
) -> tuple[Any, Any]:
    """Train, compare, print unless `quiet`, and write a page if `out` names one; with the data."""
    from sacm.experiments import compare
    from sacm.files import write_text

    if out is not None:
        if out.is_dir() or out.suffix.lower() not in (".html", ".htm"):
            raise ArgumentError(f"--out {out}: a report is an .html file.")
        output.check_writable(out.parent)
    data = output.read_data(settings, runs)

    def announce(run: RunSettings, number: int, total: int) -> None:
        note(f"[{number}/{total}] {run.backbone}, {run.strategy}, seed {run.seed}")

    comparison = compare.compare(
        settings, strategies, seeds, folder=runs, hardware=hardware, data=data, on_start=announce
    )
    # Results are printed first: a report that cannot be written must not keep them back.
    if not quiet:
        compare.result_table(comparison).print()
        compare.cost_table(comparison).print()
        typer.echo("\n".join(compare.headline(comparison)))
        note(compare.LEGEND + (compare.ANOMALY_LEGEND if settings.task == "anomaly" else ""))
    if out is None:
        note("Next: the same command with --out report.html writes this as a page.")
    else:
        write_text(out, compare.comparison_page(comparison))
        typer.echo(f"report: {out}", err=quiet)
    return comparison, data


@options.takes_settings(
    without=("strategy", "time_limit"),
    lead=("data", "trials", "strategies", "horizon", "backbone", "epochs"),
)
def tune(
    asked: dict[str, Any],
    trials: Annotated[int, Option(help="Settings to try, at most.", min=1)] = 30,
    strategies: Annotated[str, Option(help="Separated by commas. Default: the task's.")] = "",
    runs: options.Runs = Path("runs"),
    as_json: options.AsJson = False,
    accelerator: options.Accelerator = "auto",
) -> None:
    """Search learning rate, size, input length, batch size and strategy; train and test the best.

    Settings that are named as options are not searched. Trials see no test rows. If the search is
    interrupted, the same command continues it.

    Example: sacm tune forecasting --data my.csv --trials 30
    """
    from sacm.experiments.tune import TUNED, tune
    from sacm.tasks import make_settings
    from sacm.training import Hardware

    settings = make_settings(**asked)
    data = output.read_data(settings, runs)
    tuned = tune(
        settings,
        data,
        trials=trials,
        strategies=_strategies(strategies or str(settings.strategy), settings),
        fixed=[name for name in TUNED if name in asked],
        folder=runs,
        hardware=Hardware(accelerator),
        on_trial=lambda number, chosen: note(f"[trial {number}] {_spell(chosen)}"),
    )
    run = tuned.run
    if as_json:
        record = {"chosen": tuned.chosen, "value": tuned.value, "trials": tuned.trials}
        output.show_json({"run": str(run.folder), **record, **run.metrics})
        return
    output.show_results(run.settings.task, run.metrics)
    note(f"Chosen: {_spell(tuned.chosen)}; validation {run.settings.select} {tuned.value:.4g}.")
    note(f"The runs of the {len(tuned.trials)} trials are in {tuned.folder}.")
    typer.echo(f"run: {run.folder}")
    note(f"Next: sacm predict {run.folder}")


def _spell(chosen: dict[str, Any]) -> str:
    """Settings by name in one line."""
    return ", ".join(f"{name} {output.format_cell(value)}" for name, value in chosen.items())
