"""The command that makes a comparison again."""

from __future__ import annotations

import csv
import io
import json
import shlex
from typing import Any

from sacm.experiments.compare import Comparison
from sacm.settings import RunSettings, option_name

_WRITTEN_FIRST = ("task", "data", "backbone", "size", "strategy", "seed", "overrides")


def repeat_command(comparison: Comparison) -> str:
    """`sacm compare …` with every setting that is not a default."""
    settings = comparison.settings
    words = ["sacm", "compare", settings["task"], "--data", settings["data"]]
    words += ["--backbone", settings["backbone"], "--size", settings["size"]]
    words += ["--strategies", ",".join(comparison.strategies)]
    words += ["--seeds", ",".join(map(str, comparison.seeds))]
    for name, field in RunSettings.model_fields.items():
        # A comparison made before a setting existed does not hold it.
        value = settings.get(name, field.default)
        if name in _WRITTEN_FIRST or value in (None, field.default):
            continue
        if (name, value) != ("horizon", 0):  # 0: the task has none
            words += [option_name(name)] if value is True else [option_name(name), _spell(value)]
    for name, value in settings["overrides"].items():
        words += [option_name("overrides"), f"{name}={_spell(value)}"]
    return shlex.join(words)


def _spell(value: Any) -> str:
    """A value as the command line takes it."""
    if isinstance(value, list | tuple):
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(value)
        return line.getvalue()
    return value if isinstance(value, str) else json.dumps(value)
