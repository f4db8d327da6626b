"""The scripts under `examples/` run in small, print what they promise and leave their figures."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
# What each prints, and the files that it leaves.
EXPECTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "own_model": ("1 of 1 dropout sites adaptive, 8 scalars added.", ("own_model.png",)),
    "csv_to_forecast": ("mean absolute error", ("load.csv", "csv_to_forecast.png", "forecaster")),
    "noisy_sensors": ("seed   raw MSE   sacm MSE", ("noisy_sensors.png", "runs")),
    "classification": ("accuracy", ()),
    "anomaly_detection": ("f1_pa_random", ("anomaly_detection.png",)),
    "foundation_models": ("dropout sites adaptive, 4 scalars added.", ()),
}


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_expected_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(EXPECTED)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_example_runs_in_small(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if name == "foundation_models":
        pytest.importorskip("transformers", reason="needs the `integrations` extra")
    monkeypatch.chdir(tmp_path)
    load(name).main(["--quick"])
    printed, files = EXPECTED[name]
    assert printed in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == set(files)


def test_the_rates_of_noisy_windows_are_higher(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load("own_model").main(["--quick", "--out", str(tmp_path)])
    clean, noisy = (
        float(line.rsplit(" ", 1)[1])
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("mean rate")
    )
    assert noisy > clean + 0.1
