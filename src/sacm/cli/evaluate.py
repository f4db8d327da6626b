"""`sacm evaluate`: test a finished run again, from its checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from sacm.cli import options, output
from sacm.cli.output import note


@options.takes_run
def evaluate(
    loaded: Any,
    data: Annotated[
        str | None, typer.Option(help="Test on all of this file instead of the run's test part.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Evaluate the saved network on the test part of its data again, or on other data.

    Example: sacm evaluate latest --data new.csv
    """
    from sacm.data import fingerprint
    from sacm.files import read_json

    finished, predictor = loaded
    source: Any = finished.load_data() if data is None else data
    result = predictor.evaluate(source)
    facts: dict[str, Any] = {"run": str(finished.folder)}
    metrics: dict[str, Any] = {
        "test": result.row,
        "report": result.report,
        "evaluated_windows": result.evaluated,
        "test_windows": result.evaluated,
        "baselines": result.baselines,
    }
    if data is None:
        trained_on = read_json(finished.folder / "environment.json").get("fingerprint")
        changes = changed_results(finished.metrics.get("test", {}), result.row)
        facts |= {"same_data": trained_on == fingerprint(source), "same_results": not changes}
        if not facts["same_data"]:
            note(f"Note: {finished.settings.data} has changed since the run was trained.")
        output.show_notes(changes)
    else:
        facts["data"] = data
    if as_json:
        output.show_json({**facts, **metrics})
        return
    output.show_results(finished.settings.task, metrics)


def changed_results(then: Mapping[str, float | None], now: Mapping[str, float | None]) -> list[str]:
    """A sentence for each result that differs from the recorded one by more than rounding."""
    changes = []
    for name in {**then, **now}:
        old, new = then.get(name), now.get(name)
        if None in (old, new):
            same = old is new
        else:
            same = math.isclose(old, new, rel_tol=1e-5, abs_tol=1e-12)  # type: ignore[arg-type]
        if not same:
            changes.append(f"{name} is {new}, but the run recorded {old}.")
    return changes
