"""The plain data of an experiment: one line for each group, strategy and metric."""

from __future__ import annotations

import csv
import io

from sacm.experiments.named.findings import Findings

COLUMNS = ("size", "strategy", "state", "reason", "run", "epochs", "seconds", "metric", "value")


def flat_csv(findings: Findings) -> str:
    """Keys, then `COLUMNS`; what is not there is empty, numbers have all their digits."""
    keys = tuple(dict.fromkeys(key for group in findings.groups for key in group.keys))
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow((*keys, *COLUMNS))
    for group in findings.groups:
        place = [group.keys.get(key) for key in keys]
        for run in group.runs:
            about = (group.size, run.strategy, run.state, run.reason, run.run)
            cost = (run.epochs, run.seconds)
            values = run.values or {}
            for name in dict.fromkeys((*findings.metrics, *values)):
                writer.writerow((*place, *about, *cost, name, values.get(name)))
    return text.getvalue()
