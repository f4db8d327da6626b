"""Wrong labels: what is found, how sure it is, what it costs. Writes results/labels/*.csv.

    python -m benchmarks.labels detection    # precision, recall, noise rate, by archive and noise
    python -m benchmarks.labels summary      # the tables of docs/labels.md, from detection.csv
    python -m benchmarks.labels whole        # correct labels of whole archives
    python -m benchmarks.labels cost         # time and peak memory, up to 100,000 cases
    python -m benchmarks.labels inputs       # what bad input is answered with
    python -m benchmarks.labels runs         # small networks on repaired labels
    python -m benchmarks.labels networks     # share of accuracy recovered, with results/robust

Limits and weights were chosen on the archives in DEVELOPMENT and parts of them; all others confirm.
"""

from __future__ import annotations

import csv
import itertools
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import make_parser
from sacm.quality.label_model import CaseKernel, LabelSettings, judge_labels
from sacm.quality.labels import LabelQuality, _conclude, _weakness, find_wrong_labels
from sacm.tasks.baselines import ridge_baseline

RESULTS = Path(__file__).parent.parent / "results" / "labels"
DEVELOPMENT = (
    "BasicMotions",
    "Epilepsy",
    "Handwriting",
    "FingerMovements",
    "SelfRegulationSCP1",
    "LSST",
    "NATOPS",
)
CONFIRMATION = (
    "RacketSports",
    "UWaveGestureLibrary",
    "JapaneseVowels",
    "ERing",
    "Libras",
    "ArticularyWordRecognition",
    "PenDigits",
    "SpokenArabicDigits",
    "HAR",
    "Cricket",
    "AtrialFibrillation",
    "StandWalkJump",
    "HandMovementDirection",
    "SelfRegulationSCP2",
    "MotorImagery",
)
NOISE = (
    ("none", 0.0),
    ("symmetric", 0.05),
    ("symmetric", 0.1),
    ("symmetric", 0.2),
    ("symmetric", 0.3),
    ("symmetric", 0.5),
    ("asymmetric", 0.4),
    ("one-sided", 0.3),
)
NETWORK_NOISE = ("symmetric(0.3)", "asymmetric(0.4)", "symmetric(0.5)")
MOST_CASES = 500
SEEDS = (1,)
BINS = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)


def make_wrong(codes: np.ndarray, classes: int, kind: str, ratio: float, seed: int) -> np.ndarray:
    """Codes of which a share is wrong; one-sided noise calls any class the first."""
    random = np.random.default_rng(seed)
    chosen = random.random(len(codes)) < ratio
    shift = random.integers(1, classes, len(codes))
    wrong = {"symmetric": (codes + shift) % classes, "asymmetric": (codes + 1) % classes}
    return np.where(chosen, wrong.get(kind, np.zeros_like(codes)), codes)


def load_cases(name: str, most: int | None = MOST_CASES) -> tuple[np.ndarray, np.ndarray]:
    """Training cases `[N, C, L]` of an archive, at most `most` at random, and codes of labels."""
    import sacm

    data = sacm.data.load(name)
    codes = data.encode(data.y_train)
    chosen = np.sort(np.random.default_rng(0).permutation(len(codes))[:most])
    return data.X_train[chosen], codes[chosen]


def detection(names: tuple[str, ...] = CONFIRMATION + DEVELOPMENT) -> None:
    """Every archive with every noise; and how often suggestions of a confidence are right."""
    rows, bins = [], []
    settings = LabelSettings()
    for name in names:
        X, truth = load_cases(name)
        classes = int(truth.max()) + 1
        started = time.process_time()
        basis = CaseKernel(X, settings).basis(X, fitted=True)
        features = time.process_time() - started
        for kind, ratio in NOISE:
            for seed in SEEDS if ratio else SEEDS[:1]:
                given = make_wrong(truth, classes, kind, ratio, seed)
                started = time.process_time()
                found = judge_labels(basis, given, classes, divisions=settings.divisions)
                names, nobody = np.arange(len(given)), np.zeros(len(given), dtype=bool)
                quality = _conclude(found, given, X, names, nobody, {}, _weakness(found))
                seconds = time.process_time() - started
                row = {"archive": name, "noise": kind, "ratio": ratio, "seed": seed}
                row |= measure(quality, found.suggested, truth)
                row |= {"feature_seconds": features, "seconds": seconds}
                rows.append({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()})
                bins += [
                    {"archive": name, "noise": kind, "ratio": ratio, "seed": seed, **each}
                    for each in calibration(quality, truth)
                ]
                print(*rows[-1].values(), flush=True)
        write("detection.csv", rows)
        write("calibration.csv", bins)


