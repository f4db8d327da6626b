"""The scripts under `examples/` run in small, print what they promise and leave their figures."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.scripts import load_script

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
    return load_script(EXAMPLES / f"{name}.py")


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
