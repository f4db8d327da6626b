"""The settings of a run, each declared once: default, limits, help text and option.

The command line and the estimators are made from them. Importing this file is cheap (no torch), so
that `sacm train --help` is quick.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveInt, ValidationError

from sacm.errors import ArgumentError, did_you_mean
from sacm.types import ScoreKind, Size, TaskName

_FILE_SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".npy", ".npz", ".ts")
_LONGEST_NAME = 160  # bytes of a data set's name in that of a run; file systems take 255 in all
_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}
AUTO = "auto"  # as backbone: candidates compete, the best of them or their mean becomes the run

Precision = Literal["32-true", "bf16-mixed", "16-mixed"]
Selection = Literal["mae", "mse", "accuracy", "loss"]


def setting(
    default: Any, help: str, *, flag: str | None = None, panel: str | None = None, **limits: Any
) -> Any:
    """Declare one setting: `flag` is its option, `panel` its heading in the help."""
    extra: Any = {"flag": flag, "panel": panel}
    return Field(default, description=help, json_schema_extra=extra, **limits)


def _split_names(value: Any) -> Any:
    """`a,b` or lists of such as names; a name that holds a comma stands in double quotes."""
    if isinstance(value, str):
        return [name.strip() for row in csv.reader([value]) for name in row if name.strip()]
    values = [value] if isinstance(value, int | float) else value
    return [str(each) for each in values] if isinstance(values, list | tuple) else values


def _seconds(value: Any) -> Any:
    """`10m` as 600 seconds, `none` as None; what is no duration as it is."""
    text = str(value).strip().lower()
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|min|h)?", text)
    if match is None:
        return None if text == "none" else value
    return float(match[1]) * _SECONDS[match[2] or ""]


# What the user gives as text on the command line or as a list in a file.
Names = Annotated[tuple[str, ...], BeforeValidator(_split_names)]
Shares = Annotated[
    tuple[float, ...], BeforeValidator(lambda v: v.split(",") if isinstance(v, str) else v)
]
Seconds = Annotated[float | None, BeforeValidator(_seconds)]
DateOrder = Annotated[
    Literal["day first", "month first", "year first"],
    BeforeValidator(lambda v: f"{v} first" if v in ("day", "month", "year") else v),
]


def is_duration(value: Any) -> bool:
    """Whether a text says how long: `60`, `90s`, `10m`, `1h`, or `none`."""
    return not isinstance(_seconds(str(value)), str)


def _reading(help: str, *, flag: str | None = None) -> Any:
    """Declare one option for reading; None, the default, means: found in the data."""
    return setting(None, help, flag=flag, panel="Reading your own data")


class ReadOptions(BaseModel):
    """How a user's own file or frame is read; None: inferred from the data, and printed.

    Python, the command line and messages use these names and no others.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    time: Names | None = _reading("The time column, or several: date,hour.", flag="--time-column")
    date_order: DateOrder | None = _reading("day, month or year: what comes first in 01/02/03.")
    zone: str | None = _reading("Time zone of the times, such as Europe/Berlin.")
    frequency: str | None = _reading("Time step as a pandas alias, such as h, 15min or MS.")
    resample: str | None = _reading("Average irregular rows into steps of this length: h, 1D.")
    duplicates: Literal["mean", "first", "error"] | None = _reading(
        "Rows of the same time: mean, first, or error (default)."
    )
    columns: Names | None = _reading("The channels, separated by commas, in this order.")
    target: Names | None = _reading("Channels to forecast; the others are only inputs.")
    category: Names | None = _reading("Columns of words that become inputs of 0 and 1.")
    ignore: Names | None = _reading("Columns to leave out, separated by commas.")
    label: str | None = _reading("The column of anomaly labels, 0 or 1; never a channel.")
    id: Names | None = _reading("The column that tells several series apart, or several.")
    split: Shares | None = _reading("Shares of training, validation, test rows: 0.7,0.1,0.2.")
    scaling: Literal["series", "shared"] | None = _reading(
        "Several series: series (default) scales each by its own rows, shared all alike."
    )
    decimal: Literal[",", "."] | None = _reading("Decimal sign; the other separates thousands.")
    na: Names | None = _reading("Words or numbers that stand for a missing value: 'no data',-999.")
    sheet: str | None = _reading("The sheet of an Excel file, or the file in a zip archive.")
    encoding: str | None = _reading("Code page of a text file, such as cp1251 or shift_jis.")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Check plain values; an `ArgumentError` names everything that is wrong with them."""
        try:
            return cls(**values)
        except ValidationError as error:
            problems = error.errors()
        sentences = []
        for problem in problems:
            name = ".".join(map(str, problem["loc"]))
            if problem["type"] == "extra_forbidden":
                near = did_you_mean(name, cls.model_fields)
                sentences.append(f"there is no setting {name!r}.{near}")
            elif problem["type"] == "missing":
                sentences.append(f"the setting {name!r} is missing.")
            else:
                sentences.append(f"{name} = {problem['input']!r}: {problem['msg'].lower()}.")
        raise ArgumentError(" ".join(sentences))

    def reading(self) -> dict[str, Any]:
        """The options for reading that were given, by name."""
        return self.model_dump(include={*READING}, exclude_none=True)


READING = tuple(ReadOptions.model_fields)
COVARIATES, _COVARIATES = ("past", "future"), "Covariates of a forecast"


class RunSettings(ReadOptions):
    """What a user asks for. None means: what suits the task and the data.

    Make one with `sacm.tasks.make_settings`, which also checks it against its task.
    """

    past: Names | None = setting(None, "Inputs that are not forecast.", panel=_COVARIATES)
    future: Names | None = setting(None, "Inputs that are known ahead.", panel=_COVARIATES)
    task: TaskName = setting(..., "forecasting, classification or anomaly.")
    data: str = setting(..., "A name from `sacm data list`, or a file of your own.")
    backbone: str | None = setting(None, "See `sacm backbones`. Default: candidates compete.")
    time_limit: Seconds = setting(None, "60 (seconds), 10m, 1h or none.", flag="--time", gt=0)
    size: Size = setting("paper", "paper or small.")
    strategy: str | None = setting(None, "See `sacm strategies`, such as guard+sacm.")
    seed: int = setting(42, "Seed of weights, order of the data and masks.", ge=0)
    input_len: int | None = setting(None, "Steps in. Default: two seasons; anomaly 100.", ge=1)
    horizon: int | None = setting(None, "Steps to forecast. Default: a season.", ge=1)
    batch_size: int | None = setting(None, "Windows in a batch; 32, classification 64.", ge=1)
    epochs: int = setting(100, "Passes over the training windows, at most.", ge=1)
    patience: int = setting(10, "Epochs without improvement before stopping.", ge=1)
    learning_rate: float = setting(2e-4, "Learning rate of Adam.", flag="--lr", gt=0)
    weight_decay: float = setting(5e-4, "Weight decay of Adam; not for SACM's scalars.", ge=0)
    gradient_clip: float = setting(0.0, "Largest norm of a step's gradients; 0: any.", ge=0)
    stride: int = setting(1, "Rows between two training windows; of anomaly, all windows.", ge=1)
    validation_stride: int = setting(1, "Forecasting: rows between two validation windows.", ge=1)
    select: Selection | None = setting(None, "Chooses the epoch: mae, mse, accuracy or loss.")
    score: ScoreKind = setting("native", "Anomaly score: native or reconstruction.")
    train_fraction: float = setting(1.0, "Forecasting: share of training windows.", gt=0, le=1)
    contamination: str = setting("", "Break training data first: mix(0.3); `sacm corrupt --list`.")
    minimum: float | Literal["none"] | None = setting(
        None, "No forecast is below this, or none. Default: 0 if no value is.", flag="--min"
    )
    watch: bool = setting(False, "Also test after every epoch; nothing is chosen by it.")
    precision: Precision = setting("32-true", "32-true, bf16-mixed or 16-mixed.")
    compile: bool = setting(False, "Compile the network with torch.compile.")
    overrides: dict[str, Any] = setting({}, "A setting of the backbone. Repeatable.", flag="--set")

    def reading(self) -> dict[str, Any]:
        """The options for reading that were given, by name, with columns that are covariates."""
        return self.model_dump(include={*READING, *COVARIATES}, exclude_none=True)

    def covariates(self) -> dict[str, Any]:
        """The covariates that were asked for, by name."""
        return self.model_dump(include={*COVARIATES}, exclude_none=True)


# The settings that are always part of a run's identity. The others are only where they are not at
# their defaults, so that a new setting renames no run.
_IDENTITY = (
    *("task", "data", "backbone", "size", "strategy", "seed", "input_len", "batch_size", "epochs"),
    *("patience", "learning_rate", "weight_decay", "stride", "select"),
)


class ResolvedSettings(RunSettings):
    """Complete settings: what a task made of `RunSettings` for given data."""

    backbone: str
    strategy: str
    input_len: PositiveInt
    horizon: int = Field(0, ge=0)  # 0 of tasks without
    batch_size: PositiveInt
    select: Selection
    scaling: Literal["series", "shared"] = "shared"

    def identity(self) -> dict[str, Any]:
        """The settings that tell this run from others."""
        fields, values = type(self).model_fields, self.model_dump()
        return {k: v for k, v in values.items() if k in _IDENTITY or v != fields[k].default}

    def run_id(self, fingerprint: str) -> str:
        """Name the run: readable parts, then a hash of its identity and of its data's."""
        record = json.dumps({**self.identity(), "fingerprint": fingerprint}, sort_keys=True)
        digest = hashlib.sha256(record.encode()).hexdigest()[:10]
        path = PurePath(self.data)
        name = path.stem if path.suffix in _FILE_SUFFIXES else path.name
        data = name.encode()[:_LONGEST_NAME].decode(errors="ignore")
        strategy = "".join(c if c.isalnum() else "-" for c in self.strategy).strip("-")
        return "_".join([data, self.backbone, strategy, f"seed{self.seed}", digest])


def option_name(name: str) -> str:
    """The command-line option of a setting, such as `--lr` of `learning_rate`."""
    extra: Any = RunSettings.model_fields[name].json_schema_extra
    return extra["flag"] or f"--{name.replace('_', '-')}"
