"""What first users found to end in a traceback or a dead end (S2 and S3), each by its number."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from sacm.cli.main import resource_sentence
from sacm.data import classification_data, forecasting_data
from sacm.errors import SACMError
from sacm.files import write_atomically
from tests.cli.conftest import Command, Example

TRAIN = ("train", "forecasting", "--size", "small", "--backbone", "iTransformer", "--epochs", "1")
WAVE = np.sin(np.arange(400) / 4)


def hourly(rows: int = 120, **columns: object) -> pd.DataFrame:
    stamps = pd.date_range("2024-01-01", periods=rows, freq="h")
    return pd.DataFrame({"date": stamps, "v": WAVE[:rows], **columns})


def panel(**lengths: int) -> pd.DataFrame:
    parts = [hourly(rows, shop=name) for name, rows in lengths.items()]
    return pd.concat(parts, ignore_index=True)


class FullDisk(io.RawIOBase):
    """What a full disk says to whoever writes."""

    def write(self, _: object) -> int:
        raise OSError(28, "No space left on device")


def test_s2_1_a_full_disk_is_a_sentence_and_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text("old")
    with pytest.raises(SACMError, match=r"results.csv cannot be written \(No space left on device"):
        write_atomically(path, lambda file: FullDisk().write(b"new"))
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["results.csv"]


def test_a_pipe_or_device_is_never_replaced_and_a_link_stays_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SACMError, match="pipe is not a plain file"):
        write_atomically(tmp_path / "pipe", lambda file: file.write_text("new"))
    assert (tmp_path / "pipe").is_fifo()
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    write_atomically(tmp_path / "link.csv", lambda file: file.write_text("new"))
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "new"


def test_s2_3_one_text_column_and_the_time_last(sacm: Command) -> None:
    hourly(word=["a", "b"] * 60)[["v", "word", "date"]].to_csv("x.csv", index=False)
    refused = sacm("score", "x.csv", "--window", 24)
    assert refused.code != 0
    assert "leave it out with --ignore 'word'" in refused.err
    outcome = sacm("score", "x.csv", "--window", 24, "--ignore", "word", "--time", "date")
    assert outcome.code == 0
    assert "time: column 'date' (--time)" in outcome.err


def test_s2_3_jittered_times_are_kept_on_request(sacm: Command) -> None:
    frame = hourly()
    jitter = np.random.default_rng(0).integers(0, 600, 120)
    frame["date"] += pd.to_timedelta(jitter, unit="s")
    frame.to_csv("x.csv", index=False)
    refused = sacm("score", "x.csv", "--window", 24)
    assert "--irregular 'keep' takes rows as evenly spaced" in refused.err
    assert sacm("score", "x.csv", "--window", 24, "--irregular", "keep").code == 0


def test_s2_3_other_shares_of_rows(sacm: Command) -> None:
    hourly().to_csv("x.csv", index=False)
    outcome = sacm(*TRAIN, "--data", "x.csv", "--split", "0.5,0.3,0.2", "--json")
    assert "split (--split): 60 training, 36 validation, 24 test rows" in outcome.err
    assert json.loads(outcome.out)["settings"]["split"] == [0.5, 0.3, 0.2]


@pytest.fixture(scope="module")
def panel_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on series of which one is too short to forecast."""
    from sacm.tasks import make_settings
    from sacm.training import Hardware, train

    folder = tmp_path_factory.mktemp("panel")
    panel(north=120, south=130, tiny=3).to_csv(folder / "panel.csv", index=False)
    settings = make_settings(
        task="forecasting",
        data=str(folder / "panel.csv"),
        backbone="iTransformer",
        size="small",
        epochs=1,
    )
    return train(settings, folder=folder / "runs", hardware=Hardware(show_progress=False)).folder


def test_s2_4_a_short_series_does_not_stop_the_others(sacm: Command, panel_run: Path) -> None:
    outcome = sacm("predict", panel_run)
    assert outcome.code == 0
    assert "No forecast for series with fewer than 6 rows: 'tiny' (3)." in outcome.err
    found = pd.read_csv(io.StringIO(outcome.out))
    assert list(found.columns) == ["shop", "date", "v", "repaired_share"]
    assert sorted(set(found["shop"])) == ["north", "south"]


def test_s2_14_series_of_a_panel_get_windows_that_fit_them(sacm: Command, panel_run: Path) -> None:
    settings = json.loads((panel_run / "config.json").read_text())
    assert (settings["input_len"], settings["horizon"]) == (6, 3)  # 12 validation rows each


