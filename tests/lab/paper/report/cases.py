"""Findings as an experiment would leave them, and any that the types allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import strategies as st

from sacm.experiments.critical_difference import critical_difference
from sacm.experiments.named.findings import (
    Coverage,
    EpochFinding,
    FindingRow,
    Findings,
    Group,
    Overall,
    PaperValue,
    RunFinding,
)
from sacm.experiments.statistics import Summary, bootstrap_mean, compare_pairs, mean_and_deviation
from sacm.metrics.catalogue import metric

REASON = 'the loss is not finite </script><script>alert("x")</script> in epoch 3 & <b>later</b>'
EPOCHS = (
    EpochFinding(1, 0.91234567, 0.8, 0.21, 0.05),
    EpochFinding(2, 0.7, 0.75, 0.22, 0.06),
)


def done(strategy: str, **values: float) -> RunFinding:
    return RunFinding(
        strategy,
        "done",
        run=f"run_{strategy}",
        values=values,
        epochs=2,
        seconds=1.5,
        history=EPOCHS,
    )


def hand_made() -> Findings:
    """Two data sets × two backbones × two horizons; one run failed, one group was not run."""
    values: Mapping[tuple[str, str], list[tuple[float, float]]] = {
        ("ILI", "PatchTST"): [(2.0, 1.9), (4.0, 3.6)],
        ("ILI", "Informer"): [(1.0, 1.1), (2.0, 2.0)],
        ("ETTh1", "PatchTST"): [(0.5, 0.45)],
        ("ETTh1", "Informer"): [],
    }
    paper = {("ILI", "PatchTST"): PaperValue(2.5, 2.0, 20.0), ("ETTh1", "Informer"): None}
    groups, rows = [], []
    for (data, backbone), found in values.items():
        start = len(groups)
        for place, horizon in enumerate((24, 48)):
            keys = {"data": data, "backbone": backbone, "horizon": horizon}
            if place < len(found):
                raw, treated = found[place]
                runs = (done("raw", mse=raw), done("sacm", mse=treated))
            elif data == "ETTh1" and backbone == "PatchTST":
                runs = (done("raw", mse=0.6), RunFinding("sacm", "failed", REASON, "run_x"))
            else:
                runs = (RunFinding("raw", "missing"), RunFinding("sacm", "missing"))
            groups.append(Group(keys, "paper" if backbone == "PatchTST" else "small", runs))
        before, after = [raw for raw, _ in found], [treated for _, treated in found]
        base, value = (mean_and_deviation(side) if side else None for side in (before, after))
        gain = None if not base or not value else 100 * (base.mean - value.mean) / base.mean
        rows.append(
            FindingRow(
                {"data": data, "backbone": backbone},
                "mse",
                "sacm",
                n=len(found),
                expected=2,
                baseline=base,
                value=value,
                gain=gain,
                paper=paper.get((data, backbone)),
                groups=(start, start + 1),
            )
        )
    pairs = [pair for found in values.values() for pair in found]
    gains = [100 * (raw - treated) / raw for raw, treated in pairs]
    overall = Overall(
        "mse",
        "sacm",
        n=5,
        gain=sum(gains) / 5,
        interval=bootstrap_mean(gains),
        comparison=compare_pairs([raw for raw, _ in pairs], [treated for _, treated in pairs]),
        adjusted_p_value=0.5,
        row_gain=rows[0].gain,
        paper_gain=20.0,
        paper_rows=1,
    )
    return Findings(
        name="small",
        title="A small grid",
        where="table 1",
        task="forecasting",
        settings={"stride": 4},
        baseline="raw",
        strategies=("raw", "sacm"),
        metrics=("mse",),
        row_keys=("data", "backbone"),
        averaged=("horizon",),
        notes=("Two horizons instead of four.",),
        coverage=Coverage(16, 11, 1, 4, 16),
        rows=tuple(rows),
        overall=(overall,),
        groups=tuple(groups),
        ranks=None,
    )


def with_ranks() -> Findings:
    """Three strategies, so that there is a diagram, and a line for each strategy."""
    names = ["raw", "fixed", "sacm"]
    table = [[1.0, 0.9, 0.8], [2.0, 1.9, 1.8], [3.0, 3.1, 2.5], [1.5, 1.4, 1.2]]
    found = hand_made()
    rows = [replace(row, strategy=name) for row in found.rows for name in names[1:]]
    overall = [replace(found.overall[0], strategy=name) for name in names[1:]]
    return replace(
        found,
        strategies=tuple(names),
        rows=tuple(rows),
        overall=tuple(overall),
        ranks=critical_difference(table, names),
    )


NAMES = ("mse", "accuracy", "f1_pa", "rate_mean", "epochs")
words = st.text("ab<>&\"'|\\{}$%#_~^[]*\n\r\t, ;=–−äπ雪\u2028\x00\x07", max_size=8)
numbers = st.floats(-1e6, 1e6).map(lambda value: 0.0 if abs(value) < 1e-9 else value)
shares = st.floats(0.01, 1.0)
keys = st.dictionaries(words.map(lambda text: f"k{text}"), words | st.integers(-9, 9) | shares)
epochs = st.builds(
    EpochFinding, st.integers(1, 99), shares, shares, st.none() | shares, st.none() | shares
)


@st.composite
def any_findings(draw: st.DrawFn) -> Findings:
    """Whatever the types allow, with places that are there."""
    strategies = draw(st.lists(words.filter(bool), min_size=1, max_size=3, unique=True))
    metrics = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True))
    row_keys = draw(st.lists(words.filter(bool), max_size=2, unique=True))
    named = st.fixed_dictionaries({key: words | st.integers(-9, 9) | shares for key in row_keys})
    values = st.none() | st.dictionaries(st.sampled_from(metrics), shares)
    run = st.builds(
        RunFinding,
        st.sampled_from(strategies),
        st.sampled_from(["done", "failed", "missing"]),
        st.none() | words,
        st.none() | words,
        made_with=st.none() | words,
        chosen=st.none() | words,
        values=values,
        epochs=st.none() | st.integers(0, 9),
        seconds=st.none() | shares,
        history=st.lists(epochs, max_size=2).map(tuple),
    )
    group = st.builds(Group, named | keys, words, st.lists(run, max_size=3).map(tuple))
    groups = draw(st.lists(group, max_size=3))
    summary = st.builds(Summary, st.integers(1, 9), numbers, st.none() | shares)
    paper = st.builds(
        PaperValue,
        st.none() | numbers,
        numbers,
        st.none() | numbers,
        st.none() | shares,
        st.none() | words,
    )
    places = st.sampled_from(range(len(groups))) if groups else st.nothing()
    row = st.builds(
        FindingRow,
        named,
        st.sampled_from(metrics),
        st.sampled_from(strategies),
        st.integers(0, 4),
        st.integers(0, 4),
        st.none() | summary,
        st.none() | summary,
        st.none() | numbers,
        st.none() | paper,
        st.lists(places, max_size=2).map(tuple) if groups else st.just(()),
        st.none() | shares,
        st.none() | shares,
    )
    overall = st.builds(
        Overall,
        st.sampled_from(metrics),
        st.sampled_from(strategies),
        st.integers(0, 9),
        st.none() | numbers,
        st.none()
        | st.just(bootstrap_mean([1.0, 1.0, 2.0, 2.0, 3.0]))
        | st.just(bootstrap_mean([1.0])),
        st.none() | st.just(compare_pairs([1.0, 2.0], [1.0, 1.5])),
        st.none() | st.floats(0, 1),
        st.none() | numbers,
        st.integers(0, 9),
    )
    return Findings(
        name=draw(words),
        title=draw(words),
        where=draw(words),
        task="anomaly" if metric(metrics[0]).random else "forecasting",
        settings=draw(keys),
        baseline=strategies[0],
        strategies=tuple(strategies),
        metrics=tuple(metrics),
        row_keys=tuple(row_keys),
        averaged=tuple(draw(st.lists(words, max_size=1))),
        notes=tuple(draw(st.lists(words, max_size=2))),
        coverage=draw(st.builds(Coverage, *[st.integers(0, 9)] * 4)),
        rows=tuple(draw(st.lists(row, max_size=3))),
        overall=tuple(draw(st.lists(overall, max_size=2))),
        groups=tuple(groups),
        ranks=None,
    )
