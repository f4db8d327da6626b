"""Findings inside a page, for its script."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from sacm.experiments.named.findings import EpochFinding, Findings
from sacm.metrics.catalogue import metric
from sacm.reports.named.tables import shown_rows

_DIGITS = 5  # significant, of curves that are only drawn


def pack_findings(findings: Findings, *, histories: bool = True) -> dict[str, Any]:
    """Everything in the findings; the epochs of a run are columns, with five digits."""
    record = findings.to_dict()
    for group, plain in zip(findings.groups, record["groups"], strict=True):
        for run, into in zip(group.runs, plain["runs"], strict=True):
            into["history"] = _columns(run.history) if histories else {}
    known = {name: metric(name).label for name in findings.metrics}
    places = {id(row): place for place, row in enumerate(findings.rows)}
    lines = [places[id(row)] for row in shown_rows(findings)]
    return _finite({"findings": record, "labels": known, "lines": lines})


def embed_json(data: dict[str, Any]) -> str:
    """JSON that stands inside a script element: nothing in it can end that element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _columns(history: Sequence[EpochFinding]) -> dict[str, list[float | None]]:
    if not history:
        return {}
    return {
        column.name: [_short(getattr(epoch, column.name)) for epoch in history]
        for column in fields(EpochFinding)
    }


def _short(value: float | None) -> float | None:
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def _finite(value: Any) -> Any:
    """The same without NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