def test_s2_14_data_that_cannot_be_trained_on_leave_no_folder(
    sacm: Command, tmp_path: Path
) -> None:
    hourly(40).to_csv("x.csv", index=False)
    outcome = sacm(*TRAIN, "--data", "x.csv", "--input-len", 90)
    assert outcome.code == 2
    assert list((tmp_path / "runs").iterdir()) == []


def test_s2_5_square_brackets_are_part_of_a_name(sacm: Command) -> None:
    hourly().to_csv("Power [kW].csv", index=False)
    assert "windows of Power [kW].csv" in sacm("score", "Power [kW].csv", "--window", 24).out
    marked = panel(**{"[/x]": 60, "[red]": 50}).rename(columns={"shop": "unique_id"})
    marked.rename(columns={"date": "ds", "v": "y"}).to_csv("marked.csv", index=False)
    outcome = sacm("score", "marked.csv", "--window", 24, "--count", 40)
    assert outcome.code == 0
    assert "[/x]" in outcome.out


def test_s2_6_a_dollar_is_no_formula(sacm: Command) -> None:
    hourly().rename(columns={"v": r"price $\frac{$ $"}).to_csv("x.csv", index=False)
    outcome = sacm("score", "x.csv", "--window", 24, "--plot", "x.png")
    assert outcome.code == 0
    assert Path("x.png").stat().st_size > 0


def test_s2_7_a_folder_is_no_file_for_scores(sacm: Command, example: Example) -> None:
    outcome = sacm("score", example.series, "--out", example.folder)
    assert outcome.code == 2
    assert "is a folder: name a file in it" in outcome.err


def test_s2_8_no_memory_is_a_sentence() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60)
    for error in (caught.value, MemoryError(), np.exceptions.AxisError("x")):
        said = resource_sentence(error)
        expected = not isinstance(error, np.exceptions.AxisError)
        assert (said is not None and "not enough memory" in said) == expected


def test_s2_10_a_name_of_240_letters(sacm: Command, tmp_path: Path) -> None:
    name = "x" * 240 + ".csv"
    hourly().to_csv(name, index=False)
    outcome = sacm(*TRAIN, "--data", name, "--input-len", 8, "--horizon", 2)
    assert outcome.code == 0
    assert sacm("score", name, "--window", 24, "--out", "y" * 240 + ".csv").code == 0
    missing = sacm("score", "z" * 300 + ".csv")
    assert missing.code != 0
    assert missing.err.startswith("Error: ")


@pytest.mark.slow
def test_s2_11_a_terminal_without_utf_8(example: Example) -> None:
    code = "from sacm.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "score", str(example.series), "--window", "24"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
    )
    assert done.returncode == 0
    assert b"rank" in done.stdout


def test_s3_2_shorter_windows_say_why(sacm: Command) -> None:
    hourly().to_csv("x.csv", index=False)
    said = sacm(*TRAIN, "--data", "x.csv").err
    assert "windows: 6 rows in (--input-len), 3 ahead (--horizon); shorter than the usual" in said
    assert "because there are only 12 validation rows" in said


def test_s3_4_values_missing_at_the_end_are_named(sacm: Command) -> None:
    frame = hourly()
    frame.loc[115:, "v"] = np.nan
    frame.to_csv("x.csv", index=False)
    said = sacm("score", "x.csv", "--window", 24).err
    assert "The last rows of 'v' (5) are missing: their last value was repeated" in said


def test_s3_9_commas_in_numbers_name_the_option(sacm: Command) -> None:
    hourly().assign(v="10,844").to_csv("x.csv", index=False)
    said = sacm("score", "x.csv").err
    assert "--decimal '.' if they separate thousands" in said
    hourly().assign(v="1549,14").to_csv("y.csv", index=False, sep=";")
    assert "--decimal ',' reads them" in sacm("score", "y.csv").err
    assert sacm("score", "y.csv", "--decimal", ",", "--window", 24).code == 0


def test_s3_10_the_hour_that_a_clock_shows_twice(sacm: Command) -> None:
    hours = pd.date_range("2024-10-26", periods=60, freq="h", tz="Europe/Berlin")
    pd.DataFrame({"date": hours.tz_localize(None), "v": WAVE[:60]}).to_csv("x.csv", index=False)
    assert "--zone names its time zone" in sacm("score", "x.csv").err
    outcome = sacm("score", "x.csv", "--zone", "Europe/Berlin", "--window", 24)
    assert outcome.code == 0
    assert "2024-10-28 10:00:00+01:00" in outcome.err


