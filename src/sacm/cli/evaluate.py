"""`sacm evaluate`: test a finished run again, from its checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sacm.cli.options import AsJson

if TYPE_CHECKING:
    from sacm.training import Run


def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    as_json: AsJson = False,
) -> None:
    """Evaluate the saved network on the test part of its data again.

    Example: sacm evaluate runs/my_PatchTST_sacm_seed42_0123456789
    """
    from sacm.cli.output import note, show_json, show_results
    from sacm.cli.runs import open_run

    opened = open_run(run)
    metrics, same_data = evaluate_again(opened)
    changes = changed_results(opened.metrics.get("test", {}), metrics["test"])
    if as_json:
        facts = {"run": str(run), "same_data": same_data, "same_results": not changes}
        show_json({**facts, **metrics})
        return
    if not same_data:
        note(f"Note: {opened.settings.data} has changed since the run was trained.")
    for name, (then, now) in changes.items():
        note(f"Note: {name} is {now}, but the run recorded {then}.")
    show_results(opened.settings.task, metrics)


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
        predictor = Predictor.open(run)
        predictor.shape.check_columns(run.settings.data, getattr(data, "columns", ()))
    result = predictor.evaluate(data)
    metrics = {
        "test": result.row,
        "report": result.report,
        "evaluated_windows": result.evaluated,
        "test_windows": result.evaluated,
        "yardsticks": result.yardsticks,
    }
    return metrics, environment.get("fingerprint") == fingerprint(data)
