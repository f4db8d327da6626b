"""`sacm evaluate`: test a finished run again, from its checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli.options import AsJson, takes_reading

if TYPE_CHECKING:
    from sacm.tasks import Result
    from sacm.training import Run


@takes_reading(without=("target", "columns", "split", "scaling"))
def evaluate(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A finished run: its folder, or latest.")
    ],
    data: Annotated[
        str | None, typer.Option(help="Test on all of this file instead of the run's test part.")
    ] = None,
    coverage: Annotated[
        str | None,
        typer.Option(help="Forecasts: also test intervals of these shares, such as 0.8,0.95."),
    ] = None,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Evaluate the saved network on the test part of its data again, or on other data.

    Example: sacm evaluate latest --data new.csv
    """
    from sacm.cli.output import note, show_json, show_results
    from sacm.cli.predict import shares
    from sacm.cli.runs import load_run

    nominal = shares(coverage, "--coverage")
    opened = load_run(run).read_as(reading)
    facts: dict[str, Any] = {"run": str(opened.folder)}
    if data is None:
        metrics, same_data = evaluate_again(opened)
        changes = changed_results(opened.metrics.get("test", {}), metrics["test"])
        facts |= {"same_data": same_data, "same_results": not changes}
        if not same_data and not as_json:
            note(f"Note: {opened.settings.data} has changed since the run was trained.")
        for name, (then, now) in changes.items() if not as_json else ():
            note(f"Note: {name} is {now}, but the run recorded {then}.")
    else:
        metrics = evaluate_other(opened, data)
        facts["data"] = data
    if nominal:
        metrics["uncertainty"] = judge_intervals(opened, data, nominal)
    if as_json:
        show_json({**facts, **metrics})
        return
    show_results(opened.settings.task, metrics)
    if nominal:
        show_intervals(metrics["uncertainty"])


def evaluate_other(run: Run, source: str) -> dict[str, Any]:
    """Test results of a run on other data."""
    from sacm.cli.runs import as_user_error
    from sacm.inference import Predictor

    with as_user_error():
        return as_metrics(Predictor.load(run).evaluate(source))


def judge_intervals(run: Run, source: str | None, nominal: Sequence[float]) -> dict[str, Any]:
    """How conformal intervals do: half of the windows calibrates, the other half tests."""
    from sacm.cli.runs import as_user_error
    from sacm.errors import ArgumentError
    from sacm.inference import Predictor
    from sacm.inference.history import measured, read_history
    from sacm.inference.intervals import evaluation_windows, measure_uncertainty

    if run.settings.task != "forecasting":
        raise ArgumentError("intervals are for forecasts.")
    with as_user_error():
        predictor = Predictor.load(run)
        data: Any = run.load_data() if source is None else read_history(predictor, source).data
        windows = evaluation_windows(predictor, measured(data))
        return measure_uncertainty(predictor, windows, nominal)


def show_intervals(found: Mapping[str, Any]) -> None:
    """Coverage and width of fixed and adaptive intervals."""
    from sacm.cli.output import note, show_table

    headings = ("interval", "nominal", "coverage", "width, z-scored")
    rows = [
        (kind, f"{each['nominal']:g}", each[kind]["coverage"], each[kind]["width"])
        for each in found["intervals"]
        for kind in ("fixed", "adaptive")
    ]
    show_table(headings, rows)
    note(
        f"Calibrated on {found['calibration_windows']:,} windows, tested on the "
        f"{found['windows']:,} after them; CRPS {found['crps']:.4g}."
    )


def changed_results(
    then: Mapping[str, float | None], now: Mapping[str, float | None]
) -> dict[str, tuple[float | None, float | None]]:
    """Results that differ from the recorded ones by more than rounding: `{name: (then, now)}`."""

    def same(a: float | None, b: float | None) -> bool:
        if a is None or b is None:
            return a is b
        return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-12)

    both = {name: (then.get(name), now.get(name)) for name in {**then, **now}}
    return {name: pair for name, pair in both.items() if not same(*pair)}


def evaluate_again(run: Run) -> tuple[dict[str, Any], bool]:
    """Fresh test results of a run, and whether its data are still the same."""
    from sacm.cli.runs import as_user_error
    from sacm.data import fingerprint
    from sacm.files import read_json
    from sacm.inference import Predictor

    with as_user_error():
        data = run.load_data()
        environment = read_json(run.folder / "environment.json")
        predictor = Predictor.load(run)
        result = predictor.evaluate(data)
    return as_metrics(result), environment.get("fingerprint") == fingerprint(data)


def as_metrics(result: Result) -> dict[str, Any]:
    """A test result as runs record it."""
    return {
        "test": result.row,
        "report": result.report,
        "evaluated_windows": result.evaluated,
        "test_windows": result.evaluated,
        "yardsticks": result.yardsticks,
    }
