"""Read and write records, tables and weights; a file is written whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from sacm.errors import SACMError

NO_ROOM = 64 * 1024  # free bytes below which the disk counts as full


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in place in one step.

    Where that fails, what was there before is untouched.
    """
    # A link stays a link, and a device such as /dev/null must never become a file.
    path = path.resolve() if path.is_symlink() else path
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise SACMError(f"{path} is not a plain file: name another.")
    # File systems take names of 255 bytes: a long one is cut short.
    short = path.name.encode()[:100].decode(errors="ignore")
    temporary = path.with_name(f".{short}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch(exist_ok=False)
    except OSError as error:
        raise SACMError(f"{path.parent} cannot be written to ({error.strerror}).") from error
    try:
        mode = temporary.stat().st_mode
        write(temporary)
        temporary.chmod(mode)  # some writers make a file of their own, for its owner alone
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    except Exception as error:
        reason = getattr(error, "strerror", None)
        own = re.search(r"os error|inline_container", str(error))  # of safetensors and torch
        if not reason and (own or shutil.disk_usage(path.parent).free < NO_ROOM):
            reason = "the disk may be full"
        if not reason:
            raise
        raise SACMError(f"{path} cannot be written ({reason}).") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))


def write_json(path: Path, record: Any) -> None:
    """Write indented JSON; NaN and infinity are refused, because JSON has none."""
    write_text(path, json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _read(path: Path, read: Callable[[Path], Any]) -> Any:
    """What `read` makes of a file of a run folder."""
    try:
        return read(path)
    except FileNotFoundError:
        raise SACMError(f"{path} is missing: this is not a finished run folder.") from None
    except Exception as error:  # safetensors has several of its own for damaged files
        raise SACMError(f"{path} is damaged and cannot be read: {error}.") from None


def read_json(path: Path) -> Any:
    """Read a JSON file of a run folder."""
    return _read(path, lambda file: json.loads(file.read_text(encoding="utf-8")))


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as CSV; the keys of the first name the columns."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else [])
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


def write_weights(
    path: Path, weights: Mapping[str, Tensor], *, metadata: dict[str, str] | None = None
) -> None:
    """Write a state_dict as safetensors, with text beside the tensors if there is any."""
    plain = {key: value.detach().cpu().contiguous() for key, value in weights.items()}
    write_atomically(path, lambda file: save_file(plain, file, metadata))


def read_metadata(path: Path) -> dict[str, str]:
    """Read the text beside the tensors of a safetensors file; empty if there is none."""
    with safe_open(path, framework="pt") as file:
        return dict(file.metadata() or {})


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read a state_dict from safetensors."""
    return dict(_read(path, load_file))


def write_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write the state that an interrupted run resumes from."""
    write_atomically(path, lambda file: torch.save(dict(state), file))


def read_state(path: Path) -> dict[str, Any] | None:
    """Read what `write_state` wrote; None if there is no file."""
    if not path.exists():
        return None
    try:
        return dict(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:  # pickle, zipfile and torch each have their own for damaged files
        raise SACMError(f"{path} is damaged: delete it to start afresh.") from error
