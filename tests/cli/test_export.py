"""Exported files take and give raw units; their answers are those of `sacm predict`."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from sacm import Predictor
from sacm.inference.export import RawUnits
from sacm.tasks import make_settings
from sacm.training import Hardware, Run, train
from tests.cli.conftest import Command, Example


def feed(path: Path, window: np.ndarray) -> np.ndarray:
    """What another program gets that knows nothing of sacm."""
    batch = window[None].astype(np.float32)
    if path.suffix == ".pt2":
        with torch.inference_mode():
            answer: Any = torch.export.load(path).module()(torch.from_numpy(batch))
        return answer[0].numpy()
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: batch})[0][0]


@pytest.fixture(scope="module")
def plain(example: Example, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without a guard, whose graph takes most of the time of an export."""
    settings = make_settings(
        task="forecasting",
        data=str(example.series),
        backbone="iTransformer",
        size="small",
        strategy="raw",
        epochs=1,
        input_len=12,
        horizon=4,
    )
    folder = tmp_path_factory.mktemp("runs")
    return train(settings, folder=folder, hardware=Hardware(show_progress=False)).folder


@pytest.mark.slow
@pytest.mark.parametrize(("to", "name"), [("onnx", "m.onnx"), ("torch", "m.pt2")])
def test_raw_units_in_and_the_numbers_of_predict_out(
    sacm: Command, example: Example, plain: Path, to: str, name: str
) -> None:
    outcome = sacm("export", plain, "--to", to, "--out", name)
    assert outcome.code == 0, outcome.err
    window = pd.read_csv(example.series)[["load", "heat"]].to_numpy()[-12:]
    expected = pd.read_csv(io.StringIO(sacm("predict", plain).out))
    np.testing.assert_allclose(
        feed(Path(name), window), expected[["load", "heat"]], rtol=1e-4, atol=1e-4
    )
    record = json.loads(Path(f"{name}.json").read_text())
    assert record["channels"] == ["load", "heat"]
    assert record["inputs"]["window"] == ["batch", 12, 2]
    own = np.array(record["example"]["window"])
    np.testing.assert_allclose(
        feed(Path(name), own), record["example"]["answer"], rtol=1e-4, atol=1e-4
    )


@pytest.mark.slow
def test_repair_is_inside(sacm: Command, example: Example) -> None:
    sizes = ("--input-len", 12, "--horizon", 4, "--size", "small", "--epochs", 1, "--stride", 8)
    chosen = ("--backbone", "iTransformer", "--strategy", "guard")
    trained = sacm("train", "forecasting", "--data", example.series, *sizes, *chosen)
    assert trained.code == 0, trained.err
    table = pd.read_csv(example.series)
    table.loc[294, "load"] = 5000.0
    table.to_csv("broken.csv", index=False)
    predicted = sacm("predict", "latest", "--data", "broken.csv")
    assert "look broken" in predicted.err
    expected = pd.read_csv(io.StringIO(predicted.out))[["load", "heat"]]
    window = table[["load", "heat"]].to_numpy(np.float32)[-12:]
    module = RawUnits(Predictor.load(next(Path("runs").iterdir())))
    with torch.inference_mode():
        found = module(torch.from_numpy(window)[None])[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
    assert sacm("export", "latest", "--to", "torch", "--out", "m.pt2").code == 0
    # A graph solves for the repair in all entries: a window this short is nearly singular.
    np.testing.assert_allclose(feed(Path("m.pt2"), window), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_scores_and_probabilities_are_exported_too(sacm: Command, example: Example) -> None:
    for run, output in ((example.anomaly, "scores"), (example.classification, "probabilities")):
        copy = Path("copy")
        shutil.copytree(run, copy)
        outcome = sacm("export", copy, "--to", "torch")
        assert outcome.code == 0, outcome.err
        record = json.loads((copy / "model.pt2.json").read_text())
        assert list(record["output"]) == [output]
        assert Run.load(copy).shape == Run.load(run).shape  # the run itself is as it was
        shutil.rmtree(copy)


def test_wrong_formats_and_names_are_refused(sacm: Command, example: Example) -> None:
    assert "expected onnx or torch" in sacm("export", example.forecasting, "--to", "tea").err
    assert "ends in .onnx" in sacm("export", example.forecasting, "--out", "m.bin").err
    assert Run.load(example.forecasting).shape.horizon == 4


def test_a_run_that_fits_smoothing_in_every_window_is_refused(sacm: Command) -> None:
    months = np.arange(72)
    sales = pd.DataFrame({"month": pd.date_range("2015-01", periods=72, freq="MS")})
    sales["sales"] = 50 + months + 10 * np.sin(2 * np.pi * months / 12)
    sales.to_csv("sales.csv", index=False)
    assert sacm("train", "forecasting", "--data", "sales.csv", "--time", "5").code == 0
    outcome = sacm("export", "latest", "--to", "torch", "--out", "sales.pt2")
    assert outcome.code == 2
    assert "--backbone PatchTST" in outcome.err
    assert not Path("sales.pt2").exists()
