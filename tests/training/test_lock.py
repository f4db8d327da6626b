"""Two processes that are asked for the same run: one trains, the other waits for it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

from sacm.errors import SACMWarning
from sacm.training.run import LOCK, alone_in
from tests.training.cases import QUIET, make_data, make_settings

_HOLD = """
import sys, time
from pathlib import Path
from typing import Any
from sacm.training.run import alone_in
with alone_in(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def hold_elsewhere(folder: Path) -> subprocess.Popen[str]:
    """A process that holds a folder until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout as said:
        assert said.readline() == "held\n"
    return process


def test_the_second_waits_says_so_and_goes_on_when_the_first_is_killed(tmp_path: Path) -> None:
    first = hold_elsewhere(tmp_path / "run")
    threading.Timer(1.0, first.kill).start()  # as `kill -9` would: it tidies nothing up
    started = time.monotonic()
    with pytest.warns(SACMWarning, match="another process is training"), alone_in(tmp_path / "run"):
        assert time.monotonic() - started > 0.5
    first.wait()


def test_a_lock_file_that_was_left_behind_blocks_no_one(tmp_path: Path) -> None:
    (tmp_path / LOCK).touch()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with alone_in(tmp_path):
            pass


def test_nothing_is_left_of_a_lock(tmp_path: Path) -> None:
    with alone_in(tmp_path / "empty"):
        pass
    assert not (tmp_path / "empty").exists()
    with alone_in(tmp_path / "run"):
        (tmp_path / "run" / "config.json").touch()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["config.json"]


def test_two_identical_trainings_at_once_do_the_work_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sacm.training import trainer

    trained = []
    original = trainer._race

    def count(*arguments: Any, **named: Any) -> Any:
        trained.append(1)
        time.sleep(1.0)  # so that the other one meets the lock
        return original(*arguments, **named)

    monkeypatch.setattr(trainer, "_race", count)
    settings, data = make_settings("forecasting", epochs=1), make_data("forecasting")
    rows = []

    def run() -> None:
        rows.append(trainer.train(settings, folder=tmp_path, hardware=QUIET, data=data).row)

    other = threading.Thread(target=run)
    other.start()
    time.sleep(0.1)
    with pytest.warns(SACMWarning, match="another process is training"):
        run()
    other.join()
    assert len(trained) == 1
    assert rows[0] == rows[1]
