"""`sacm runs` (list, show, compare, report, remove), and the runs and files that users name."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli.options import AsJson, Runs
from sacm.cli.output import note, show_json, show_results, show_table, show_texts
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
LATEST, RUNS = "latest", Path("runs")


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
    from sacm.reports.table import Table

    headings = ("run", "state", "trained", "horizon", "epochs", "measure", "value", "baselines")
    beats = {True: "better", False: "worse", None: ""}
    rows = [
        (
            each["run"],
            each["state"],
            (each["trained"] or "")[:16].replace("T", " "),
            str(each["horizon"] or ""),
            str(each["epochs"] or ""),
            "MAE, z-scored" if each["measure"] == "mae" else each["measure"] or "",
            each["value"],
            beats[each["beats_baselines"]],
        )
        for each in found
    ]
    # Not wrapped: a name must be copied whole.
    typer.echo(Table(headings, tuple(rows), words=3).plain())
    note("baselines: whether the run is better or worse than the best forecast without a network.")


@app.command()
def show(run: OneRun = Path("latest"), as_json: AsJson = False) -> None:
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


@app.command()
def latest(runs: Runs = Path("runs")) -> None:
    """Print the folder of the newest finished run.

    Example: sacm runs latest
    """
    typer.echo(find_run(runs / "latest"))


@app.command()
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
    """Write a page about one run: forecast, errors, intervals, repairs, how it was made.

    Example: sacm runs report latest --out run.html
    """
    from sacm.inference.run_page import run_page

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
    """What a list says about a run; a damaged one is listed as such.

    The files are read as they are: a list need not wait for torch.
    """
    record: dict[str, Any] = {"run": folder.name, "state": "unfinished", "trained": None}
    names = ("horizon", "epochs", "measure", "value", "beats_baselines")
    record |= dict.fromkeys(names)
    results = folder / "metrics.json"
    try:
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        record["horizon"] = settings.get("horizon") or None
        if (folder / "failure.json").exists():
            record["state"] = "failed"
        elif results.exists() and (folder / "best.safetensors").exists():
            metrics = json.loads(results.read_text(encoding="utf-8"))
            ended = datetime.fromtimestamp(results.stat().st_mtime, tz=UTC).astimezone()
            record |= {"trained": ended.isoformat(timespec="seconds"), "state": "finished"}
            record |= {"epochs": metrics["epochs"], **_measure(settings["task"], metrics)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        record["state"] = "damaged"
    return record


def _measure(task: str, metrics: dict[str, Any]) -> dict[str, Any]:
    """The leading measure of a run, and whether it is better than every baseline."""
    leading = {"forecasting": "mae", "classification": "accuracy", "anomaly": "f1"}
    beside = metrics.get("baselines", {})
    beats = not beside["sentences"] if len(beside.get("rows", {})) > 1 else None
    value = metrics.get("test", {}).get(leading[task])
    return {"measure": leading[task], "value": value, "beats_baselines": beats}


def _side_by_side(records: list[dict[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for record in records for name in record)
    return {name: [record.get(name) for record in records] for name in names}


@contextmanager
def as_user_error() -> Iterator[None]:
    """Re-raise an SACMError as an ArgumentError, so that the command exits with 2, not 1."""
    try:
        yield
    except ArgumentError:
        raise
    except SACMError as error:
        raise ArgumentError(str(error)) from None


def find_run(name: Path) -> Path:
    """The folder that a user means: a folder, `latest`, or the beginning of a run's name.

    `latest` is the newest finished run in `runs`, `other/latest` that in another folder.

    Raises:
        ArgumentError: There is no run, or the name begins several.
    """
    if (name / "config.json").exists():
        return name
    folder = RUNS if len(name.parts) < 2 else name.parent
    if name.name == LATEST:
        found = sorted(folder.glob("*/metrics.json"), key=lambda path: path.stat().st_mtime_ns)
        if not found:
            raise ArgumentError(f"there is no finished run in {folder}: train one first.")
        return found[-1].parent
    if name.exists() or not folder.is_dir() or not name.name:
        return name
    begun = [each.parent for each in folder.glob("*/config.json")]
    begun = sorted(each for each in begun if each.name.startswith(name.name))
    if len(begun) > 1:
        names = ", ".join(each.name for each in begun[:5])
        raise ArgumentError(f"{name} could be any of {len(begun)} runs: {names}. Name one.")
    return begun[0] if begun else name


def load_run(folder: Path) -> Run:
    """A finished run: a folder, `latest`, or the beginning of a name."""
    from sacm.training import Run

    with as_user_error():
        run = Run.load(find_run(folder))
        if not run.finished:
            raise ArgumentError(f"{run.folder} is not finished: run the same training again.")
        _ = run.settings, run.scaler, run.metrics, run.shape  # read now, to complain now
    return run


def check_writable(folder: Path) -> None:
    """Refuse a folder for results before any work is done for them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"{folder} cannot be made: {error.strerror}.") from None
    if not os.access(folder, os.W_OK):
        raise ArgumentError(f"{folder} cannot be written to: permission denied.")


def check_output(path: Path | None) -> None:
    """Refuse a file for results that is a folder, before any work is done for it."""
    if path is not None and path.is_dir():
        raise ArgumentError(f"{path} is a folder: name a file in it.")


def is_main_process() -> bool:
    """True in the process that prints; of several that share a run, the first does."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


def write_file(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file of results, whole or not at all."""
    from sacm.files import write_atomically

    with as_user_error():
        write_atomically(path, write)
