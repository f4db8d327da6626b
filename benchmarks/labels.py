"""Wrong labels: what is found, how sure it is, what it costs. Writes results/labels/*.csv.

    python -m benchmarks.labels detection    # precision, recall, noise rate, by archive and noise
    python -m benchmarks.labels correct      # correct labels of whole archives
    python -m benchmarks.labels networks     # small networks on repaired labels
    python -m benchmarks.labels recovered    # their share of lost accuracy, with results/robust
    python -m benchmarks.labels published    # the noise of the CTW paper: weighted F1
    python -m benchmarks.labels cost         # time and peak memory, up to 100,000 cases
    python -m benchmarks.labels inputs       # what bad input is answered with
    python -m benchmarks.labels summary      # the tables of docs/labels.md, from the files

Detection, correct, networks and published can be stopped and started again: rows that are there are
not measured again.
Limits and weights were chosen on the archives in DEVELOPMENT and parts of them; all others confirm.
"""

from __future__ import annotations

import csv
import functools
import itertools
import resource
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import make_parser
from sacm.quality.label_model import CaseKernel
from sacm.quality.labels import FEATURES, LabelQuality, find_wrong_labels
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
NETWORKS = ("iTransformer", "PatchTST", "InceptionTime")
NETWORK_NOISE = ("symmetric(0.3)", "asymmetric(0.4)", "symmetric(0.5)")
NETWORK_ARCHIVES = ("JapaneseVowels", "UWaveGestureLibrary", "NATOPS", "Epilepsy", "BasicMotions")
CTW_NOISE = (
    ("none", 0.0),
    ("symmetric", 0.15),
    ("symmetric", 0.3),
    ("symmetric", 0.45),
    ("symmetric", 0.6),
    ("asymmetric", 0.4),
)
MOST_CASES = 500
SEEDS = (1, 2, 3)
BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)


def extend(
    name: str, cells: Iterable[dict[str, Any]], measure: Callable[..., dict[str, Any]]
) -> None:
    """Measure the cells that a file does not have yet, and add them to it row by row."""
    path = RESULTS / name
    rows: list[dict[str, Any]] = list(csv.DictReader(path.open())) if path.exists() else []
    for cell in cells:
        if any(all(row[key] == str(value) for key, value in cell.items()) for row in rows):
            continue
        measured = {**cell, **measure(**cell)}
        rows.append({k: round(v, 4) if isinstance(v, float) else v for k, v in measured.items()})
        print(*rows[-1].values(), flush=True)
        write(name, rows)


