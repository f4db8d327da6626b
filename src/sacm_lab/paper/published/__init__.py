"""The paper's printed numbers: where each stands, which metric and strategy, how much."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from sacm.strategies.registry import canonical

Line = dict[str, str]
PAIR = ("raw", "sacm")

# The variants of the component ablation, by what of the scorer each leaves out.
ABLATIONS = {
    "Baseline": "fixed(0.1)",
    "Minimal Model": "sacm(detrend=none,log_norm=false,sfm_anchor=false)",
    "w/o Detrend+Norm": "sacm(detrend=none,log_norm=false)",
    "w/o Detrend": "sacm(detrend=none)",
    "Simple Detrend": "sacm(detrend=endpoint)",
    "w/o Spectral Norm": "sacm(log_norm=false)",
    "w/o log-SFM Anchor": "sacm(sfm_anchor=false)",
    "SACM": "sacm",
}
_SELECTIVE = {"raw": "raw", "sacm": "sacm", "sl": "selective", "sl+sacm": "selective+sacm"}
_DENOISING = {"raw": "raw", "hard_denoising": "hard_denoise(kind=lowpass)", "sacm": "sacm"}
_COSTS = {"seconds_per_epoch": "s_per_epoch", "epochs": "epochs", "train_seconds": "total_s"}


@dataclass(frozen=True)
class Published:
    """One printed number; `keys` are those the paper states, the rest of a row may vary.

    gain: in percent, where it is printed too; chosen: the rate that "best_fixed" stands for.
    """

    keys: dict[str, str | int | float]
    metric: str
    strategy: str
    value: float
    gain: float | None = None
    p_value: float | None = None
    chosen: str | None = None

    def fits(self, keys: dict[str, str | int | float], metric: str, strategy: str) -> bool:
        """Whether it belongs beside a row."""
        return (
            (self.metric, self.strategy) == (metric, strategy)
            and all(name in keys for name in self.keys)
            and all(keys[name] == value for name, value in self.keys.items())
        )


@cache
def read_published(experiment: str) -> tuple[Published, ...]:
    """What the paper prints for one of its experiments; empty where it prints only a picture."""
    if experiment not in _TABLES:
        return ()
    file, read = _TABLES[experiment]
    text = resources.files(__name__).joinpath(f"{file}.csv").read_text(encoding="utf-8")
    return tuple(value for line in csv.DictReader(text.splitlines()) for value in read(line))


def _pair(line: Line, keys: dict[str, str | int | float]) -> Iterator[Published]:
    """Raw and sacm in two columns; shares are printed in percent."""
    metric = line["metric"].lower()
    scale = 0.01 if metric.endswith("_pct") else 1.0
    for strategy in PAIR:
        yield Published(
            keys, metric.removesuffix("_pct"), strategy, round(float(line[strategy]) * scale, 6)
        )


def _errors(
    line: Line, keys: dict[str, str | int | float], strategy: str, metrics: tuple[str, ...]
) -> Iterator[Published]:
    for metric in metrics:
        yield Published(keys, metric, canonical(strategy), float(line[metric]))


def _synth12(line: Line) -> Iterator[Published]:
    return _pair(line, {"data": f"Synth-12@{line['sigma']}", "backbone": line["backbone"]})


def _by_data(line: Line) -> Iterator[Published]:
    return _pair(line, {"data": line["dataset"], "backbone": line["backbone"]})


def _fraction(line: Line) -> Iterator[Published]:
    share = int(line["train_pct"]) / 100
    return _pair(line, {"backbone": line["backbone"], "train_fraction": share})


def _transfer(line: Line) -> Iterator[Published]:
    return _pair(line, {"data": line["source"], "target": line["target"]})


def _rates(line: Line) -> Iterator[Published]:
    for metric, column in (("rate_mean", "mean"), ("rate_std", "std")):
        yield Published({"data": line["dataset"]}, metric, "sacm", float(line[column]))


def _setting(line: Line) -> dict[str, str | int | float]:
    return {
        "data": line["dataset"],
        "backbone": line["backbone"],
        "horizon": int(line["horizon"]),
    }


def _strategies(line: Line) -> Iterator[Published]:
    name, rate = line["strategy"], line["fixed_rate"]
    strategy = name if name == "best_fixed" else canonical(name)
    chosen = canonical(f"fixed({rate})") if rate else None
    for metric in ("mse", "mae"):
        yield Published(_setting(line), metric, strategy, float(line[metric]), chosen=chosen)


def _sweep(line: Line) -> Iterator[Published]:
    yield from _errors(line, _setting(line), f"fixed({line['rate']})", ("mse", "mae"))
    if line["selected_by_validation"] == "1":
        chosen = canonical(f"fixed({line['rate']})")
        for metric in ("mse", "mae"):
            value = float(line[metric])
            yield Published(_setting(line), metric, "best_fixed", value, chosen=chosen)


def _ablation(line: Line) -> Iterator[Published]:
    if line["sigma"] != "avg":
        keys: dict[str, str | int | float] = {"data": f"Synth-12@{line['sigma']}"}
        yield from _errors(line, keys, ABLATIONS[line["variant"]], ("mse", "mae"))


def _batch_size(line: Line) -> Iterator[Published]:
    data = line["dataset"].replace(" sigma=", "@")
    keys: dict[str, str | int | float] = {
        "data": data,
        "backbone": line["backbone"],
        "batch_size": int(line["batch_size"]),
    }
    yield from _errors(line, keys, "sacm", ("mse", "mae"))


def _efficiency(line: Line) -> Iterator[Published]:
    for strategy in PAIR:
        for metric, column in _COSTS.items():
            value = float(line[f"{strategy}_{column}"])
            yield Published({"backbone": line["backbone"]}, metric, strategy, value)


def _selective(line: Line) -> Iterator[Published]:
    strategy = _SELECTIVE[line["strategy"]]
    yield from _errors(line, {}, strategy, ("mse", "mae"))
    yield Published({}, "train_seconds", strategy, float(line["train_s"]))


def _denoise(line: Line) -> Iterator[Published]:
    for column, strategy in _DENOISING.items():
        keys: dict[str, str | int | float] = {"backbone": line["backbone"]}
        yield Published(keys, "mae", canonical(strategy), float(line[column]))


def _seeds(line: Line) -> Iterator[Published]:
    keys, gain, p_value = _setting(line), float(line["gain_pct"]), float(line["p_value"])
    yield Published(keys, "mse", "raw", float(line["raw_mse_mean"]))
    yield Published(keys, "mse", "sacm", float(line["sacm_mse_mean"]), gain, p_value)


_TABLES: dict[str, tuple[str, Callable[[Line], Iterator[Published]]]] = {
    "synth12": ("synth12_forecasting", _synth12),
    "real_forecasting": ("real_forecasting", _by_data),
    "rates": ("dropout_rate_distribution", _rates),
    "data_fraction": ("data_fraction_ili", _fraction),
    "zero_shot": ("zero_shot_ett", _transfer),
    "classification": ("classification", _by_data),
    "anomaly": ("anomaly", _by_data),
    "strategies": ("dropout_strategies", _strategies),
    "fixed_sweep": ("fixed_dropout_sweep", _sweep),
    "ablation": ("component_ablation", _ablation),
    "batch_size": ("batch_size_sensitivity", _batch_size),
    "efficiency": ("efficiency", _efficiency),
    "selective": ("selective_learning", _selective),
    "denoise": ("hard_denoising_ili_mae", _denoise),
    "paired_seeds": ("paired_seeds", _seeds),
}
