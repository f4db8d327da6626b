"""`sacm runs` (list, show, latest, report, remove), and how users name runs."""

from __future__ import annotations

import glob
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from sacm.cli.options import AsJson, KeepFile, RulesFile, RunName, Runs, check_reading, takes
from sacm.cli.output import note, show_json, show_results, show_table, show_texts
from sacm.errors import ArgumentError
from sacm.settings import READING

HELP = "List, show, report or remove runs.\n\nExample: sacm runs list"
runs = typer.Typer(add_completion=False, no_args_is_help=True, help=HELP)
LATEST, RUNS = Path("latest"), Path("runs")
_LEADING = {"forecasting": "mae", "classification": "accuracy", "anomaly": "f1"}


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
    elif records:
        show_table(list(records[0]), [list(record.values()) for record in records], words=3)
        note("mae is z-scored; beats_baselines: better than every answer without a network.")
    else:
        note(f"There is no run in {runs}.")


@runs.command()
def show(run: RunName = LATEST, as_json: AsJson = False) -> None:
    """Show the results and settings of a run.

    Example: sacm runs show latest
    """
    from sacm.strategies.registry import spell_value

    finished = load_run(run)
    settings = finished.settings.model_dump()
    if as_json:
        show_json({"run": str(finished.folder), "settings": settings, **finished.metrics})
        return
    rows = [(k, spell_value(v)) for k, v in settings.items() if v not in (None, "", {})]
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
def report(
    run: RunName = LATEST,
    out: Annotated[Path, typer.Option(help="The HTML file.")] = Path("run.html"),
) -> None:
    """Write a page about one run: forecast, errors, intervals, repairs, how it was made.

    Example: sacm runs report latest --out run.html
    """
    from sacm.files import write_text
    from sacm.inference.run_page import run_page

    write_text(out, run_page(load_run(run)))
    typer.echo(f"report: {out}")


@runs.command()
def remove(
    run: RunName, yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False
) -> None:
    """Delete a run and everything in its folder.

    Example: sacm runs remove my_PatchTST_sacm_seed42_0123456789
    """
    from sacm.training import Run

    folder = Run.load(find_run(run)).folder
    if not yes:
        typer.confirm(f"Delete {folder}?", abort=True, err=True)
    shutil.rmtree(folder)
    note(f"{folder} is deleted.")


def summarise_run(folder: Path) -> dict[str, Any]:
    """What a list says about a run; a damaged one is listed as such, and torch is not needed."""
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
            record |= {"state": "finished", "trained": ended.isoformat(" ", timespec="minutes")}
            record |= {"epochs": metrics["epochs"], "measure": _LEADING[settings["task"]]}
            record["value"] = metrics.get("test", {}).get(record["measure"])
            if len(metrics.get("baselines", {}).get("rows", ())) > 1:
                record["beats_baselines"] = not metrics["baselines"]["sentences"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        record["state"] = "damaged"
    return record


def find_run(name: Path) -> Path:
    """The folder that a user means: a folder, `latest`, `other/latest`, or a name's beginning."""
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
    begun = sorted(folder.glob(f"{glob.escape(name.name)}*/config.json"))
    if len(begun) > 1:
        names = ", ".join(file.parent.name for file in begun[:5])
        raise ArgumentError(f"{name} could be any of {len(begun)} runs: {names}. Name one.")
    return begun[0].parent if begun else name


def load_run(folder: Path) -> Any:
    """A finished run: a folder, `latest`, or the beginning of a name."""
    from sacm.training import Run

    run = Run.load(find_run(folder))
    if not run.finished:
        raise ArgumentError(f"{run.folder} is not finished: run the same training again.")
    _ = run.settings, run.scaler, run.metrics, run.shape  # read now, to complain now
    return run


def load_predictor(
    run: RunName, rules: RulesFile = None, keep: KeepFile = None, **reading: Any
) -> tuple[Any, Any]:
    """A finished run and its network, with other options for reading and other rules."""
    from sacm.inference import Predictor
    from sacm.strategies.guard import obeying

    finished = load_run(run).read_as(check_reading(**reading))
    predictor = Predictor.load(finished)
    return finished, obeying(predictor, rules, keep) if rules or keep else predictor


# How a run reads its channels is part of its network.
_FIELDS = [name for name in READING if name not in ("target", "columns", "split", "scaling")]
takes_run = takes(load_predictor, into="loaded", fields=_FIELDS)  # a decorator of commands
