"""`--config`: settings from a file, under the options of the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sacm.cli.options import read_config
from sacm.errors import ArgumentError
from sacm.settings import ResolvedSettings
from sacm.tasks import make_settings

from .conftest import Command, Example


def test_a_file_of_settings_trains_and_options_override_it(
    sacm: Command, example: Example, tmp_path: Path
) -> None:
    lines = ["task: forecasting", f"data: {example.series}", "backbone: iTransformer"]
    lines += ["size: small", "epochs: 1", "learning_rate: 2e-3", "input_len: 24", "horizon: 4"]
    lines += ["strategy: raw"]
    file = tmp_path / "run.yaml"
    file.write_text("\n".join(lines))
    outcome = sacm("train", "--config", str(file), "--seed", "7", "--json")
    settings = json.loads(outcome.out)["settings"]
    assert (settings["learning_rate"], settings["seed"], settings["strategy"]) == (2e-3, 7, "raw")


def test_the_config_of_a_run_is_a_config_file(tmp_path: Path) -> None:
    run = ResolvedSettings(
        task="anomaly",
        data="MSL",
        backbone="TranAD",
        strategy="sacm",
        select="loss",
        input_len=50,
        batch_size=8,
    )
    (tmp_path / "config.json").write_text(run.model_dump_json())
    asked = make_settings(**read_config(tmp_path / "config.json"))
    assert (asked.input_len, asked.backbone, asked.horizon) == (50, "TranAD", None)


@pytest.mark.parametrize("text", ["[1, 2]", "a: [", "just words"])
def test_a_file_without_settings_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(ArgumentError, match=r"^--config .*bad\.yaml "):
        read_config(tmp_path / "bad.yaml")


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="cannot be read"):
        read_config(tmp_path / "none.yaml")