def write(name: str, rows: list[dict[str, Any]]) -> None:
    """A CSV file under results/labels."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def make_wrong(codes: np.ndarray, classes: int, kind: str, ratio: float, seed: int) -> np.ndarray:
    """Codes of which a share is wrong; one-sided noise calls any class the first."""
    random = np.random.default_rng(seed)
    chosen = random.random(len(codes)) < ratio
    shift = random.integers(1, classes, len(codes))
    wrong = {"symmetric": (codes + shift) % classes, "asymmetric": (codes + 1) % classes}
    return np.where(chosen, wrong.get(kind, np.zeros_like(codes)), codes)


@functools.lru_cache(1)
def load_cases(name: str) -> tuple[np.ndarray, np.ndarray, CaseKernel, float]:
    """Training cases, at most 500 at random, codes of labels, kernel and its CPU seconds."""
    import sacm

    data = sacm.data.load(name)
    codes = data.encode(data.y_train)
    chosen = np.sort(np.random.default_rng(0).permutation(len(codes))[:MOST_CASES])
    started = time.process_time()
    kernel = CaseKernel(data.X_train[chosen], features=FEATURES)
    return data.X_train[chosen], codes[chosen], kernel, time.process_time() - started


def detect(archive: str, noise: str, ratio: float, seed: int) -> dict[str, Any]:
    """Precision, recall, noise rate; flagged cases by confidence and how many are right."""
    X, truth, kernel, features = load_cases(archive)
    given = make_wrong(truth, int(truth.max()) + 1, noise, ratio, seed)
    started = time.process_time()
    with mock.patch("sacm.quality.labels.CaseKernel", return_value=kernel):
        quality = find_wrong_labels(X, given)
    seconds = time.process_time() - started
    wrong, flagged = quality.given != truth, quality.flagged
    caught = int((flagged & wrong).sum())
    row = {
        "cases": len(truth),
        "classes": len(np.unique(truth)),
        "wrong": float(wrong.mean()),
        "rate": quality.noise_rate,
        "rate_low": quality.noise_interval[0],
        "rate_high": quality.noise_interval[1],
        "trust": int(quality.trust),
        "flagged": float(flagged.mean()),
        "precision": caught / int(flagged.sum()) if flagged.any() else "",
        "recall": caught / int(wrong.sum()) if wrong.any() else "",
        "right_given": float((~wrong).mean()),
        "right_repaired": float((quality.repaired == truth).mean()),
        "right_suggested": float((quality.suggested == truth).mean()),
        "feature_seconds": features,
        "seconds": seconds,
    }
    right = quality.suggested == truth
    for low, high in itertools.pairwise(BINS):
        inside = flagged & (quality.confidence >= low) & (quality.confidence < high)
        row |= {f"sure_{low:g}": int(inside.sum()), f"right_{low:g}": int(right[inside].sum())}
    return row


def detection() -> None:
    """Every archive with every noise."""
    cells = itertools.product(DEVELOPMENT + CONFIRMATION, NOISE, SEEDS)
    extend(
        "detection.csv",
        (
            {"archive": name, "noise": kind, "ratio": ratio, "seed": seed}
            for name, (kind, ratio), seed in cells
            if ratio or seed == SEEDS[0]
        ),
        detect,
    )


def judge_correct(archive: str) -> dict[str, Any]:
    """Share flagged of correct labels, how many the strategy changes, a ridge on both labels."""
    import sacm
    from sacm.strategies.labels import LEAST_FLAGGED

    data = sacm.data.load(archive)
    started = time.process_time()
    quality = find_wrong_labels(data.X_train, data.y_train, groups=data.subjects_train)
    row: dict[str, Any] = {
        "cases": len(data.y_train),
        "trust": int(quality.trust),
        "flagged": int(quality.flagged.sum()),
        "share": float(quality.flagged.mean()),
        "changed": int(quality.flagged.sum() * (quality.flagged.mean() >= LEAST_FLAGGED)),
        "seconds": time.process_time() - started,
        "ridge_given": "",
        "ridge_repaired": "",
    }
    if quality.flagged.any():  # else both are equal
        for column, labels in (("given", data.y_train), ("repaired", quality.repaired)):
            answers = ridge_baseline(data.X_train, labels, data.X_test)
            row[f"ridge_{column}"] = float((answers == data.y_test).mean())
    return row


def correct() -> None:
    """Correct labels of whole archives, subjects as groups."""
    names = DEVELOPMENT + CONFIRMATION
    extend("correct_labels.csv", ({"archive": name} for name in names), judge_correct)


def train_network(data: str, backbone: str, seed: int, contamination: str) -> dict[str, Any]:
    """A small network on repaired labels, as `sacm robust run labels` trains it on given ones.

    Where no label is flagged the run is that on given labels, and is not repeated.
    """
    import sacm
    from sacm.data.corrupt import corrupt_training
    from sacm.settings import RunSettings
    from sacm.strategies import parse
    from sacm.training import Hardware, train

    loaded = sacm.data.load(data)
    wrong = corrupt_training(loaded, contamination, seed=seed)
    repaired = parse("labels").prepare(wrong, window=loaded.length).data
    truth = loaded.y_train
    row: dict[str, Any] = {
        "flagged": int((repaired.y_train != wrong.y_train).sum()),
        "right_given": float((wrong.y_train == truth).mean()),
        "right_repaired": float((repaired.y_train == truth).mean()),
    }
    if not row["flagged"]:
        runs = robust_runs().set_index(["data", "backbone", "seed", "contamination", "strategy"])
        return {**row, "accuracy": runs.loc[(data, backbone, seed, contamination, "raw")].accuracy}
    settings = RunSettings(
        task="classification",
        data=data,
        backbone=backbone,
        size="small",
        strategy="labels",
        seed=seed,
        contamination=contamination,
        learning_rate=1e-3,
        epochs=30,
        patience=30,
    )
    with tempfile.TemporaryDirectory() as folder:
        hardware = Hardware(show_progress=False)
        run = train(settings, folder=Path(folder), hardware=hardware, data=loaded)
        return {**row, "accuracy": run.metrics["test"]["accuracy"]}


def robust_runs() -> Any:
    """The runs of the protocol `labels`, as a frame."""
    import pandas as pd

    files = sorted((RESULTS.parent / "robust").glob("labels*.csv"))
    table = pd.concat([pd.read_csv(file) for file in files])
    return table[table["state"] == "done"]


def networks() -> None:
    """Small networks on repaired labels."""
    cells = itertools.product(NETWORKS, SEEDS, NETWORK_ARCHIVES, NETWORK_NOISE)
    extend(
        "runs.csv",
        (
            {"data": name, "backbone": network, "seed": seed, "contamination": noise}
            for network, seed, name, noise in cells
        ),
        train_network,
    )


def recovered() -> None:
    """The share of the accuracy lost to wrong labels that networks recover on repaired ones."""
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
    development = pairs.index.isin(DEVELOPMENT, level="data")
    groups = [
        *(
            group
            for level in ("backbone", "contamination", "data")
            for group in pairs.groupby(level)
        ),
        ("development archives", pairs[development]),
        ("confirmation archives", pairs[~development]),
        *(
            (f"{network}, confirmation archives", part)
            for network, part in pairs[~development].groupby("backbone")
        ),
        ("all", pairs),
    ]
    rows = [
        {"cells": name, "strategy": strategy, **share_recovered(run, strategy)}
        for name, part in groups
        for strategy in ("gce", "co_teaching", "labels")
        if len(run := part.dropna(subset=[strategy]))
    ]
    write("recovered.csv", rows)
    for row in rows:
        print(*row.values())


def share_recovered(pairs: Any, strategy: str) -> dict[str, Any]:
    """Share of the lost accuracy that a strategy recovers, with a bootstrap interval of pairs."""
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


def measure_published(archive: str, noise: str, ratio: float, seed: int) -> dict[str, Any]:
    """Weighted F1 of a ridge on given and on repaired labels, with noise as CTW makes it."""
    from sklearn.metrics import f1_score

    import sacm

    data = sacm.data.load(archive)
    classes = np.asarray(data.classes)
    wrong = make_wrong(data.encode(data.y_train), len(classes), noise, ratio, seed)
    given = replace(data, y_train=classes[wrong].astype(data.y_train.dtype))
    quality = find_wrong_labels(given.X_train, given.y_train, groups=given.subjects_train)
    row: dict[str, Any] = {"flagged": int(quality.flagged.sum())}
    for column, labels in (("given", given.y_train), ("repaired", quality.repaired)):
        answers = ridge_baseline(data.X_train, labels, data.X_test)
        row[f"ridge_{column}"] = float(f1_score(data.y_test, answers, average="weighted"))
    return row


def published() -> None:
    """The two archives of CTW's tables that are here, with its kinds of noise."""
    extend(
        "published.csv",
        (
            {"archive": name, "noise": kind, "ratio": ratio, "seed": seed}
            for name, (kind, ratio), seed in itertools.product(
                ("NATOPS", "Epilepsy"), CTW_NOISE, SEEDS
            )
            if ratio or seed == SEEDS[0]
        ),
        measure_published,
    )


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
        quality: LabelQuality = find_wrong_labels(X, given)
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
            answer = " ".join(find_wrong_labels(cases, labels).sentences())
        except ValueError as error:
            answer = f"{type(error).__name__}: {error}"
        rows.append({"input": name, "answer": answer})
        print(name, answer, sep=" | ")
    write("inputs.csv", rows)


def summary() -> None:
    """Print the tables of docs/labels.md: archives that chose nothing, by noise and confidence."""
    import pandas as pd

    whole = pd.read_csv(RESULTS / "detection.csv")
    for title, table in (
        ("confirmation", whole[~whole["archive"].isin(DEVELOPMENT)]),
        ("development", whole[whole["archive"].isin(DEVELOPMENT)]),
    ):
        print(title)
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
        for low, high in itertools.pairwise(BINS):
            count, right = table[f"sure_{low:g}"].sum(), table[f"right_{low:g}"].sum()
            print(f"| {low:g}-{high:g} | {count} | {right / max(count, 1):.0%} |")
    published_rows = pd.read_csv(RESULTS / "published.csv")
    columns = ["ridge_given", "ridge_repaired"]
    print(published_rows.groupby(["archive", "noise", "ratio"], sort=False)[columns].mean())


def main() -> None:
    """Run what the command line names."""
    parts = {
        each.__name__: each
        for each in (
            detection,
            correct,
            networks,
            recovered,
            published,
            cost,
            inputs,
            summary,
        )
    }
    parser = make_parser(__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(parts)}; all if none is named")
    for name in parser.parse_args().parts or parts:
        parts[name]()


if __name__ == "__main__":
    main()
