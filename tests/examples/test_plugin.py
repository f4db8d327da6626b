"""A package of somebody else's, installed beside this one, is known to the command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sacm

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"
SOURCE = Path(sacm.__file__).parents[1]
COMMAND = [sys.executable, "-c", "from sacm.cli.main import main; main()"]
STRATEGY = "clip(limit=2.5)+sacm(scorer=roughness)"
SMALL = [
    *("--size", "small", "--input-len", "48", "--horizon", "12"),
    *("--epochs", "2", "--stride", "8"),
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, built and installed into a folder of its own, without a network."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(EXAMPLE, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", *offline]
    done = subprocess.run(
        [*pip, "--target", str(folder / "site"), str(folder / "source")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def call(
    words: list[str], folder: Path, *, installed: Path | None
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with or without the plug-in."""
    paths = [str(SOURCE)] if installed is None else [str(installed), str(SOURCE)]
    environment = {name: value for name, value in os.environ.items() if name != "SACM_DATA"}
    environment |= {
        "PYTHONPATH": os.pathsep.join(paths),
        "SACM_CACHE": str(folder / "cache"),
        "COLUMNS": "120",
    }
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)


def run(arguments: list[str], folder: Path, installed: Path) -> Any:
    """What a command prints as JSON."""
    done = call([*COMMAND, *arguments, "--json"], folder, installed=installed)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# Several commands in one process: most of the time of a short one is spent on imports.
LISTINGS = """
import sys
from sacm.cli.main import main
for words in ("backbones", "strategies", "data list", "data info tides"):
    sys.argv = ["sacm", *words.split(), "--json"]
    try:
        main()
    except SystemExit as end:
        assert not end.code
    print("\\0")
"""


@pytest.fixture(scope="module")
def trained(installed: Path, home: Path) -> dict[str, Any]:
    words = ["train", "forecasting", "--data", "two tides", "--backbone", "gatedlinear"]
    found: dict[str, Any] = run([*words, "--strategy", STRATEGY, *SMALL], home, installed)
    return found


def test_train_knows_its_backbone_strategy_scorer_data_and_metric(
    trained: dict[str, Any], home: Path
) -> None:
    folder = home / trained["run"]
    settings = json.loads((folder / "config.json").read_text())
    assert settings["backbone"] == "GatedLinear"
    assert settings["strategy"] == STRATEGY
    row = json.loads((folder / "metrics.json").read_text())["test"]
    assert 0 < row["hit_rate"] < 1
    assert list(row) == ["mae", "mse", "mae_raw", "mse_raw", "hit_rate"]


def test_a_run_made_with_it_is_evaluated(
    trained: dict[str, Any], home: Path, installed: Path
) -> None:
    evaluated = run(["evaluate", trained["run"]], home, installed)
    row = json.loads((home / trained["run"] / "metrics.json").read_text())["test"]
    assert row["hit_rate"] in json_values(evaluated)


def json_values(record: Any) -> list[Any]:
    """Every plain value of a nested record."""
    if isinstance(record, dict):
        return [value for part in record.values() for value in json_values(part)]
    if isinstance(record, list):
        return [value for part in record for value in json_values(part)]
    return [record]


@pytest.mark.nightly
def test_compare_and_its_report_show_the_metric(installed: Path, home: Path) -> None:
    words = ["compare", "forecasting", "--data", "tides", "--backbone", "GatedLinear"]
    chosen = ["--strategies", f"raw,clip,{STRATEGY}", "--seeds", "1,2", "--out", "report.html"]
    found = run([*words, *chosen, *SMALL], home, installed)
    assert "hit_rate" in json.dumps(found)
    page = (home / "report.html").read_text()
    assert "hit rate" in page
    assert STRATEGY in page
    assert "a fresh scorer" in page  # the spectra shown are not those of the plug-in's scorer


def test_listings_show_what_it_adds(installed: Path, home: Path) -> None:
    done = call([sys.executable, "-c", LISTINGS], home, installed=installed)
    assert done.returncode == 0, done.stderr
    backbones, strategies, datasets, facts = map(json.loads, done.stdout.split("\0")[:4])
    assert [each["name"] for each in backbones].count("GatedLinear") == 1
    clip = next(each for each in strategies["strategies"] if each["name"] == "clip")
    assert [option["default"] for option in clip["options"]] == [3.0]
    assert strategies["scorers"] == ["spectral", "roughness"]
    assert "Two Tides" in [each["name"] for each in datasets]
    assert facts["facts"] == ["Hourly water levels of two made harbours, 1,200 rows."]


def test_without_it_its_names_are_unknown(home: Path) -> None:
    words = ["train", "forecasting", "--data", "x.csv", "--backbone", "GatedLinear"]
    done = call([*COMMAND, *words], home, installed=None)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: there is no backbone 'GatedLinear' for forecasting.")


def test_its_own_tests_pass(installed: Path, home: Path) -> None:
    tests = EXAMPLE / "tests"
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tests), str(tests)]
    done = call([sys.executable, *words], home, installed=installed)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout
