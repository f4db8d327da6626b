"""How many epochs a race needs: its test result for several lengths, from finished runs.

Pairs of a raw and a SACM run with the same data, network and seed are read from folders of runs.
The validation result of every epoch decides as in `race(raw,sacm,epochs=…)`; the test result is
that of the winner. `--curves` keeps what was read, and is read again where there are no runs.

    sacm paper run replication_classification --strategies raw,sacm
    python -m benchmarks.race_epochs --runs runs --curves results/race_curves.csv
    python -m benchmarks.race_epochs --curves results/race_curves.csv --choose ERing,Libras
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd

from sacm.reports.table import Table
from sacm.strategies.race import decide

EPOCHS = (2, 4, 8, 16, 32)
MEASURES = {"classification": "accuracy", "anomaly": "vus_pr", "forecasting": "mse"}
KEYS = ["task", "data", "backbone", "horizon", "seed"]


def read_curves(folder: Path) -> pd.DataFrame:
    """One row a finished run: its settings, test result and validation result of every epoch."""
    rows = []
    for path in sorted(folder.glob("*/metrics.json")):
        metrics = json.loads(path.read_text(encoding="utf-8"))
        settings = json.loads((path.parent / "config.json").read_text(encoding="utf-8"))
        if settings["strategy"] not in ("raw", "sacm"):
            continue
        history = pd.read_csv(path.parent / "history.csv")
        select = next(name for name in history if name.startswith("val_"))
        rows.append(
            {
                **{name: settings[name] for name in [*KEYS, "strategy"]},
                "test": metrics["test"][MEASURES[settings["task"]]],
                "select": select.removeprefix("val_"),
                "validation": " ".join(f"{value:.6g}" for value in history[select]),
            }
        )
    return pd.DataFrame(rows)


def race_results(curves: pd.DataFrame) -> pd.DataFrame:
    """One row a pair: the test results of both runs, and of a race of each length."""
    rows = []
    for key, pair in curves.groupby(KEYS, sort=False):
        runs = pair.set_index("strategy")
        if not {"raw", "sacm"} <= set(runs.index):
            continue
        curve = {
            name: [float(value) for value in runs.loc[name, "validation"].split()]
            for name in ("raw", "sacm")
        }
        row = dict(zip(KEYS, key, strict=True))
        row |= {name: runs.loc[name, "test"] for name in ("raw", "sacm")}
        for epochs in EPOCHS:
            begun = {name: values[:epochs] for name, values in curve.items()}
            winner = decide(begun, {}, select=pair["select"].iloc[0]).winner
            row[f"race {epochs}"] = row[winner]
        rows.append(row)
    return pd.DataFrame(rows)


def tabulate(results: pd.DataFrame, title: str) -> Table:
    """Means by cell, and the mean gain over raw: percent of an error, points of another measure."""
    columns = [name for name in results if name not in KEYS]
    cells = results.groupby(["data", "backbone", "horizon"])[columns].mean()
    counts = results.groupby(["data", "backbone", "horizon"]).size()
    rows = [
        (f"{data}, {backbone} {horizon or ''}".strip(), str(n), *(f"{value:.4f}" for value in row))
        for ((data, backbone, horizon), row), n in zip(cells.iterrows(), counts, strict=True)
    ]
    raw = cells[["raw"]].to_numpy()
    gains = 1 - cells / raw if results["task"].iloc[0] == "forecasting" else cells - raw
    mean = (f"{100 * value:+.2f}" for value in gains.mean())
    rows.append((f"gain, mean of {len(cells)} cells", str(len(results)), *mean))
    return Table(("cell", "pairs", *columns), tuple(rows), title, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, help="folder of runs")
    parser.add_argument("--curves", type=Path, required=True, help="CSV to write or read")
    parser.add_argument("--choose", default="", help="data sets to choose by; others confirm")
    options = parser.parse_args()
    if options.runs is not None:
        read_curves(options.runs).to_csv(options.curves, index=False)
    results = race_results(pd.read_csv(options.curves))
    chosen = results["data"].isin(options.choose.split(","))
    for title, part in (("to choose by", results[chosen]), ("to confirm", results[~chosen])):
        for task, rows in part.groupby("task"):
            tabulate(rows, f"{task}, test {MEASURES[task]}: {title}").print()


if __name__ == "__main__":
    main()
