"""`sacm runs` (list, show, latest, compare, report, remove), and how users name runs."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli.options import AsJson, RunName, Runs
from sacm.cli.output import note, show_json, show_results, show_table, show_texts, write_text
from sacm.errors import ArgumentError

if TYPE_CHECKING:
    from sacm.inference import Predictor
    from sacm.training import Run

runs = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="List, show, compare, report or remove runs.\n\nExample: sacm runs list",
)
LATEST, RUNS = Path("latest"), Path("runs")
_LEADING = {"forecasting": "mae", "classification": "accuracy", "anomaly": "f1"}
_BESIDE_BASELINES = {True: "better", False: "worse", None: ""}


@runs.command("list")
def list_runs(runs: Runs = RUNS, as_json: AsJson = False) -> None:
    """List the runs of a folder, the newest first.

    Example: sacm runs list
    """
    if not runs.is_dir():
        raise ArgumentError(f"there is no folder {runs}.")
    files = sorted(runs.glob("*/config.json"), key=lambda path: -path.stat().st_mtime_ns)
    records = [summarise_run(file.parent) for file in files]
    if as_json:
        show_json(records)
        return
    if not records:
        note(f"There is no run in {runs}.")
        return
    rows = []
    for record in records:
        *values, measure, value, better = record.values()
        measure = "MAE, z-scored" if measure == "mae" else measure
        rows.append((*values, measure, value, _BESIDE_BASELINES[better]))
    show_table([name.removeprefix("beats_") for name in records[0]], rows, words=3)
    note("baselines: whether the run is better or worse than the best forecast without a network.")


@runs.command()
def show(run: RunName = LATEST, as_json: AsJson = False) -> None:
    """Show the results and settings of a run.

    Example: sacm runs show latest
    """
    finished = load_run(run)
    settings = finished.settings.model_dump()
    if as_json:
        show_json({"run": str(finished.folder), "settings": settings, **finished.metrics})
        return
    rows = [(name, str(value)) for name, value in settings.items() if value not in (None, "", {})]
    show_texts(("setting", "value"), rows)
    show_results(finished.settings.task, finished.metrics)
    typer.echo(f"run: {finished.folder}")


@runs.command()
def latest(runs: Runs = RUNS) -> None:
    """Print the folder of the newest finished run.

    Example: sacm runs latest
    """
    typer.echo(find_run(runs / LATEST))


@runs.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN RUN …", help="Two or more runs.")],
    as_json: AsJson = False,
) -> None:
    """Put the results of runs side by side, and the settings in which they differ.

    Example: sacm runs compare my_PatchTST_raw my_PatchTST_sacm
    """
    finished = [load_run(each) for each in runs]
    if len(finished) < 2:
        raise ArgumentError("there is one run: name two or more to compare.")
    results = _side_by_side([run.metrics.get("test", {}) for run in finished])
    settings = _side_by_side([run.settings.model_dump() for run in finished])
    different = {name: row for name, row in settings.items() if any(v != row[0] for v in row)}
    names = [run.folder.name for run in finished]
    if as_json:
        show_json({"runs": names, "settings": different, "results": results})
        return
    headings = [f"run {number}" for number in range(1, len(names) + 1)]
    for heading, name in zip(headings, names, strict=True):
        note(f"{heading}: {name}")
    rows: list[Any] = [(name, *map(str, row)) for name, row in different.items()]
    show_table(("", *headings), [*rows, *((name, *row) for name, row in results.items())])


def _side_by_side(records: list[dict[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for record in records for name in record)
    return {name: [record.get(name) for record in records] for name in names}


@runs.command()
def report(
    run: RunName = LATEST,
    out: Annotated[Path, typer.Option(help="The HTML file.")] = Path("run.html"),
) -> None:
    """Write a page about one run: forecast, errors, intervals, repairs, how it was made.

    Example: sacm runs report latest --out run.html
    """
    from sacm.inference.run_page import run_page

    write_text(run_page(load_run(run)), out)
    typer.echo(f"report: {out}")


@runs.command()
def remove(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run, as for runs show.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a run and everything in its folder.

    Example: sacm runs remove my_PatchTST_sacm_seed42_0123456789
    """
    import shutil

    from sacm.training import Run

    folder = Run.load(find_run(run)).folder
    if not yes and not typer.confirm(f"Delete {folder}?", err=True):
        note("Nothing was deleted.")
        return
    shutil.rmtree(folder)
    note(f"{folder} is deleted.")


def summarise_run(folder: Path) -> dict[str, Any]:
    """What a list says about a run; a damaged one is listed as such.

    The files are read as they are: a list need not wait for torch.
    """
    record: dict[str, Any] = {"run": folder.name, "state": "unfinished"}
    record |= dict.fromkeys(("trained", "horizon", "epochs", "measure", "value", "beats_baselines"))
    results = folder / "metrics.json"
    try:
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        record["horizon"] = settings.get("horizon") or None
        if (folder / "failure.json").exists():
            record["state"] = "failed"
        elif results.exists() and (folder / "best.safetensors").exists():
            metrics = json.loads(results.read_text(encoding="utf-8"))
            ended = datetime.fromtimestamp(results.stat().st_mtime, tz=UTC).astimezone()
            measure, beside = _LEADING[settings["task"]], metrics.get("baselines", {})
            compared = len(beside.get("rows", {})) > 1
            record |= {
                "state": "finished",
                "trained": ended.isoformat(" ", timespec="minutes"),
                "epochs": metrics["epochs"],
                "measure": measure,
                "value": metrics.get("test", {}).get(measure),
                "beats_baselines": not beside["sentences"] if compared else None,
            }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        record["state"] = "damaged"
    return record


def find_run(name: Path) -> Path:
    """The folder that a user means: a folder, `latest`, or the beginning of a run's name.

    `latest` is the newest finished run in `runs`, `other/latest` that in another folder.
    """
    if (name / "config.json").exists():
        return name
    folder = RUNS if len(name.parts) < 2 else name.parent
    if name.name == LATEST.name:
        results = sorted(folder.glob("*/metrics.json"), key=lambda path: path.stat().st_mtime_ns)
        if not results:
            raise ArgumentError(f"there is no finished run in {folder}: train one first.")
        return results[-1].parent
    if name.exists() or not name.name:
        return name
    begun = sorted(file.parent for file in folder.glob("*/config.json"))
    begun = [run for run in begun if run.name.startswith(name.name)]
    if len(begun) > 1:
        names = ", ".join(run.name for run in begun[:5])
        raise ArgumentError(f"{name} could be any of {len(begun)} runs: {names}. Name one.")
    return begun[0] if begun else name


def load_run(folder: Path) -> Run:
    """A finished run: a folder, `latest`, or the beginning of a name."""
    from sacm.training import Run

    run = Run.load(find_run(folder))
    if not run.finished:
        raise ArgumentError(f"{run.folder} is not finished: run the same training again.")
    _ = run.settings, run.scaler, run.metrics, run.shape  # read now, to complain now
    return run


def load_predictor(
    run: Path, rules: Path | None = None, keep: Path | None = None, **reading: Any
) -> tuple[Run, Predictor]:
    """A finished run and its network, with other options for reading and other rules."""
    from sacm.cli.options import check_reading
    from sacm.inference import Predictor
    from sacm.strategies.guard import obeying

    finished = load_run(run).read_as(check_reading(**reading))
    predictor = Predictor.load(finished)
    return finished, obeying(predictor, rules, keep) if rules or keep else predictor


def is_main_process() -> bool:
    """True in the process that prints; of several that share a run, the first does."""
    return os.environ.get("LOCAL_RANK", "0") == "0"