def measure(quality: LabelQuality, suggested: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
    """Rates and shares of one archive with one noise."""
    wrong, flagged = quality.given != truth, quality.flagged
    caught = int((flagged & wrong).sum())
    return {
        "cases": len(truth),
        "classes": len(np.unique(truth)),
        "wrong": float(wrong.mean()),
        "rate": quality.noise_rate,
        "rate_low": quality.noise_interval[0],
        "rate_high": quality.noise_interval[1],
        "trust": int(quality.trust),
        "flagged": float(flagged.mean()),
        "precision": caught / max(int(flagged.sum()), 1) if flagged.any() else "",
        "recall": caught / int(wrong.sum()) if wrong.any() else "",
        "right_given": float((~wrong).mean()),
        "right_repaired": float((quality.repaired == truth).mean()),
        "right_without_gates": float((suggested == truth).mean()),
        "skill": quality.skill,
        "agreement": quality.agreement,
    }


def calibration(quality: LabelQuality, truth: np.ndarray) -> Iterator[dict[str, Any]]:
    """Flagged cases by confidence: how many, and how many suggestions are right."""
    for low, high in itertools.pairwise(BINS):
        inside = quality.flagged & (quality.confidence >= low) & (quality.confidence < high)
        if inside.any():
            yield {
                "bin": f"{low:g}-{high:g}",
                "count": int(inside.sum()),
                "confidence": round(float(quality.confidence[inside].mean()), 4),
                "right": int((quality.suggested == truth)[inside].sum()),
            }


def summary() -> None:
    """Print the tables of docs/labels.md: archives that chose nothing, by noise and confidence."""
    import pandas as pd

    table = pd.read_csv(RESULTS / "detection.csv")
    table = table[~table["archive"].isin(DEVELOPMENT)]
    for (kind, ratio), rows in table.groupby(["noise", "ratio"], sort=False):
        judged = rows[rows["trust"] == 1]
        flagged, wrong = (rows[name] @ rows["cases"] for name in ("flagged", "wrong"))
        caught = (judged["precision"].fillna(0) * judged["flagged"]) @ judged["cases"]
        inside = judged["wrong"].between(judged["rate_low"], judged["rate_high"] + 1e-9)
        print(
            f"| {kind} | {ratio:.0%} | {len(judged)} of {len(rows)} | "
            f"{caught / max(flagged, 1):.2f} | {caught / max(wrong, 1):.2f} | "
            f"{rows['right_given'].mean():.1%} | "
            f"{rows['right_repaired'].mean():.1%} | {judged['wrong'].mean():.1%} | "
            f"{judged['rate'].mean():.1%} | {inside.sum()} of {len(judged)} |"
        )
    bins = pd.read_csv(RESULTS / "calibration.csv")
    bins = bins[~bins["archive"].isin(DEVELOPMENT)].groupby("bin")[["count", "right"]].sum()
    for name, (count, right) in zip(bins.index, bins.to_numpy(), strict=True):
        print(f"| {name} | {count} | {right / count:.0%} |")


def whole(names: tuple[str, ...] = CONFIRMATION + DEVELOPMENT) -> None:
    """Correct labels of whole archives, subjects as groups; a ridge on given and repaired ones."""
    import sacm

    rows = []
    for name in names:
        data = sacm.data.load(name)
        started = time.process_time()
        quality = find_wrong_labels(data.X_train, data.y_train, groups=data.subjects_train)
        row = {
            "archive": name,
            "cases": len(data.y_train),
            "trust": int(quality.trust),
            "flagged": int(quality.flagged.sum()),
            "share": round(float(quality.flagged.mean()), 4),
            "rate": round(quality.noise_rate, 4),
            "seconds": round(time.process_time() - started, 1),
            "ridge_given": "",
            "ridge_repaired": "",
        }
        if quality.flagged.any():  # else both are equal
            for column, labels in (("given", data.y_train), ("repaired", quality.repaired)):
                answers = ridge_baseline(data.X_train, labels, data.X_test)
                row[f"ridge_{column}"] = round(float((answers == data.y_test).mean()), 4)
        rows.append(row)
        print(*row.values(), flush=True)
        write("correct_labels.csv", rows)


def cost(counts: tuple[int, ...] = (1_000, 10_000, 100_000)) -> None:
    """Noisy waves of 6 channels and 100 steps, ten classes, a fifth of the labels wrong."""
    rows = []
    for count in counts:
        random = np.random.default_rng(0)
        truth = random.integers(0, 10, count)
        grid = np.linspace(0, 2 * np.pi, 100, dtype=np.float32)
        phase = random.uniform(0, 6, (count, 6, 1)).astype(np.float32)
        X = np.sin((truth[:, None, None] / 2 + 1) * grid + phase)
        X += 0.5 * random.standard_normal(X.shape, dtype=np.float32)
        given = make_wrong(truth, 10, "symmetric", 0.2, 1)
        before, started = time.process_time(), time.monotonic()
        quality = find_wrong_labels(X, given)
        rows.append(
            {
                "cases": count,
                "cpu_seconds": round(time.process_time() - before, 1),
                "wall_seconds": round(time.monotonic() - started, 1),
                "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
                "input_mb": X.nbytes // 2**20,
                "rate": round(quality.noise_rate, 4),
                "right_given": round(float((given == truth).mean()), 4),
                "right_repaired": round(float((quality.repaired == truth).mean()), 4),
            }
        )
        print(*rows[-1].values(), flush=True)
        write("cost.csv", rows)


def inputs() -> None:
    """Input that cannot be judged, and the sentence or answer to it."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 2, 30)), np.repeat(["a", "b"], 20)
    missing: list[Any] = [*y]
    missing[4] = None
    tried = {
        "one class": (X, np.repeat("a", 40)),
        "one case a class": (X, np.arange(40)),
        "two cases a class": (X, np.repeat(np.arange(20), 2)),
        "labels that are numbers": (X, np.repeat([1, 2], 20)),
        "labels that are fractions": (X, random.normal(size=40)),
        "missing labels": (X, missing),
        "constant cases": (np.ones((40, 2, 30)), y),
        "all values missing": (np.full((40, 2, 30), np.nan), y),
        "one step": (X[:, :, :1], y),
        "other numbers of cases and labels": (X, y[:-1]),
        "no cases": (X[:0], y[:0]),
        "random labels": (X, y),
    }
    rows = []
    for name, (cases, labels) in tried.items():
        try:
            answer = find_wrong_labels(cases, labels).summary().split("\n")
            rows.append({"input": name, "answer": " ".join(answer[:2])})
        except ValueError as error:
            rows.append({"input": name, "answer": f"{type(error).__name__}: {error}"})
        print(*rows[-1].values(), sep=" | ")
    write("inputs.csv", rows)


def runs() -> None:
    """Small networks on repaired labels, as `sacm robust run labels` trains them on given ones.

    Where no label is flagged the run is that on given labels, and is not repeated.
    """
    import tempfile

    import sacm
    from sacm.data.corrupt import corrupt_training
    from sacm.settings import RunSettings
    from sacm.strategies import parse
    from sacm.training import Hardware, train

    given = robust_runs().set_index(["data", "backbone", "seed", "contamination", "strategy"])
    file = RESULTS / "runs.csv"
    rows = list(csv.DictReader(file.open())) if file.exists() else []
    known = {tuple(list(row.values())[:4]) for row in rows}
    archives = ("JapaneseVowels", "UWaveGestureLibrary", "NATOPS", "Epilepsy", "BasicMotions")
    order = [("iTransformer", 1), ("iTransformer", 2), ("PatchTST", 1), ("iTransformer", 3)]
    for (network, seed), name, noise in itertools.product(order, archives, NETWORK_NOISE):
        if (name, network, str(seed), noise) in known:
            continue
        data = sacm.data.load(name)
        wrong = corrupt_training(data, noise, seed=seed)
        repaired = parse("labels").prepare(wrong, window=data.length).data
        flagged = int((repaired.y_train != wrong.y_train).sum())
        accuracy = given.loc[(name, network, seed, noise, "raw"), "accuracy"]
        if flagged:
            settings = RunSettings(
                task="classification",
                data=name,
                backbone=network,
                size="small",
                strategy="labels",
                seed=seed,
                contamination=noise,
                learning_rate=1e-3,
                epochs=30,
                patience=30,
            )
            with tempfile.TemporaryDirectory() as folder:
                hardware = Hardware(show_progress=False)
                run = train(settings, folder=Path(folder), hardware=hardware, data=data)
                accuracy = run.metrics["test"]["accuracy"]
        row = {"data": name, "backbone": network, "seed": seed, "contamination": noise}
        rows.append({**row, "flagged": flagged, "accuracy": round(float(accuracy), 4)})
        print(*rows[-1].values(), flush=True)
        write("runs.csv", rows)


def robust_runs() -> Any:
    """The runs of the protocol `labels`, as a frame."""
    import pandas as pd

    files = sorted((RESULTS.parent / "robust").glob("labels*.csv"))
    table = pd.concat([pd.read_csv(file) for file in files])
    return table[table["state"] == "done"]


def networks() -> None:
    """What networks on repaired labels recover of the accuracy that wrong labels cost."""
    import pandas as pd

    table = robust_runs()
    cell = ["data", "backbone", "seed"]
    clean = table[table["contamination"].isna()].set_index(cell)["accuracy"]
    noisy = table[table["contamination"].notna()]
    pairs = noisy.pivot_table(index=[*cell, "contamination"], columns="strategy", values="accuracy")
    pairs["clean"] = clean.reindex(pairs.index.droplevel("contamination")).to_numpy()
    repaired = pd.read_csv(RESULTS / "runs.csv").set_index([*cell, "contamination"])
    pairs["labels"] = repaired["accuracy"]
    pairs = pairs[["raw", "gce", "co_teaching", "labels", "clean"]].dropna(subset=["labels"])
    pairs.round(4).reset_index().to_csv(RESULTS / "networks.csv", index=False, lineterminator="\n")
    rows = []
    for name, part in (
        *((network, rows) for network, rows in pairs.groupby("backbone")),
        *((noise, rows) for noise, rows in pairs.groupby("contamination")),
        *((archive, rows) for archive, rows in pairs.groupby("data")),
        ("development archives", pairs[pairs.index.isin(DEVELOPMENT, level="data")]),
        ("confirmation archives", pairs[~pairs.index.isin(DEVELOPMENT, level="data")]),
        ("all", pairs),
    ):
        for strategy in ("gce", "co_teaching", "labels"):
            rows.append({"cells": name, "strategy": strategy, **recovered(part, strategy)})
            print(*rows[-1].values(), flush=True)
    write("recovered.csv", rows)


def recovered(pairs: Any, strategy: str) -> dict[str, Any]:
    """Share of the lost accuracy that a strategy wins back, with a bootstrap interval of pairs."""
    pairs = pairs.dropna(subset=["raw", strategy, "clean"])
    if pairs.empty:
        return {"pairs": 0}
    gain = (pairs[strategy] - pairs["raw"]).round(3).to_numpy()
    loss = (pairs["clean"] - pairs["raw"]).round(3).to_numpy()
    chosen = np.random.default_rng(0).integers(0, len(gain), (2_000, len(gain)))
    with np.errstate(divide="ignore", invalid="ignore"):  # samples that lost nothing
        shares = gain[chosen].sum(axis=1) / loss[chosen].sum(axis=1)
    low, high = np.nanquantile(np.where(np.isfinite(shares), shares, np.nan), (0.025, 0.975))
    return {
        "pairs": len(gain),
        "raw": round(float(pairs["raw"].mean()), 4),
        "with": round(float(pairs[strategy].mean()), 4),
        "clean": round(float(pairs["clean"].mean()), 4),
        "recovered": round(float(gain.sum() / loss.sum()), 3),
        "low": round(float(low), 3),
        "high": round(float(high), 3),
        "better": int((gain > 0).sum()),
        "equal": int((gain == 0).sum()),
        "worse": int((gain < 0).sum()),
        "worst_points": round(100 * float(gain.min()), 1),
    }


def write(name: str, rows: list[dict[str, Any]]) -> None:
    """A CSV file under results/labels."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Run what the command line names."""
    parts = {
        "detection": detection,
        "summary": summary,
        "whole": whole,
        "cost": cost,
        "inputs": inputs,
        "runs": runs,
        "networks": networks,
    }
    parser = make_parser(__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(parts)}; all if none is named")
    for name in parser.parse_args().parts or parts:
        parts[name]()


if __name__ == "__main__":
    main()
