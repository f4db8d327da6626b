"""Files are whole or not there, and belong to whoever the umask says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from sacm.errors import SACMError
from sacm.files import read_json, write_atomically, write_json, write_weights


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    write_json(path, {"a": 1})

    def fail(file: Path) -> None:
        file.write_text("half")
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        write_atomically(path, fail)
    assert read_json(path) == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["record.json"]


def test_files_are_as_readable_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write_json(tmp_path / "record.json", {})
    write_weights(tmp_path / "a.safetensors", {"a": torch.ones(2)})
    names = ("plain", "record.json", "a.safetensors")
    assert len({os.stat(tmp_path / name).st_mode for name in names}) == 1


def test_numbers_that_json_does_not_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "record.json", {"loss": float("nan")})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", ["", "{", "[1, 2"])
def test_a_damaged_record_is_one_sentence(content: str, tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    path.write_text(content)
    with pytest.raises(SACMError, match="is damaged"):
        read_json(path)


def full_disk(_: Path) -> None:
    raise OSError(28, "No space left on device")


def test_a_full_disk_is_a_sentence_and_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text("old")
    with pytest.raises(SACMError, match=r"results.csv cannot be written \(No space left on device"):
        write_atomically(path, full_disk)
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
