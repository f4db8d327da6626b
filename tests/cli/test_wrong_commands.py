"""What goes wrong is one sentence on standard error, and the exit code says whose move it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.conftest import Command, Example

TRAIN = "train forecasting --data {series} --size small --backbone iTransformer "

WRONG = [
    ("trian forecasting --data {series}", "Did you mean 'train'"),
    ("train forecasting", "Missing option '--data'"),
    ("train forecasting --data {series} --horizn 4", "No such option: --horizn"),
    ("train forecasting --data {series} --horizon many", "'--horizon': "),
    ("train guessing --data {series}", "unknown task 'guessing'"),
    ("train forecasting --data {series} --backbone PatchTTS", "Did you mean 'PatchTST'"),
    ("train forecasting --data {series} --backbone TranAD", "TranAD serves another task"),
    (TRAIN + "--strategy sacmm", "Did you mean 'sacm'"),
    (TRAIN + "--strategy fixed", "needs p: write fixed(p="),
    (TRAIN + "--strategy fixed(2)", "needs a rate in [0, 1), got 2"),
    (TRAIN + "--horizon 5000", "have 210 rows to lie in"),
    (TRAIN + "--input-len 0", "input_len = 0"),
    (TRAIN + "--lr -0.1", "learning_rate = -0.1"),
    (TRAIN + "--lr inf", "learning_rate = inf: input should be a finite number"),
    (TRAIN + "--epochs 0", "epochs = 0"),
    (TRAIN + "--size huge", "size = 'huge'"),
    (TRAIN + "--select luck", "select = 'luck'"),
    (TRAIN + "--select accuracy", "forecasting chooses by mae or mse"),
    (TRAIN + "--score reconstruction", "forecasting has no use for it"),
    ("train classification --data {cases} --select mae", "chooses by accuracy or loss"),
    ("train classification --data {cases} --horizon 7", "classification has no use for it"),
    ("train classification --data {cases} --stride 2", "classification has no use for it"),
    ("train classification --data {cases} --input-len 5", "are classified whole"),
    ("train anomaly --data {telemetry} --select accuracy", "anomaly chooses by loss"),
    ("compare anomaly --data {telemetry} --train-fraction .5", "anomaly has no use for it"),
    (TRAIN + "--precision 8", "precision = '8'"),
    (TRAIN + "--set widht=8", "has no setting 'widht'"),
    (TRAIN + "--set width=wide", "--set width=wide: expected a value like"),
    (TRAIN + "--set width=Infinity", "--set width=Infinity: expected a value like"),
    (TRAIN + "--set width", "--set takes key=value"),
    (TRAIN + "--set dropout=1.5", "dropout must be in [0, 1)"),
    (TRAIN + "--runs {series}/inside", "cannot be made: Not a directory"),
    (TRAIN + "--accelerator abacus", "accelerator 'abacus' cannot be used here"),
    ("train forecasting --data missing.csv", "There is no file missing.csv"),
    ("train forecasting --data ETTh11", "there is no file and no data set 'ETTh11'"),
    ("train forecasting --data {folder}", "is a folder"),
    ("train forecasting --data empty.csv", "is empty"),
    ("train forecasting --data short.csv", "too few"),
    ("train forecasting --data binary.csv", "not a text file"),
    ("train classification --data {series}", "cases are read from .ts or .npz files"),
    pytest.param(
        "train classification --data Plant", "is a data set for forecasting", marks=pytest.mark.lab
    ),
    ("evaluate nowhere", "is not a run folder"),
    ("evaluate {folder}", "is not a run folder"),
    ("evaluate damaged", "is damaged"),
    ("evaluate unfinished", "is not finished"),
    ("evaluate unreadable", "is damaged"),
    ("predict damaged", "is damaged"),
    ("predict forgetful", "is damaged"),
    ("predict weightless", "is not finished"),
    ("evaluate weightless", "is not finished"),
    ("predict unscaled", "scaler.json is damaged"),
    ("predict {forecasting} --data missing.csv", "There is no file missing.csv"),
    ("predict {forecasting} --data {cases}", "holds 6 arrays"),
    ("predict {forecasting} --data few.csv", "has 5 rows but a forecast starts from the last 12"),
    ("predict {forecasting} --data renamed.csv", "load, heat were trained on"),
    ("predict {forecasting} --out next.xlsx", "written to .csv files"),
    ("predict {forecasting} --out {series}/next.csv", "cannot be written to"),
    ("predict {classification} --data {series}", "cases are read from .ts or .npz files"),
    ("predict {anomaly} --data few.csv", "has 5 rows, fewer than one window of 12"),
    ("score missing.csv", "There is no file missing.csv"),
    ("score {series} --window 5000", "has 300 rows, fewer than one window"),
    ("score {series} --window 0", "window must be a whole number from 1"),
    ("predict {forecasting} --plot next.txt", "figures are written to .png"),
    ("score {series} --out {series}/scores.csv", "cannot be written to"),
    pytest.param("data info Nonsense", "Nonsense", marks=pytest.mark.lab),
    ("compare forecasting --data {series} --strategies raw,sacmm", "Did you mean 'sacm'"),
]

SAID = ("Note: ", "Quality: ", "time: ", "rows: ", "channels ", "split ", "windows: ")


@pytest.fixture(scope="module")
def words(example: Example) -> dict[str, str]:
    return {name: str(value) for name, value in vars(example).items()}


@pytest.fixture
def bad_files(sacm: Command, example: Example, tmp_path: Path) -> None:
    """Files and runs with something wrong, in the folder the commands run in."""
    table = pd.read_csv(example.series)
    table[:2].to_csv(tmp_path / "short.csv", index=False)
    table[:5].to_csv(tmp_path / "few.csv", index=False)
    table.rename(columns={"load": "laod"}).to_csv(tmp_path / "renamed.csv", index=False)
    (tmp_path / "empty.csv").touch()
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)))
    for name in ("damaged", "unfinished", "unreadable", "forgetful", "weightless", "unscaled"):
        shutil.copytree(example.forecasting, tmp_path / name)
    weights = tmp_path / "damaged" / "best.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    (tmp_path / "unfinished" / "metrics.json").unlink()
    (tmp_path / "unreadable" / "config.json").write_text('{"task": "forecasting"}')
    (tmp_path / "forgetful" / "model.json").write_text("{}")
    (tmp_path / "weightless" / "best.safetensors").unlink()
    (tmp_path / "unscaled" / "scaler.json").write_text('{"mean": ["a", "b"], "std": [1, 1]}')


@pytest.mark.usefixtures("bad_files")
@pytest.mark.parametrize(("command", "sentence"), WRONG, ids=lambda text: text[:60])
def test_one_helpful_sentence(
    sacm: Command, words: dict[str, str], command: str, sentence: str
) -> None:
    outcome = sacm(*(part.format(**words) for part in command.split()))
    # What was understood of the data may stand before; the error is one line, and the last.
    *said, error = outcome.err.splitlines()
    assert outcome.code == 2
    assert error.startswith("Error: ")
    assert sentence in error
    assert all(line.startswith(SAID) for line in said)
    assert "Traceback" not in outcome.err
    assert outcome.out == ""


def test_a_run_that_fails_is_not_the_users_mistake(sacm: Command, example: Example) -> None:
    outcome = sacm(
        *("train", "forecasting", "--data", example.series, "--size", "small"),
        *("--backbone", "iTransformer", "--lr", "1e30", "--epochs", "2"),
    )
    assert outcome.code == 1
    *said, error = outcome.err.splitlines()
    assert error.startswith("Error: ")
    assert "lower the learning rate" in error
    assert all(line.startswith(SAID) for line in said)
    assert "Traceback" not in outcome.err


def test_extreme_values_are_named_before_training(sacm: Command, tmp_path: Path) -> None:
    np.save(tmp_path / "large.npy", np.array([1.0, 2.0, 1e300, 4.0]))
    outcome = sacm("train", "forecasting", "--data", "large.npy")
    assert outcome.code == 2
    assert "column 0 is 1e+300 in row 3, which is too large" in outcome.err
