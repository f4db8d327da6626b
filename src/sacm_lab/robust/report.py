"""What a protocol says: gains over raw, and how much of what broken data cost is recovered."""

from __future__ import annotations

import io
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd

from sacm.metrics.catalogue import metric as find_metric
from sacm.reports.table import Table
from sacm_lab.experiment import Experiment
from sacm_lab.gains import summarise_gains
from sacm_lab.report import Report, cost_ratio, experiment_report, gain_cells, pair_experiment
from sacm_lab.robust.protocols import GUARD_ON_CLEAN, ON_CLEAN, REFERENCES
from sacm_lab.runs import records

CLEAR_LOSS = 0.02  # share that broken data must cost for a recovered share to say something
_DRAWS = 2000
LEGEND = (
    "Recovered: how much of what broken training data cost raw is recovered, over all cells; "
    f"cells where raw lost at most {CLEAR_LOSS:.0%} are left out. Its interval: 95 % bootstrap "
    "over cells. Cost: seconds of training as a multiple of raw's."
)


def recovered_shares(experiment: Experiment, frame: pd.DataFrame) -> pd.DataFrame:
    """One row a cell and strategy: what broken data cost raw, and what the strategy recovers.

    Returns:
        The columns of the cell, `strategy`, `n` seeds, `lost` (how much worse raw is than on clean
        data, as a share of its value there), `won` (how much better the strategy is than raw, in
        the same units) and `share`, `won` over `lost`.
    """
    metric = experiment.metrics[0]
    done = frame[frame["state"] == "done"]
    if ON_CLEAN not in set(done["strategy"]) or metric not in done:
        return pd.DataFrame()
    keys = [name for name in experiment.cell if name in done]
    sign = -1 if find_metric(metric).higher_is_better else 1
    rows = []
    for place, group in done.groupby(keys, sort=False, dropna=False):
        wide = sign * group.pivot_table(index="seed", columns="strategy", values=metric)
        others = [
            name for name in map(str, wide.columns) if name not in ("raw", ON_CLEAN, GUARD_ON_CLEAN)
        ]
        for strategy in others:
            if not {"raw", ON_CLEAN} <= set(wide):
                continue
            whole = wide[["raw", ON_CLEAN, strategy]].dropna().mean()
            clean = max(abs(whole[ON_CLEAN]), 1e-12)
            lost, won = (whole["raw"] - whole[ON_CLEAN]) / clean, (whole["raw"] - whole[strategy])
            named = dict(zip(keys, place, strict=True))
            rows.append({**named, "strategy": strategy, "lost": lost, "won": won / clean})
    return pd.DataFrame(rows)


def recovered_text(shares: pd.DataFrame, size: str, strategy: str) -> dict[str, Any]:
    """The recovered share of a strategy over cells, with its interval."""
    cells = (
        shares[(shares["strategy"] == strategy) & (shares["size"] == size)]
        if len(shares)
        else shares
    )
    cells = cells[cells["lost"] > CLEAR_LOSS] if len(cells) else cells
    if not len(cells):
        return {"recovered": None, "its interval": None}
    lost, won = cells["lost"].to_numpy(), cells["won"].to_numpy()
    text = f"{won.sum() / lost.sum():.0%}"
    if len(cells) < 2:
        return {"recovered": text, "its interval": None}
    picks = np.random.default_rng(0).integers(len(cells), size=(_DRAWS, len(cells)))
    drawn = won[picks].sum(axis=1) / lost[picks].sum(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return {"recovered": text, "its interval": f"{low:.0%} … {high:.0%}"}


def protocol_report(experiment: Experiment, frame: pd.DataFrame, rows: pd.DataFrame) -> Report:
    """The report of a protocol."""
    shares = recovered_shares(experiment, frame)

    def more(size: str, strategy: str) -> dict[str, Any]:
        return recovered_text(shares, size, strategy) if len(shares) else {}

    tables, sentences = [], []
    if experiment.name == "test":
        tables.append(published_table())
    if len(shares):
        lost = shares.drop_duplicates([n for n in experiment.cell if n in shares])["lost"]
        phrase = find_metric(experiment.metrics[0]).phrase
        sentences.append(
            f"Broken training data cost raw {lost.mean():.0%} in {phrase}, the mean of {len(lost)} "
            "cells."
        )
        sentences.append(LEGEND)
    return experiment_report(experiment, frame, rows, more=more, tables=tables, sentences=sentences)


def summary_table(experiment: Experiment, frame: pd.DataFrame) -> Table:
    """The first metric of a protocol, the best strategy first, references last."""
    metric = experiment.metrics[0]
    pairs = pair_experiment(experiment, frame)
    gains = summarise_gains(pairs[pairs["metric"] == metric])
    shares = recovered_shares(experiment, frame)
    gains["reference"] = gains["strategy"].isin(REFERENCES)
    ordered = gains.sort_values(["size", "reference", "gain"], ascending=[True, True, False])
    lines = []
    for row in records(ordered):
        size, strategy = row["size"], row["strategy"]
        line = {"protocol": experiment.name, "metric": find_metric(metric).label, "size": size}
        line |= {"strategy": strategy, "n": row["n"], "of cells": row["cells"]}
        line |= gain_cells(row, metric)
        line |= recovered_text(shares, size, strategy) if len(shares) else {}
        lines.append({**line, "cost": cost_ratio(frame, experiment, size, strategy)})
    return Table.from_frame(pd.DataFrame(lines), words=4)


def published_table() -> Table:
    """What SensorFault-Bench (arXiv:2605.10822) prints for ETTh1."""
    scenarios = _read_published("scenarios")
    plain = scenarios.groupby("model", sort=False).agg(
        clean_mse=("clean_mse", "first"),
        mean_fault_mse=("fault_mse", "mean"),
        worst_degradation=("degradation", "max"),
    )
    plain = plain.reset_index().assign(method="none")
    methods = _read_published("methods")
    columns = ["model", "method", "clean_mse", "mean_fault_mse", "worst_degradation"]
    whole = pd.concat([plain, methods], ignore_index=True)[columns]
    return Table.from_frame(whole, caption="SensorFault-Bench on ETTh1, as published", words=2)


def _read_published(part: str) -> pd.DataFrame:
    folder = resources.files("sacm_lab.paper.published")
    return pd.read_csv(io.StringIO((folder / f"sensorfault_etth1_{part}.csv").read_text("utf-8")))