def test_s3_11_series_of_different_levels_have_scales_of_their_own(sacm: Command) -> None:
    frame = panel(north=120, south=130)
    frame.loc[frame["shop"] == "south", "v"] += 100
    frame.to_csv("x.csv", index=False)
    short = ("--input-len", 6, "--horizon", 3)
    done = sacm(*TRAIN, "--data", "x.csv", *short)
    assert "own deviations" in done.out
    assert "MAE of north" in done.out
    shared = sacm(*TRAIN, "--data", "x.csv", *short, "--scaling", "shared")
    assert "differ more in level than they change (column 'v') and share one scaler" in shared.err
    assert "z-scored" in shared.out


def test_s3_13_small_surprises(sacm: Command, example: Example) -> None:
    assert "the name of the data is empty" in sacm("score", "").err
    shown = json.loads(sacm("score", example.series, "--window", 24, "--count", 1, "--json").out)
    assert len(shown["windows"]) == 2
    outcome = sacm("compare", "forecasting", "--data", example.series, "--out", "r.pdf")
    assert "a report is an .html file" in outcome.err
    pd.read_csv(example.series)[:1].to_csv("one.csv", index=False)
    said = sacm("predict", example.forecasting, "--data", "one.csv").err
    assert "has 1 rows but a forecast starts from the last 12" in said


def test_s3_14_more_devices_than_cores_are_refused(sacm: Command, example: Example) -> None:
    outcome = sacm(*TRAIN, "--data", example.series, "--devices", 999)
    assert outcome.code == 2
    assert "this machine has" in outcome.err


def test_s3_15_a_data_folder_that_is_not_there(
    sacm: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SACM_DATA", "nowhere")
    assert "SACM_DATA is nowhere, which is not a folder" in sacm("data", "list").err


def test_s3_17_addresses_and_comments_above_the_header(sacm: Command) -> None:
    assert "is an address: download the file" in sacm("score", "https://x.org/a.csv").err
    text = "# made by a plant\n# unit: kW\n" + hourly().to_csv(index=False)
    Path("x.csv").write_text(text)
    outcome = sacm("score", "x.csv", "--window", 24)
    assert outcome.code == 0
    assert "rows: 120" in outcome.err


def test_s3_17_rows_that_are_piped_in(sacm: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    piped = io.TextIOWrapper(io.BytesIO(hourly().to_csv(index=False).encode()))
    monkeypatch.setattr(sys, "stdin", piped)
    outcome = sacm("score", "-", "--window", 24)
    assert outcome.code == 0
    assert "rows: 120" in outcome.err


def test_s3_13_numbers_are_no_classes_and_one_name_is_no_letters() -> None:
    cases = np.random.default_rng(0).normal(size=(12, 1, 8))
    with pytest.raises(SACMError, match="12 training cases have 12 different labels"):
        classification_data(cases, np.linspace(0, 1, 12))
    assert forecasting_data(hourly(value=1.5), columns="value").columns == ("value",)


def test_quality_and_training_say_the_same_of_a_file(sacm: Command) -> None:
    frame = hourly(400)
    frame.loc[350:369, "v"] += np.random.default_rng(0).normal(0, 3, 20)  # in the test part
    frame.to_csv("x.csv", index=False)
    lines = sacm("quality", "x.csv").out.splitlines()
    verdict = next(line for line in lines if line.startswith("x: "))
    said = sacm(*TRAIN, "--data", "x.csv", "--input-len", 12, "--horizon", 4).err
    assert f"Quality: {verdict}" in said


def test_names_of_data_sets_in_any_letter_case_are_one_run(sacm: Command) -> None:
    options = ("--stride", 400, "--input-len", 12, "--horizon", 4, "--json")
    runs = [
        json.loads(sacm(*TRAIN, "--data", name, *options).out)["run"]
        for name in ("Synth-12@0.3", "synth-12@0.3")
    ]
    assert runs[0] == runs[1]


def test_what_a_killed_process_left_half_written_goes_with_the_next(sacm: Command) -> None:
    hourly(200).to_csv("x.csv", index=False)
    command = (*TRAIN, "--data", "x.csv", "--input-len", 12, "--horizon", 4, "--json")
    folder = Path(json.loads(sacm(*command).out)["run"])
    (folder / "metrics.json").unlink()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    dead = folder / f".last.pt.{gone.pid}-0123abcd.tmp"
    alive = folder / f".last.pt.{os.getpid()}-0123abcd.tmp"
    dead.touch()
    alive.touch()
    sacm(*command)
    assert not dead.exists()
    assert alive.exists()
