"""`sacm runs`: what has been trained: list, show, compare, report, remove."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli.options import AsJson, Runs
from sacm.cli.output import note, show_json, show_table, show_texts
from sacm.errors import ArgumentError, SACMError

if TYPE_CHECKING:
    from sacm.training import Run

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="List, show, compare, report or remove runs.\n\nExample: sacm runs list",
)
_RUN = typer.Argument(
    metavar="RUN", help="A run: its folder, the beginning of its name, or latest."
)
OneRun = Annotated[Path, _RUN]


@app.command("list")
def list_runs(runs: Runs = Path("runs"), as_json: AsJson = False) -> None:
    """List the runs of a folder, the newest first.

    Example: sacm runs list
    """
    found = [summarise_run(folder) for folder in newest_first(runs)]
    if as_json:
        show_json(found)
        return
    if not found:
        note(f"There is no run in {runs}.")
        return
    headings = ("run", "state", "epochs", "measure", "value", "beats baselines")
    rows = [
        (
            each["run"],
            each["state"],
            str(each["epochs"] or ""),
            each["measure"] or "",
            each["value"],
            {True: "yes", False: "no", None: ""}[each["beats_baselines"]],
        )
        for each in found
    ]
    show_table(headings, rows, words=2)


@app.command()
def show(run: OneRun = Path("latest"), as_json: AsJson = False) -> None:
    """Show the results and settings of a run.

    Example: sacm runs show latest
    """
    from sacm.cli.output import show_results
    from sacm.cli.runs import load_run

    finished = load_run(run)
    settings = finished.settings.model_dump()
    if as_json:
        show_json({"run": str(finished.folder), "settings": settings, **finished.metrics})
        return
    rows = [(name, str(value)) for name, value in settings.items() if value not in (None, "", {})]
    show_texts(("setting", "value"), rows)
    show_results(finished.settings.task, finished.metrics)
    typer.echo(f"run: {finished.folder}")


@app.command()
def latest(runs: Runs = Path("runs")) -> None:
    """Print the folder of the newest finished run.

    Example: sacm runs latest
    """
    from sacm.cli.runs import find_run

    typer.echo(find_run(runs / "latest"))


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN RUN …", help="Two or more runs.")],
    as_json: AsJson = False,
) -> None:
    """Put the results of runs side by side, and the settings in which they differ.

    Example: sacm runs compare my_PatchTST_raw my_PatchTST_sacm
    """
    from sacm.cli.runs import load_run

    finished = [load_run(each) for each in runs]
    if len(finished) < 2:
        raise ArgumentError("there is one run: name two or more to compare.")
    results = _side_by_side([run.metrics.get("test", {}) for run in finished])
    settings = _side_by_side([run.settings.model_dump() for run in finished])
    different = {name: own for name, own in settings.items() if any(v != own[0] for v in own)}
    names = [run.folder.name for run in finished]
    if as_json:
        show_json({"runs": names, "settings": different, "results": results})
        return
    numbers = [f"run {place}" for place in range(1, len(names) + 1)]
    for number, name in zip(numbers, names, strict=True):
        note(f"{number}: {name}")
    rows: list[Any] = [(name, *map(str, own)) for name, own in different.items()]
    rows += [(name, *own) for name, own in results.items()]
    show_table(("", *numbers), rows)


@app.command()
def report(
    run: OneRun = Path("latest"),
    out: Annotated[Path, typer.Option(help="The HTML file.")] = Path("run.html"),
) -> None:
    """Write a page about one run: results, model card, training, settings, how to use it.

    Example: sacm runs report latest --out run.html
    """
    from sacm.cli.runs import load_run, write_file
    from sacm.experiments.run_page import run_page

    text = run_page(load_run(run))
    write_file(out, lambda file: file.write_text(text, encoding="utf-8"))
    typer.echo(f"report: {out}")


@app.command()
def remove(
    run: Annotated[Path, _RUN],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a run and everything in its folder.

    Example: sacm runs remove my_PatchTST_sacm_seed42_0123456789
    """
    import shutil

    from sacm.cli.runs import as_user_error, find_run
    from sacm.training import Run

    with as_user_error():
        folder = Run.load(find_run(run)).folder
    if not yes and not typer.confirm(f"Delete {folder}?", err=True):
        note("Nothing was deleted.")
        return
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise ArgumentError(f"{folder} cannot be deleted: {error.strerror}.") from None
    note(f"{folder} is deleted.")


def newest_first(runs: Path) -> list[Path]:
    """Folders of runs."""
    if not runs.is_dir():
        raise ArgumentError(f"there is no folder {runs}.")
    found = runs.glob("*/config.json")
    return [p.parent for p in sorted(found, key=lambda p: p.stat().st_mtime_ns, reverse=True)]


def summarise_run(folder: Path) -> dict[str, Any]:
    """What a list says about a run; a damaged one is listed as such."""
    from sacm.training import Run

    run = Run(folder)
    record: dict[str, Any] = {"run": folder.name, "state": "unfinished", "epochs": None}
    record |= {"measure": None, "value": None, "beats_baselines": None}
    try:
        if (folder / "failure.json").exists():
            record["state"] = "failed"
        elif run.finished:
            record |= {"state": "finished", "epochs": run.metrics["epochs"], **_measure(run)}
    except (SACMError, KeyError):
        record["state"] = "damaged"
    return record


def _measure(run: Run) -> dict[str, Any]:
    name = {"forecasting": "mae", "classification": "accuracy", "anomaly": "f1"}[run.settings.task]
    beside: Mapping[str, Any] = run.metrics.get("baselines", {})
    beats = not beside["sentences"] if len(beside.get("rows", {})) > 1 else None
    value = run.metrics.get("test", {}).get(name)
    return {"measure": name, "value": value, "beats_baselines": beats}


def _side_by_side(records: list[dict[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for record in records for name in record)
    return {name: [record.get(name) for record in records] for name in names}
