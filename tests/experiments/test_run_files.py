from __future__ import annotations

from pathlib import Path

import pytest

from sacm.errors import SACMError
from sacm.experiments.run_files import read_failure, read_record_with, write_failure
from sacm.files import write_json


def test_a_record_holds_what_is_asked_for(tmp_path: Path):
    path = tmp_path / "a.json"
    write_json(path, {"epochs": 2})
    assert read_record_with(path, "epochs") == {"epochs": 2}
    with pytest.raises(SACMError, match=r"a\.json is damaged: it holds no test\."):
        read_record_with(path, "epochs", "test")
    write_json(path, [1, 2])
    with pytest.raises(SACMError, match=r"a\.json is damaged: it holds no record\."):
        read_record_with(path)


def test_what_is_said_of_a_failure(tmp_path: Path):
    assert read_failure(tmp_path) is None
    write_failure(tmp_path, "killed by SIGKILL.", killed=True)
    assert read_failure(tmp_path) == ("interrupted", "killed by SIGKILL.")
    write_json(tmp_path / "failure.json", {"reason": "too hot."})  # as training leaves it
    assert read_failure(tmp_path) == ("failed", "too hot.")
    write_json(tmp_path / "failure.json", {})
    state, reason = read_failure(tmp_path) or ("", "")
    assert (state, "failure.json is damaged" in reason) == ("failed", True)
