"""What SensorFault-Bench (arXiv:2605.10822) prints for ETTh1, to lay beside protocol F."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from sacm.metrics.intervals import Record

DATA = "ETTh1"
PLAIN = "none"


@dataclass(frozen=True)
class SensorFaultRow(Record):
    """One published model, without a method or with one.

    degradation: The largest, D_w; by_fault: the degradation of each scenario, where it is printed.
    """

    model: str
    method: str
    clean_mse: float
    mean_fault_mse: float
    degradation: float
    by_fault: dict[str, float]


@cache
def sensor_fault_rows() -> tuple[SensorFaultRow, ...]:
    """Seven models by themselves, then five models with each of seven methods."""
    plain: dict[str, list[dict[str, str]]] = {}
    for line in _lines("sensorfault_etth1_scenarios"):
        plain.setdefault(line["model"], []).append(line)
    own = [_plain(model, lines) for model, lines in plain.items()]
    return (*own, *(_with_method(line) for line in _lines("sensorfault_etth1_methods")))


def _plain(model: str, lines: list[dict[str, str]]) -> SensorFaultRow:
    by_fault = {line["scenario"]: float(line["degradation"]) for line in lines}
    errors = [float(line["fault_mse"]) for line in lines]
    return SensorFaultRow(
        model,
        PLAIN,
        float(lines[0]["clean_mse"]),
        sum(errors) / len(errors),
        max(by_fault.values()),
        by_fault,
    )


def _with_method(line: dict[str, str]) -> SensorFaultRow:
    return SensorFaultRow(
        line["model"],
        line["method"],
        float(line["clean_mse"]),
        float(line["mean_fault_mse"]),
        float(line["worst_degradation"]),
        {},
    )


def _lines(file: str) -> Iterator[dict[str, str]]:
    text = resources.files(__package__).joinpath(f"{file}.csv").read_text(encoding="utf-8")
    yield from csv.DictReader(text.splitlines())
