"""`sacm evaluate`: test a finished run again, from its checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli.options import AsJson, KeepFile, RulesFile, takes_reading
from sacm.errors import ArgumentError

if TYPE_CHECKING:
    from sacm.inference import Predictor
    from sacm.tasks import Result


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
    rules: RulesFile = None,
    keep: KeepFile = None,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Evaluate the saved network on the test part of its data again, or on other data.

    Example: sacm evaluate latest --data new.csv
    """
    from sacm.cli.output import note, show_json, show_results
    from sacm.cli.predict import shares
    from sacm.cli.runs import as_user_error, load_run
    from sacm.data import fingerprint
    from sacm.files import read_json
    from sacm.inference import Predictor
    from sacm.strategies.guard import obeying

    nominal = shares(coverage, "--coverage")
    finished = load_run(run).read_as(reading)
    facts: dict[str, Any] = {"run": str(finished.folder)}
    with as_user_error():
        predictor = obeying(Predictor.load(finished), rules, keep)
        source: Any = finished.load_data() if data is None else data
        metrics = as_metrics(predictor.evaluate(source))
        if nominal:
            metrics["uncertainty"] = judge_intervals(predictor, source, nominal)
    if data is None:
        trained_on = read_json(finished.folder / "environment.json").get("fingerprint")
        changes = changed_results(finished.metrics.get("test", {}), metrics["test"])
        facts |= {"same_data": trained_on == fingerprint(source), "same_results": not changes}
        if not facts["same_data"] and not as_json:
            note(f"Note: {finished.settings.data} has changed since the run was trained.")
        for name, (then, now) in changes.items() if not as_json else ():
            note(f"Note: {name} is {now}, but the run recorded {then}.")
    else:
        facts["data"] = data
    if as_json:
        show_json({**facts, **metrics})
        return
    show_results(finished.settings.task, metrics)
    if nominal:
        show_intervals(metrics["uncertainty"])


def judge_intervals(predictor: Predictor, source: Any, nominal: Sequence[float]) -> dict[str, Any]:
    """How conformal intervals do: half of the windows calibrates, the other half tests."""
    from sacm.inference.forecast import prepare_evaluation
    from sacm.inference.intervals import measure_uncertainty

    if predictor.settings.task != "forecasting":
        raise ArgumentError("intervals are for forecasts.")
    _, windows = prepare_evaluation(predictor, source)
    return measure_uncertainty(predictor, windows, nominal)


def show_intervals(found: Mapping[str, Any]) -> None:
    """Coverage and width of fixed and adaptive intervals."""
    from sacm.cli.output import note, show_table

    headings = ("intervals", "should enclose", "enclosed", "width, z-scored")
    names = {"fixed": "as predicted", "adaptive": "corrected by every new row"}
    rows = [
        (name, f"{each['nominal']:.0%}", f"{each[kind]['coverage']:.1%}", each[kind]["width"])
        for each in found["intervals"]
        for kind, name in names.items()
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


def as_metrics(result: Result) -> dict[str, Any]:
    """A test result as runs record it."""
    return {
        "test": result.row,
        "report": result.report,
        "evaluated_windows": result.evaluated,
        "test_windows": result.evaluated,
        "baselines": result.baselines,
    }
