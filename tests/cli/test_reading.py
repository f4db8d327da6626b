"""Options for reading: said before use, kept with the run, the same in predict and replay."""

from __future__ import annotations

import inspect
import io
import json

import numpy as np
import pandas as pd
import pytest

from sacm.cli.options import check_reading
from sacm.settings import READING, ReadOptions
from sacm.tasks import make_settings
from sacm.training import Hardware, Run, train
from tests.cli.conftest import Command

WAVE = np.sin(np.arange(200) / 3)
SETTINGS = {
    "backbone": "iTransformer",
    "size": "small",
    "epochs": 1,
    "input_len": 8,
    "horizon": 2,
    "time": "when",
    "ignore": "remark",
    "target": "b",
    "zone": "Europe/Berlin",
    "decimal": ",",
}


def table(rows: int = 120) -> pd.DataFrame:
    """A German export: the time last, decimal commas, a column of words."""
    stamps = pd.date_range("2024-03-01", periods=rows, freq="h").strftime("%d.%m.%Y %H:%M")
    texts = [f"{value:.3f}".replace(".", ",") for value in WAVE[:rows]]
    return pd.DataFrame({"a": texts, "b": texts[::-1], "remark": "ok", "when": stamps})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("reading")
    table().to_csv(folder / "export.csv", index=False, sep=";")
    settings = make_settings(task="forecasting", data=str(folder / "export.csv"), **SETTINGS)
    return train(settings, folder=folder / "runs", hardware=Hardware(show_progress=False))


def test_a_run_keeps_how_its_data_were_read(run: Run) -> None:
    assert run.settings.reading() == {
        "scaling": "shared",
        "time": ("when",),
        "zone": "Europe/Berlin",
        "target": ("b",),
        "ignore": ("remark",),
        "decimal": ",",
    }
    data = run.load_data()
    assert getattr(data, "columns", None) == ("a", "b")


def test_predict_reads_the_same_way_and_gives_the_target_with_its_zone(
    sacm: Command, run: Run
) -> None:
    table().drop(columns="remark").to_csv("next.csv", index=False, sep=";")
    outcome = sacm("predict", run.folder, "--data", "next.csv")
    found = pd.read_csv(io.StringIO(outcome.out))
    assert list(found.columns) == ["when", "b", "repaired_share"]
    assert found["when"][0] == "2024-03-06 00:00:00+01:00"
    assert (
        "time: column 'when' (--time-column), read as dates like 01.03.2024 00:00 (--date-order)"
        in outcome.err
    )


def test_predict_takes_other_options_for_other_data(sacm: Command, run: Run) -> None:
    table().rename(columns={"when": "stamp"}).to_csv("next.csv", index=False, sep=";")
    assert "no column 'when'" in sacm("predict", run.folder, "--data", "next.csv").err
    outcome = sacm("predict", run.folder, "--data", "next.csv", "--time", "stamp")
    assert outcome.code == 0
    assert outcome.out.startswith("stamp,b")


def test_evaluate_reads_other_data_with_other_options(sacm: Command, run: Run) -> None:
    table().rename(columns={"when": "stamp"}).to_csv("next.csv", index=False, sep=";")
    assert "no column 'when'" in sacm("evaluate", run.folder, "--data", "next.csv").err
    outcome = sacm("evaluate", run.folder, "--data", "next.csv", "--time", "stamp", "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["test"]["mae"] > 0
    again = sacm("evaluate", run.folder, "--json")
    assert json.loads(again.out)["test"] == run.row


def test_only_the_target_counts_in_errors(run: Run) -> None:
    per_channel = run.metrics["report"]["scaled"]["channel_mae"]
    assert per_channel[0] is None
    assert per_channel[1] == pytest.approx(run.row["mae"])


def test_every_command_that_reads_a_table_has_the_options() -> None:
    from sacm.cli.quality import quality, score
    from sacm.cli.train import compare
    from sacm.cli.train import train as train_command
    from sacm.cli.use import backtest, evaluate, predict

    for command in (train_command, compare):
        assert set(READING) <= set(inspect.signature(command).parameters)
    shared = {"time", "ignore", "label", "id", "zone", "decimal", "date_order"}
    for command in (predict, quality, score, evaluate, backtest):
        assert shared <= set(inspect.signature(command).parameters)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--time", "nowhen"), "no column 'nowhen'"),
        (("--zone", "Mars/Base"), "zone 'Mars/Base' is not a time zone"),
        (("--decimal", ";"), "decimal = ';'"),
        (("--date-order", "middle"), "date_order = 'middle'"),
        (("--duplicates", "guess"), "duplicates = 'guess'"),
        (("--frequency", "often"), "'often' is not a frequency"),
        (("--id", "shop"), "no column 'shop'"),
        (("--columns", "a,c"), "no column 'c'"),
    ],
)
def test_a_wrong_option_is_one_sentence(
    sacm: Command, options: tuple[str, ...], sentence: str
) -> None:
    table().to_csv("x.csv", index=False, sep=";")
    given = dict(zip(("--time", "--ignore", "--decimal"), ("when", "remark", ","), strict=True))
    given[options[0]] = options[1]
    outcome = sacm("score", "x.csv", *(word for pair in given.items() for word in pair))
    assert outcome.code != 0
    assert sentence in outcome.err.splitlines()[-1]
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    ("task", "options", "sentence"),
    [
        ("forecasting", ("--split", "0.5,0.6"), "three shares"),
        ("forecasting", ("--target", "z"), "target 'z' is no channel; channels are v"),
        ("anomaly", ("--split", "0.5,0.3,0.2"), "two shares"),
        ("anomaly", ("--target", "v"), "anomaly has no use for it"),
        ("anomaly", ("--id", "v"), "anomaly has no use for it"),
        ("forecasting", ("--zone", "UTC"), "there are no dates, so no zone"),
    ],
)
def test_an_option_that_the_task_has_no_use_for(
    sacm: Command, task: str, options: tuple[str, ...], sentence: str
) -> None:
    pd.DataFrame({"v": WAVE}).to_csv("x.csv", index=False)
    outcome = sacm("train", task, "--data", "x.csv", *options)
    assert outcome.code == 2
    assert sentence in outcome.err


def test_options_are_for_files_of_ones_own(sacm: Command) -> None:
    outcome = sacm("score", "Plant", "--time", "date")
    assert "Plant is a data set with a name, which is read in one way only" in outcome.err


def test_labels_are_named(sacm: Command) -> None:
    frame = pd.DataFrame({"v": WAVE, "bad": (WAVE > 0.9).astype(int)})
    frame.to_csv("x.csv", index=False)
    words = ("train", "anomaly", "--data", "x.csv", "--backbone", "iTransformer", "--size", "small")
    outcome = sacm(*words, "--epochs", 1, "--stride", 8, "--label", "bad", "--split", "0.6,0.4")
    assert outcome.code == 0
    assert "labels: column 'bad' (--label)" in outcome.err
    assert "split (--split): 120 training, 80 test rows" in outcome.err
    assert "channels (1, --columns and --ignore choose): v" in outcome.err


def test_names_with_commas_stand_in_quotes() -> None:
    assert check_reading(columns='"a,b",c', ignore=None) == {"columns": ("a,b", "c")}
    assert ReadOptions(columns=["a,b"]).columns == ("a,b",)
