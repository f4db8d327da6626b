from __future__ import annotations

import subprocess
import sys

import matplotlib
import pytest
from matplotlib.image import imread

from sacm.errors import ArgumentError, SACMError
from sacm_lab.paper import figures

PANELS = {"signals": 7, "sparsity_composite": 9, "detrending": 12, "surrogate_risk": 3}
FROM_RUNS = ("error_against_noise", "gamma", "qualitative", "rates")


def test_names_and_descriptions():
    assert len(figures.names()) == 14
    descriptions = [figures.describe(name) for name in figures.names()]
    assert len(set(descriptions)) == 14
    assert all(text and "\n" not in text for text in descriptions)


def test_listing_imports_nothing_heavy():
    code = (
        "import sys; from sacm_lab.paper import figures; figures.names();"
        "print([m for m in ('matplotlib', 'torch', 'numpy', 'scipy') if m in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


def test_an_unknown_name_gets_a_hint():
    with pytest.raises(ArgumentError, match="Did you mean 'detrending'"):
        figures.draw("detrendin")
    with pytest.raises(ArgumentError, match="Known: signals, "):
        figures.describe("xyz")


@pytest.mark.parametrize("name", PANELS)
def test_a_figure_is_written_whole(tmp_path, name):
    before = dict(matplotlib.rcParams)
    path = tmp_path / "new" / f"{name}.png"
    figures.save(name, path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    pixels = imread(path)[..., :3]
    assert pixels.shape[1] == round(8.5 * figures.DOTS_PER_INCH)
    assert 0.02 < (pixels < 0.9).any(axis=-1).mean() < 0.6
    assert dict(matplotlib.rcParams) == before
    assert len(figures.draw(name).axes) == PANELS[name]


@pytest.mark.parametrize("name", ["proxy_snr", "top10"])
def test_figures_of_data_are_written(tmp_path, three_sets, name):
    figures.save(name, tmp_path / "figure.png")
    assert imread(tmp_path / "figure.png").shape[0] > 300


@pytest.mark.parametrize("name", FROM_RUNS)
def test_figures_of_runs_are_written(tmp_path, real_runs, name):
    figures.save(name, tmp_path / "figure.png", runs=real_runs)
    assert imread(tmp_path / "figure.png").shape[0] > 300


def test_runs_are_looked_for_where_training_leaves_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SACMError, match=r"^there is no folder runs with runs: name another, or"):
        figures.draw("rates")
    (tmp_path / "runs").mkdir()
    with pytest.raises(SACMError, match=r"^runs holds no finished"):
        figures.draw("rates")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("error_against_noise", "no finished pairs .* `sacm paper run synth12`"),
        ("gamma", "two values of gamma .* `sacm paper run gamma`"),
        ("qualitative", "no finished pair .* `sacm paper run synth12`"),
        ("rates", "no finished forecasting run .* `sacm paper run rates`"),
    ],
)
def test_runs_that_are_missing_are_asked_for(tmp_path, name, sentence):
    with pytest.raises(SACMError, match=sentence):
        figures.draw(name, runs=tmp_path)
