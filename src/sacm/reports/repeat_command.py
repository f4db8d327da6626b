"""The command that makes a comparison again."""

from __future__ import annotations

import json
import shlex
from typing import Any

from sacm.experiments.compare import Comparison
from sacm.tasks.settings import RunSettings

# Options by field, in the order they are written; a field at its default is left out.
_OPTIONS = {
    "input_len": "--input-len",
    "horizon": "--horizon",
    "batch_size": "--batch-size",
    "epochs": "--epochs",
    "patience": "--patience",
    "learning_rate": "--lr",
    "weight_decay": "--weight-decay",
    "stride": "--stride",
    "select": "--select",
    "score": "--score",
    "train_fraction": "--train-fraction",
    "precision": "--precision",
}


def repeat_command(comparison: Comparison) -> str:
    """`sacm compare …` with every setting that is not a default."""
    settings = comparison.settings
    words = ["sacm", "compare", settings["task"], "--data", settings["data"]]
    words += ["--backbone", settings["backbone"], "--size", settings["size"]]
    words += ["--strategies", ",".join(comparison.strategies)]
    words += ["--seeds", ",".join(map(str, comparison.seeds))]
    for field, option in _OPTIONS.items():
        if settings[field] != RunSettings.model_fields[field].default:
            words += [option, _spelled(settings[field])]
    words += ["--compile"] if settings["compile"] else []
    for name, value in settings["overrides"].items():
        words += ["--set", f"{name}={_spelled(value)}"]
    return shlex.join(words)


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
